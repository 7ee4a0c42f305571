package dev.pgworker.job;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * Reports why there is no result of a job. The message names the job, its task as far as it is known, and the reason.
 *
 * @since 0.1.0
 */
public final class JobResultException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    /**
     * Why there is no result.
     *
     * @since 0.1.0
     */
    public enum Reason {

        /** The job has failed and is not retried by itself; {@link #error} is its last error. */
        FAILED,

        /** The job was removed before it had run, or lost its key while it ran. */
        REMOVED,

        /** The job was cancelled while it ran. */
        CANCELLED,

        /** The job is gone, and its end could not be written, for example because the table of ends was locked. */
        UNKNOWN,

        /**
         * Nothing is known of the job: its result was not asked for, its record has expired, or the transaction that
         * adds it is not committed, or was rolled back.
         */
        ABSENT,

        /** The job has succeeded, but its result cannot be had: it was too large, or does not fit the type. */
        UNREADABLE
    }

    private final long jobId;
    private final @Nullable String taskIdentifier;
    private final Reason reason;
    private final @Nullable String error;

    /**
     * Creates an exception.
     *
     * @param taskIdentifier the task of the job; null if it is not known
     * @param error the last error of the job, or what is wrong with the result; null if there is none
     * @param cause what has failed; null for nothing
     */
    public JobResultException(
            long jobId,
            @Nullable String taskIdentifier,
            Reason reason,
            @Nullable String error,
            @Nullable Throwable cause) {
        super(message(jobId, taskIdentifier, Arguments.requireNonNull("reason", reason), error), cause);
        this.jobId = jobId;
        this.taskIdentifier = taskIdentifier;
        this.reason = reason;
        this.error = error;
    }

    private static String message(long jobId, @Nullable String taskIdentifier, Reason reason, @Nullable String error) {
        String job = "Job " + jobId + (taskIdentifier == null ? "" : " (task \"" + taskIdentifier + "\")");
        String what = switch (reason) {
            case FAILED -> "has failed";
            case REMOVED -> "has been removed";
            case CANCELLED -> "has been cancelled";
            case UNKNOWN -> "is gone, and its end is not known";
            case ABSENT ->
                "is not known here: its result was not asked for, its record has expired, or the transaction that adds"
                        + " it is not committed";
            case UNREADABLE -> "has succeeded, but there is no result of it";
        };
        return job + " " + what
                + (error == null ? "" : ": " + error.lines().findFirst().orElse(""));
    }

    /** Returns the id of the job. */
    public long jobId() {
        return jobId;
    }

    /** Returns the task of the job; null if it is not known. */
    public @Nullable String taskIdentifier() {
        return taskIdentifier;
    }

    /** Returns why there is no result. */
    public Reason reason() {
        return reason;
    }

    /** Returns the last error of the job with its stack trace, or what is wrong with the result; null if there is none. */
    public @Nullable String error() {
        return error;
    }
}
