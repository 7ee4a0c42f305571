package dev.pgworker.step;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

/**
 * What is recorded of a step of a job.
 *
 * @param name within the job; of a step that waits for a signal the name of that, with a number if it is not the first
 * @param kind what the step does
 * @param attempt the attempt that ran it, or began to wait
 * @param claimedAt when that was claimed, as {@code Job.lockedAt} has it
 * @param startedAt when it began
 * @param endedAt when it ended; null while the job waits
 * @param dueAt until when the job waits at most; null of other steps
 * @param timedOut whether no signal has come in time
 * @param resultType the Java type with which the result was asked for when it was recorded; null if there is none
 * @param result the result, or the payload of the signal, as JSON; null if there is none or it was not asked for
 * @since 0.1.0
 */
public record JobStep(
        String name,
        Kind kind,
        int attempt,
        Instant claimedAt,
        Instant startedAt,
        @Nullable Instant endedAt,
        @Nullable Instant dueAt,
        boolean timedOut,
        @Nullable String resultType,
        @Nullable String result) {

    /**
     * What a step does.
     *
     * @since 0.1.0
     */
    public enum Kind {
        /** It does something. */
        RUN,
        /** It does something in a transaction. */
        TRANSACTION,
        /** It waits for a signal. */
        WAIT,
        /** It waits for a time. */
        SLEEP
    }
}
