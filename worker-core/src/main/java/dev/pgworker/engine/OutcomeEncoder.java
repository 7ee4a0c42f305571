package dev.pgworker.engine;

import java.time.Duration;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Job;
import dev.pgworker.lifecycle.ErrorText;
import dev.pgworker.store.JobStore.Release;
import dev.pgworker.store.JobStore.ReleaseAction;
import dev.pgworker.store.JobStore.When;

/**
 * Turns outcomes into what is written about them. Whatever it is that cannot be expressed, an exception for instance whose
 * methods fail, becomes a failure of that job, with the usual back-off. Safe for use by many threads.
 */
final class OutcomeEncoder {

    private final Duration interruptedRetryDelay;

    /**
     * Creates an encoder.
     *
     * @param interruptedRetryDelay when a job runs again that was interrupted by a stop
     */
    OutcomeEncoder(Duration interruptedRetryDelay) {
        this.interruptedRetryDelay = interruptedRetryDelay;
    }

    /** Encodes an outcome on the calling thread, the handler's. Never throws. */
    Ended encode(Job job, JobOutcome outcome) {
        try {
            Throwable error = outcome instanceof JobOutcome.Failure failure ? failure.error() : null;
            return new Ended(job, outcome, release(job, outcome), error == null ? null : ErrorText.loggable(error));
        } catch (Throwable e) {
            return inexpressible(job, "what became of this attempt cannot be expressed: " + ErrorText.headline(e));
        }
    }

    /** Returns the end of a claim as a failure with this reason, and nothing else that might be at fault. */
    static Ended inexpressible(Job job, String reason) {
        String text = ErrorText.ascii(reason);
        JobOutcome.Failure failure = JobOutcome.Failure.of(new InexpressibleException(text));
        return new Ended(job, failure, Release.of(job, ReleaseAction.RETRY, null, text, null), failure.error());
    }

    private @Nullable Release release(Job job, JobOutcome outcome) {
        if (outcome instanceof JobOutcome.Failure failure) {
            ReleaseAction action = failure.permanently() ? ReleaseAction.FAIL : ReleaseAction.RETRY;
            return Release.of(job, action, failure.when(), ErrorText.of(failure.error()), failure.rest());
        }
        if (outcome instanceof JobOutcome.Snoozed snoozed) {
            return Release.of(job, ReleaseAction.BACK, snoozed.when(), null, null);
        }
        if (outcome instanceof JobOutcome.Returned returned) {
            When when = returned.started() ? When.in(interruptedRetryDelay) : null;
            return Release.of(job, ReleaseAction.BACK, when, null, returned.rest());
        }
        return null;
    }

    /** Stands for an outcome that could not be expressed or written. */
    private static final class InexpressibleException extends RuntimeException {

        private static final long serialVersionUID = 1L;

        InexpressibleException(String message) {
            super(message, null, false, false);
        }
    }
}
