package dev.pgworker.job;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * Selects the jobs to list or count. A job must match all filters; a filter that is null matches all jobs.
 *
 * @param state the state of the jobs
 * @param taskIdentifier the task that runs the jobs
 * @param queueName the named queue of the jobs
 * @param search a text that the key, the last error or the payload's JSON text contains; case-sensitive
 * @param pageSize maximum number of jobs on a page, 1 to 1000; ignored when counting
 * @param after the {@link JobPage#next()} of the previous page; null for the first page; ignored when counting
 * @since 0.1.0
 */
public record JobQuery(
        @Nullable JobState state,
        @Nullable String taskIdentifier,
        @Nullable String queueName,
        @Nullable String search,
        int pageSize,
        @Nullable Long after) {

    /** Selects all jobs, 50 per page. */
    public static final JobQuery ALL = new JobQuery(null, null, null, null, 50, null);

    /**
     * Validates the values.
     *
     * @throws IllegalArgumentException if a value is out of range; the message names it and the values allowed
     */
    public JobQuery {
        if (taskIdentifier != null) {
            Arguments.requireGivenText("taskIdentifier", taskIdentifier);
        }
        if (queueName != null) {
            Arguments.requireGivenText("queueName", queueName);
        }
        if (search != null) {
            Arguments.requireGivenText("search", search);
        }
        Arguments.requireRange("pageSize", pageSize, 1, 1000);
    }

    /** Returns a builder without filters, with 50 jobs per page. */
    public static Builder builder() {
        return ALL.toBuilder();
    }

    /** Returns a builder with the values of this query. */
    public Builder toBuilder() {
        return new Builder(this);
    }

    /** Returns a copy of this query for the page after the one with the given {@link JobPage#next()}. */
    public JobQuery after(@Nullable Long next) {
        return new JobQuery(state, taskIdentifier, queueName, search, pageSize, next);
    }

    /**
     * Builds a {@link JobQuery}. Not thread-safe.
     *
     * @since 0.1.0
     */
    public static final class Builder {

        private @Nullable JobState state;
        private @Nullable String taskIdentifier;
        private @Nullable String queueName;
        private @Nullable String search;
        private int pageSize;
        private @Nullable Long after;

        private Builder(JobQuery query) {
            state = query.state;
            taskIdentifier = query.taskIdentifier;
            queueName = query.queueName;
            search = query.search;
            pageSize = query.pageSize;
            after = query.after;
        }

        /** Sets the state; null for all. */
        public Builder state(@Nullable JobState state) {
            this.state = state;
            return this;
        }

        /** Sets the task; null for all. */
        public Builder taskIdentifier(@Nullable String taskIdentifier) {
            this.taskIdentifier = taskIdentifier;
            return this;
        }

        /** Sets the named queue; null for all jobs, including those without a queue. */
        public Builder queueName(@Nullable String queueName) {
            this.queueName = queueName;
            return this;
        }

        /** Sets the text to search for in key, last error and payload; null for none. */
        public Builder search(@Nullable String search) {
            this.search = search;
            return this;
        }

        /** Sets the maximum number of jobs on a page, 1 to 1000. */
        public Builder pageSize(int pageSize) {
            this.pageSize = pageSize;
            return this;
        }

        /** Sets the {@link JobPage#next()} of the previous page; null for the first page. */
        public Builder after(@Nullable Long after) {
            this.after = after;
            return this;
        }

        /**
         * Returns the query.
         *
         * @throws IllegalArgumentException if a value is out of range
         */
        public JobQuery build() {
            return new JobQuery(state, taskIdentifier, queueName, search, pageSize, after);
        }
    }
}
