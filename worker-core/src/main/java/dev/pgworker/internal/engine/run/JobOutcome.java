package dev.pgworker.internal.engine.run;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.store.RetryTime;

/** How an attempt ended. */
public sealed interface JobOutcome {

    /** The handler returned: the job is deleted. */
    record Success() implements JobOutcome {
        static final Success INSTANCE = new Success();
    }

    /** The handler's transaction has committed, and with it the deletion of the job. */
    record Committed() implements JobOutcome {
        static final Committed INSTANCE = new Committed();
    }

    /** The worker no longer holds the job, as the handler's transaction, which is rolled back, or a read of the payload has found. */
    record Lost() implements JobOutcome {
        static final Lost INSTANCE = new Lost();
    }

    /**
     * The attempt failed.
     *
     * @param permanently whether the job must not run again although it has attempts left
     * @param when when it is retried; null for the usual back-off
     * @param rest the payload of the retry if it differs: the items of a batch that failed
     * @param maxAttempts the maximum of the handler; null for that of the job
     */
    record Failure(
            Throwable error,
            boolean permanently,
            @Nullable RetryTime when,
            @Nullable String rest,
            @Nullable Integer maxAttempts)
            implements JobOutcome {

        /** A failure that is retried as usual. */
        static Failure of(Throwable error) {
            return new Failure(error, false, null, null, null);
        }
    }

    /**
     * The job was cancelled, and its handler has not succeeded: the job is deleted.
     *
     * @param error what the handler threw; null if it has not run, or does not end
     */
    record Cancelled(@Nullable Throwable error) implements JobOutcome {}

    /** The handler wants to run again later; the attempt does not count. */
    record Snoozed(RetryTime when) implements JobOutcome {}

    /**
     * The job has not started, or the worker is stopping; the attempt does not count, and the job runs again.
     *
     * @param rest the payload of the next attempt if it differs: the items of a batch that are left
     */
    record Returned(boolean started, @Nullable String rest) implements JobOutcome {}
}
