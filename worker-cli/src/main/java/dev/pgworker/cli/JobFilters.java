package dev.pgworker.cli;

import java.time.Instant;
import java.util.Locale;
import java.util.Objects;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobState;

/** Which jobs, by what they are. */
final class JobFilters {

    @Option(
            names = "--state",
            paramLabel = "STATE",
            description = "Jobs in this state: ready, scheduled, retrying, limited, running or failed.")
    private @Nullable JobState state;

    @Option(names = "--task", paramLabel = "TASK", description = "Jobs of this task.")
    private @Nullable String task;

    @Option(names = "--queue", paramLabel = "QUEUE", description = "Jobs of this named queue.")
    private @Nullable String queue;

    @Option(names = "--key", paramLabel = "KEY", description = "The job with this key.")
    private @Nullable String key;

    @Option(names = "--flag", paramLabel = "FLAG", description = "Jobs with this flag.")
    private @Nullable String flag;

    @Option(
            names = "--from",
            paramLabel = "TIME",
            converter = Times.TimeConverter.class,
            description = "Jobs whose run time is this or later.")
    private @Nullable Instant from;

    @Option(
            names = "--to",
            paramLabel = "TIME",
            converter = Times.TimeConverter.class,
            description = "Jobs whose run time is before this.")
    private @Nullable Instant to;

    @Option(
            names = "--search",
            paramLabel = "TEXT",
            description = "Jobs whose key, last error or payload contains this text, exactly as written.")
    private @Nullable String search;

    /** The names of all options, for messages. */
    static final String NAMES = "--state, --task, --queue, --key, --flag, --from, --to, --search";

    boolean isEmpty() {
        return Stream.of(state, task, queue, key, flag, from, to, search).allMatch(Objects::isNull);
    }

    boolean isSearch() {
        return search != null;
    }

    @Nullable JobState state() {
        return state;
    }

    /**
     * Returns the query.
     *
     * @param usualState the state unless one is given; null for all
     */
    JobQuery query(@Nullable JobState usualState) {
        return JobQuery.builder()
                .state(state == null ? usualState : state)
                .taskIdentifier(task)
                .queueName(queue)
                .key(key)
                .flag(flag)
                .from(from)
                .to(to)
                .search(search)
                .build();
    }

    /** Says which jobs a query means, such as " in state failed of task mail"; nothing for all. */
    static String describe(JobQuery query) {
        return (query.state() == null ? "" : " in state " + query.state().name().toLowerCase(Locale.ROOT))
                + (query.taskIdentifier() == null ? "" : " of task " + Text.line(query.taskIdentifier()))
                + (query.queueName() == null ? "" : " in queue " + Text.line(query.queueName()))
                + (query.key() == null ? "" : " with key " + Text.line(query.key()))
                + (query.flag() == null ? "" : " with flag " + Text.line(query.flag()))
                + (query.from() == null ? "" : " due from " + Text.seconds(query.from()))
                + (query.to() == null ? "" : " due before " + Text.seconds(query.to()))
                + (query.search() == null ? "" : " with the text \"" + Text.line(query.search()) + "\"");
    }
}
