package dev.pgworker.engine;

/** How an attempt ended. */
sealed interface JobOutcome {

    /** The handler returned: the job is deleted. */
    record Success() implements JobOutcome {
        static final Success INSTANCE = new Success();
    }

    /** The handler or the decoding of its payload failed: the job is retried or has failed permanently. */
    record Failure(Throwable error) implements JobOutcome {}

    /** The worker is stopping and the attempt does not count; the job runs again. */
    record Returned(boolean started) implements JobOutcome {}
}
