package dev.pgworker.autoconfigure.endpoint;

import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobState;

/** Which jobs are meant, by what they are, as text. */
record EndpointFilters(
        @Nullable String state,
        @Nullable String task,
        @Nullable String queue,
        @Nullable String key,
        @Nullable String flag,
        @Nullable String from,
        @Nullable String to,
        @Nullable String search) {

    /** What they are called. */
    static final String NAMES = "state, task, queue, key, flag, from, to and search";

    /** Returns whether nothing is given. */
    boolean isEmpty() {
        return hasOnlyKey() && isMissing(key);
    }

    /** Returns whether nothing but a key is given. */
    boolean hasOnlyKey() {
        return Stream.of(state, task, queue, flag, from, to, search).allMatch(EndpointFilters::isMissing);
    }

    private static boolean isMissing(@Nullable String text) {
        return text == null || text.isBlank();
    }

    /**
     * Returns the query.
     *
     * @param showPayloads whether payloads are read and searched
     */
    JobQuery.Builder query(boolean showPayloads) {
        return JobQuery.builder()
                .state(EndpointParameters.constant("state", state, JobState.class))
                .taskIdentifier(task)
                .queueName(queue)
                .key(key)
                .flag(flag)
                .from(EndpointParameters.instant("from", from))
                .to(EndpointParameters.instant("to", to))
                .search(search)
                .payloadLimit(showPayloads ? EndpointViews.MOST_OF_PAYLOAD : 0);
    }
}
