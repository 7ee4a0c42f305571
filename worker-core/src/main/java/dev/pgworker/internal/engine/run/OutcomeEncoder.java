package dev.pgworker.internal.engine.run;

import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.ErrorText;
import dev.pgworker.internal.store.Release;
import dev.pgworker.internal.store.Release.Action;
import dev.pgworker.internal.store.RetryTime;
import dev.pgworker.internal.store.RunRecord;
import dev.pgworker.job.Job;
import dev.pgworker.task.JobCancelledException;

/**
 * Turns outcomes into what is written about them. Whatever it is that cannot be expressed, an exception for example whose
 * methods fail, becomes a failure of that job, with the usual back-off. Thread-safe.
 */
public final class OutcomeEncoder {

    private final Duration interruptedRetryDelay;

    /**
     * Creates an encoder.
     *
     * @param interruptedRetryDelay when a job runs again that was interrupted by a stop
     */
    OutcomeEncoder(Duration interruptedRetryDelay) {
        this.interruptedRetryDelay = interruptedRetryDelay;
    }

    /**
     * Encodes an outcome on the calling thread, the handler's. Never throws.
     *
     * @param trace the trace in which the handler ran; null for the one that the payload carries
     */
    EncodedOutcome encode(Job job, JobOutcome outcome, @Nullable JobTrace trace) {
        try {
            if (!(outcome instanceof JobOutcome.Failure failure)) {
                return new EncodedOutcome(job, outcome, release(job, outcome), null, null, null);
            }
            return new EncodedOutcome(
                    job,
                    outcome,
                    release(job, outcome),
                    ErrorText.loggable(failure.error()),
                    trace == null ? JobTrace.in(job.payload()) : trace,
                    null);
        } catch (Throwable e) {
            return inexpressible(job, "what became of this attempt cannot be expressed: " + ErrorText.headline(e));
        }
    }

    /** Returns the end of a claim as a failure with this reason, and nothing else that might be at fault. */
    public static EncodedOutcome inexpressible(Job job, String reason) {
        String text = ErrorText.ascii(reason);
        JobOutcome.Failure failure = JobOutcome.Failure.of(new InexpressibleException(text));
        return new EncodedOutcome(
                job, failure, Release.of(job, Action.RETRY, null, text, null), failure.error(), null, null);
    }

    /**
     * Returns what to write in turn, until the database takes it, of an outcome that it refuses: that itself, for what was in the way may
     * be gone, then less and less. What the history gets keeps no job from ending.
     */
    public static List<EncodedOutcome> inOtherWords(EncodedOutcome ended, Throwable refusal) {
        List<EncodedOutcome> others = new ArrayList<>();
        others.add(ended);
        if (DatabaseFailure.of(refusal) == DatabaseFailure.OUTAGE) {
            return others; // no words are to blame
        }
        RunRecord run = ended.run();
        addAscii(others, ended, refusal);
        if (run != null && run.result() != null) {
            others.add(ended.withRun(run.withoutResult()));
        }
        if (run != null) {
            others.add(ended.withoutRun());
        }
        EncodedOutcome failed = inexpressible(
                        ended.job(), "the outcome of this attempt could not be written: " + ErrorText.headline(refusal))
                .withTrace(ended.trace());
        others.add(failed.withRun(run));
        if (run != null) {
            addAscii(others, ended.withoutRun(), refusal);
            others.add(failed);
        }
        return others;
    }

    /** Returns whether this reports only that there is more that could not be expressed or written. */
    public static boolean isInexpressible(EncodedOutcome ended) {
        return ended.error() instanceof InexpressibleException;
    }

    /** The encoding of the database may lack characters of an error's text. */
    private static void addAscii(List<EncodedOutcome> others, EncodedOutcome ended, Throwable refusal) {
        Release release = ended.release();
        String state = refusal instanceof SQLException sql ? sql.getSQLState() : null;
        if (release != null && release.error() != null && state != null && state.startsWith("22")) {
            others.add(ended.withRelease(release.withError(ErrorText.ascii(release.error()))));
        }
    }

    private @Nullable Release release(Job job, JobOutcome outcome) {
        if (outcome instanceof JobOutcome.Failure failure) {
            Action action = failure.permanently() ? Action.FAIL : Action.RETRY;
            return Release.of(job, action, failure.when(), ErrorText.of(failure.error()), failure.rest());
        }
        if (outcome instanceof JobOutcome.Cancelled cancelled) {
            // The database knows, and deletes the job; whatever goes wrong there, it is not to run again.
            return Release.of(job, Action.FAIL, null, text(cancelled.error()), null);
        }
        if (outcome instanceof JobOutcome.Snoozed snoozed) {
            return Release.of(job, Action.BACK, snoozed.when(), null, null);
        }
        if (outcome instanceof JobOutcome.Returned returned) {
            RetryTime when = returned.started() ? RetryTime.in(interruptedRetryDelay) : null;
            return Release.of(job, Action.BACK, when, null, returned.rest());
        }
        return null;
    }

    /** What a handler throws because it was asked to end has no information; the database has a text of its own. */
    private static @Nullable String text(@Nullable Throwable error) {
        return error == null || error instanceof JobCancelledException || error instanceof InterruptedException
                ? null
                : ErrorText.of(error);
    }

    /** Stands for an outcome that could not be expressed or written. */
    private static final class InexpressibleException extends RuntimeException {

        private static final long serialVersionUID = 1L;

        InexpressibleException(String message) {
            super(message, null, false, false);
        }
    }
}
