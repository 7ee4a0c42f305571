package dev.pgworker.task;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * What happens to a job whose worker has died.
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
        /** Same as {@link #useDefault}. */
        DEFAULT,
        /** Same as {@link #reschedule}. */
        RESCHEDULE,
        /** Same as {@link #failWithBackoff}. */
        FAIL_WITH_BACKOFF,
        /** Same as {@link #skip}. */
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
     * Returns the default decision: the job runs again after {@code pgworker.recovery.recovery-delay}, and the attempt
     * does not count. If the job has lost its worker more often than {@code pgworker.recovery.max-recoveries}, the
     * attempt counts and the job runs again after the usual back-off.
     */
    public static RecoveryDecision useDefault() {
        return USE_DEFAULT;
    }

    /** Returns a decision to run the job again at the given time, without counting the attempt. */
    public static RecoveryDecision reschedule(Instant runAt) {
        return reschedule(runAt, null);
    }

    /**
     * Returns a decision to run the job again at the given time.
     *
     * @param attempts number of attempts that count then, 0 to 32767; null for those before the interrupted one. The
     *     job fails permanently if no attempts are left
     */
    public static RecoveryDecision reschedule(Instant runAt, @Nullable Integer attempts) {
        Arguments.requireInstant("runAt", Arguments.requireNonNull("runAt", runAt));
        Arguments.requireRange("attempts", attempts, 0, Short.MAX_VALUE);
        return new RecoveryDecision(Kind.RESCHEDULE, runAt, attempts);
    }

    /**
     * Returns a decision to treat the attempt as failed: it counts, and the job runs again after the usual back-off if
     * it has attempts left.
     */
    public static RecoveryDecision failWithBackoff() {
        return FAIL;
    }

    /** Returns a decision to leave the job locked by the dead worker. The handler is called again by the next sweep. */
    public static RecoveryDecision skip() {
        return SKIP;
    }

    /** Returns the kind of this decision. */
    public Kind kind() {
        return kind;
    }

    /** Returns when the job runs again; null unless rescheduled. */
    public @Nullable Instant runAt() {
        return runAt;
    }

    /** Returns the number of attempts that count then; null unless rescheduled with a number. */
    public @Nullable Integer attempts() {
        return attempts;
    }

    @Override
    public String toString() {
        return kind == Kind.RESCHEDULE ? "RESCHEDULE(" + runAt + ", " + attempts + ")" : kind.name();
    }
}
