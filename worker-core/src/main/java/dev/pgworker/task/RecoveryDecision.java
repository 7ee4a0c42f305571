package dev.pgworker.task;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * What becomes of a job whose worker has died.
 *
 * @since 0.1.0
 */
public final class RecoveryDecision {

    /**
     * The kinds of decisions.
     *
     * @since 0.1.0
     */
    public enum Kind {
        /** As {@link #useDefault}. */
        DEFAULT,
        /** As {@link #reschedule}. */
        RESCHEDULE,
        /** As {@link #failWithBackoff}. */
        FAIL_WITH_BACKOFF,
        /** As {@link #skip}. */
        SKIP
    }

    private static final RecoveryDecision USE_DEFAULT = new RecoveryDecision(Kind.DEFAULT, null, null);
    private static final RecoveryDecision FAIL = new RecoveryDecision(Kind.FAIL_WITH_BACKOFF, null, null);
    private static final RecoveryDecision SKIP = new RecoveryDecision(Kind.SKIP, null, null);

    private final Kind kind;
    private final @Nullable Instant runAt;
    private final @Nullable Integer attempts;

    private RecoveryDecision(Kind kind, @Nullable Instant runAt, @Nullable Integer attempts) {
        this.kind = kind;
        this.runAt = runAt;
        this.attempts = attempts;
    }

    /**
     * The job runs again after {@code worker.recovery.recovery-delay}, and the attempt does not count, unless the job has
     * lost its worker more often than {@code worker.recovery.max-recoveries}: then it does, and the job waits the usual
     * back-off.
     */
    public static RecoveryDecision useDefault() {
        return USE_DEFAULT;
    }

    /** The job runs again at the given time, and the attempt does not count. */
    public static RecoveryDecision reschedule(Instant runAt) {
        return reschedule(runAt, null);
    }

    /**
     * The job runs again at the given time.
     *
     * @param attempts how many attempts count then, 0 to 32767; null for those before the interrupted one. The job fails
     *     permanently if they are all it has
     */
    public static RecoveryDecision reschedule(Instant runAt, @Nullable Integer attempts) {
        Arguments.requireInstant("runAt", Arguments.requireNonNull("runAt", runAt));
        Arguments.requireRange("attempts", attempts, 0, Short.MAX_VALUE);
        return new RecoveryDecision(Kind.RESCHEDULE, runAt, attempts);
    }

    /** The attempt has failed: it counts, and the job runs again after the usual back-off if it has attempts left. */
    public static RecoveryDecision failWithBackoff() {
        return FAIL;
    }

    /** The job stays locked by the dead worker. Sweeps ask again. */
    public static RecoveryDecision skip() {
        return SKIP;
    }

    /** Returns what kind of decision this is. */
    public Kind kind() {
        return kind;
    }

    /** Returns when the job runs again; null unless rescheduled. */
    public @Nullable Instant runAt() {
        return runAt;
    }

    /** Returns how many attempts count then; null unless rescheduled with a number. */
    public @Nullable Integer attempts() {
        return attempts;
    }

    @Override
    public String toString() {
        return kind == Kind.RESCHEDULE ? "RESCHEDULE(" + runAt + ", " + attempts + ")" : kind.name();
    }
}
