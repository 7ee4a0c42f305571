package dev.pgworker.history;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * Selects entries of the history. An entry must match all filters; a filter that is null matches all entries.
 *
 * @param outcome how it ended
 * @param taskIdentifier the task
 * @param queueName the named queue
 * @param key the key of the job
 * @param from the earliest time at which it ended
 * @param to the time before which it ended
 * @param search a text that the key, the error, the result or the payload contains; case-sensitive. Values of more than 100 kB
 *     in the table are not searched, and results and payloads are not if the payload limit is 0
 * @param payloadLimit maximum number of characters to read of each payload, result and error, 0 to 1,000,000. A longer one is
 *     cut, and ends with the character {@code …}; one that takes more than 100 kB in the table is nothing but that. With 0 payloads and
 *     results are null, the privilege to read them is not needed, and errors are read to 10,000 characters
 * @param pageSize maximum number of entries on a page, 1 to 1000
 * @param after the {@link HistoryPage#next()} of the previous page; null for the first page
 * @since 0.1.0
 */
public record HistoryQuery(
        @Nullable HistoryOutcome outcome,
        @Nullable String taskIdentifier,
        @Nullable String queueName,
        @Nullable String key,
        @Nullable Instant from,
        @Nullable Instant to,
        @Nullable String search,
        int payloadLimit,
        int pageSize,
        @Nullable String after) {

    /** Selects all entries, 50 per page, with up to 100,000 characters of each payload, result and error. */
    public static final HistoryQuery ALL =
            new HistoryQuery(null, null, null, null, null, null, null, 100_000, 50, null);

    /**
     * Validates the values.
     *
     * @throws IllegalArgumentException if a value is out of range; the message names it and the values allowed
     */
    public HistoryQuery {
        if (taskIdentifier != null) {
            Arguments.requireGivenText("taskIdentifier", taskIdentifier);
        }
        if (queueName != null) {
            Arguments.requireGivenText("queueName", queueName);
        }
        if (key != null) {
            Arguments.requireGivenText("key", key);
        }
        Arguments.requireInstant("from", from);
        Arguments.requireInstant("to", to);
        if (search != null) {
            Arguments.requireGivenText("search", search);
        }
        Arguments.requireRange("payloadLimit", payloadLimit, 0, 1_000_000);
        Arguments.requireRange("pageSize", pageSize, 1, 1000);
    }

    /** Returns a builder without filters, with 50 entries per page. */
    public static Builder builder() {
        return ALL.toBuilder();
    }

    /** Returns a builder with the values of this query. */
    public Builder toBuilder() {
        return new Builder(this);
    }

    /**
     * Builds a {@link HistoryQuery}. Not thread-safe.
     *
     * @since 0.1.0
     */
    public static final class Builder {

        private @Nullable HistoryOutcome outcome;
        private @Nullable String taskIdentifier;
        private @Nullable String queueName;
        private @Nullable String key;
        private @Nullable Instant from;
        private @Nullable Instant to;
        private @Nullable String search;
        private int payloadLimit;
        private int pageSize;
        private @Nullable String after;

        private Builder(HistoryQuery query) {
            outcome = query.outcome;
            taskIdentifier = query.taskIdentifier;
            queueName = query.queueName;
            key = query.key;
            from = query.from;
            to = query.to;
            search = query.search;
            payloadLimit = query.payloadLimit;
            pageSize = query.pageSize;
            after = query.after;
        }

        /** Sets how it ended; null for all. */
        public Builder outcome(@Nullable HistoryOutcome outcome) {
            this.outcome = outcome;
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

        /** Sets the key of the jobs; null for all. */
        public Builder key(@Nullable String key) {
            this.key = key;
            return this;
        }

        /** Sets the earliest time at which it ended; null for none. */
        public Builder from(@Nullable Instant from) {
            this.from = from;
            return this;
        }

        /** Sets the time before which it ended; null for none. */
        public Builder to(@Nullable Instant to) {
            this.to = to;
            return this;
        }

        /** Sets the text to search for in key, error, result and payload; null for none. */
        public Builder search(@Nullable String search) {
            this.search = search;
            return this;
        }

        /** Sets the maximum number of characters to read of each payload, result and error, 0 to 1,000,000; 0 for no payloads and results. */
        public Builder payloadLimit(int payloadLimit) {
            this.payloadLimit = payloadLimit;
            return this;
        }

        /** Sets the maximum number of entries on a page, 1 to 1000. */
        public Builder pageSize(int pageSize) {
            this.pageSize = pageSize;
            return this;
        }

        /** Sets the {@link HistoryPage#next()} of the previous page; null for the first page. */
        public Builder after(@Nullable String after) {
            this.after = after;
            return this;
        }

        /**
         * Returns the query.
         *
         * @throws IllegalArgumentException if a value is out of range
         */
        public HistoryQuery build() {
            return new HistoryQuery(
                    outcome, taskIdentifier, queueName, key, from, to, search, payloadLimit, pageSize, after);
        }
    }
}
