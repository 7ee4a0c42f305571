package dev.pgworker.job;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * Selects the jobs to list or count. A job must match all filters; a filter that is null matches all jobs.
 *
 * @param state the state of the jobs
 * @param taskIdentifier the task that runs the jobs
 * @param queueName the named queue of the jobs
 * @param key the key of the job
 * @param flag a flag that the job has
 * @param from the earliest run time
 * @param to the time before which the run time is
 * @param search a text that the key, the last error or the payload's JSON text contains; case-sensitive. Payloads are not
 *     searched if the payload limit is 0
 * @param sort the order of the jobs; ignored when counting
 * @param scanLimit maximum number of jobs to read, 1 to 1,000,000; null to read all if need be. Where an index serves, it
 *     decides which: the job with the key; of a state, unless it is {@code RUNNING}, jobs in that state; of a queue the
 *     first that wait, the newest that have failed, and those running among the newest jobs. Otherwise the newest jobs
 *     are read, or the oldest if they come first. A search ends earlier if it has read about 8 MB of payloads
 * @param payloadLimit maximum number of characters to read of each payload when listing, 0 to 1,000,000; null to read
 *     payloads as they are. A longer payload is cut, and ends with the character {@code …}, as JSON never does; one that takes more than
 *     100 kB in the table is nothing but that. With 0 payloads are empty, and the privilege to read them is not needed
 * @param pageSize maximum number of jobs on a page, 1 to 1000; ignored when counting
 * @param after the {@link JobPage#next()} of the previous page; null for the first page; ignored when counting
 * @since 0.1.0
 */
public record JobQuery(
        @Nullable JobState state,
        @Nullable String taskIdentifier,
        @Nullable String queueName,
        @Nullable String key,
        @Nullable String flag,
        @Nullable Instant from,
        @Nullable Instant to,
        @Nullable String search,
        JobSort sort,
        @Nullable Integer scanLimit,
        @Nullable Integer payloadLimit,
        int pageSize,
        @Nullable Long after) {

    /** Selects all jobs, 50 per page. */
    public static final JobQuery ALL =
            new JobQuery(null, null, null, null, null, null, null, null, JobSort.NEWEST, null, null, 50, null);

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
        if (key != null) {
            Arguments.requireGivenText("key", key);
        }
        if (flag != null) {
            Arguments.requireGivenText("flag", flag);
        }
        Arguments.requireInstant("from", from);
        Arguments.requireInstant("to", to);
        Arguments.requireNonNull("sort", sort);
        Arguments.requireRange("scanLimit", scanLimit, 1, 1_000_000);
        Arguments.requireRange("payloadLimit", payloadLimit, 0, 1_000_000);
        Arguments.requireRange("pageSize", pageSize, 1, 1000);
        if (after != null && after < 0 && sort != JobSort.NEWEST && sort != JobSort.OLDEST) {
            throw new IllegalArgumentException("after must not be negative, but is " + after);
        }
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
        return toBuilder().after(next).build();
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
        private @Nullable String key;
        private @Nullable String flag;
        private @Nullable Instant from;
        private @Nullable Instant to;
        private @Nullable String search;
        private JobSort sort;
        private @Nullable Integer scanLimit;
        private @Nullable Integer payloadLimit;
        private int pageSize;
        private @Nullable Long after;

        private Builder(JobQuery query) {
            state = query.state;
            taskIdentifier = query.taskIdentifier;
            queueName = query.queueName;
            key = query.key;
            flag = query.flag;
            from = query.from;
            to = query.to;
            search = query.search;
            sort = query.sort;
            scanLimit = query.scanLimit;
            payloadLimit = query.payloadLimit;
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

        /** Sets the key; null for all jobs. */
        public Builder key(@Nullable String key) {
            this.key = key;
            return this;
        }

        /** Sets a flag that the jobs have; null for all jobs. */
        public Builder flag(@Nullable String flag) {
            this.flag = flag;
            return this;
        }

        /** Sets the earliest run time; null for none. */
        public Builder from(@Nullable Instant from) {
            this.from = from;
            return this;
        }

        /** Sets the time before which the run time is; null for none. */
        public Builder to(@Nullable Instant to) {
            this.to = to;
            return this;
        }

        /** Sets the order. */
        public Builder sort(JobSort sort) {
            this.sort = sort;
            return this;
        }

        /** Sets the maximum number of jobs to read, 1 to 1,000,000; null to read all if need be. */
        public Builder scanLimit(@Nullable Integer scanLimit) {
            this.scanLimit = scanLimit;
            return this;
        }

        /** Sets the maximum number of characters to read of each payload, 0 to 1,000,000; null to read them as they are. */
        public Builder payloadLimit(@Nullable Integer payloadLimit) {
            this.payloadLimit = payloadLimit;
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
            return new JobQuery(
                    state,
                    taskIdentifier,
                    queueName,
                    key,
                    flag,
                    from,
                    to,
                    search,
                    sort,
                    scanLimit,
                    payloadLimit,
                    pageSize,
                    after);
        }
    }
}
