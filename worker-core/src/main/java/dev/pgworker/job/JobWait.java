package dev.pgworker.job;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

/**
 * Why a job does not run at the moment.
 *
 * @param reason what it waits for
 * @param until when that will be over; null if it is not known
 * @param ahead number of jobs that run before it, counted up to 1,000; null where that does not matter
 * @param text the reason in plain words, a sentence
 * @since 0.1.0
 */
public record JobWait(
        Reason reason, @Nullable Instant until, @Nullable Integer ahead, String text) {

    /**
     * What a job can wait for.
     *
     * @since 0.1.0
     */
    public enum Reason {

        /** A worker runs it. */
        RUNS,

        /** Its worker has sent no heartbeat for longer than its threshold. */
        WORKER_DEAD,

        /** It is not due yet. */
        TIME,

        /** One of its steps waits for a signal. */
        SIGNAL,

        /** One of its steps lets some time pass. */
        SLEEP,

        /** Other jobs have to end before it, see {@link dev.pgworker.flow}. */
        PREDECESSORS,

        /** It has failed, and the time of its next attempt has not come. */
        RETRY,

        /** It has failed permanently. */
        FAILED,

        /** Its task, its queue or everything is paused. */
        PAUSED,

        /** Limits do not allow it. */
        LIMIT,

        /** Another job of its queue runs. */
        QUEUE_RUNS,

        /** Other jobs of its queue run before it. */
        QUEUE_ORDER,

        /** No registered worker serves its task. */
        NO_WORKER,

        /** All workers are busy, or other jobs run before it. */
        TURN
    }
}
