package dev.pgworker.event;

/**
 * What has become of a job whose worker died.
 *
 * @since 0.1.0
 */
public enum RecoveryOutcome {

    /** It runs again after the recovery delay; the attempt does not count. */
    RETURNED,

    /** It runs again when a {@code JobRecoveryHandler} said. */
    RESCHEDULED,

    /** The attempt counts, and the job runs again after the usual back-off. */
    FAILED,

    /** The attempt counts, and it was the last. */
    FAILED_PERMANENTLY,

    /** It was superseded under its key, or removed, while it ran, and does not run again. */
    SUPERSEDED
}
