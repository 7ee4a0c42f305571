package dev.pgworker.cli;

import java.util.Locale;

import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobState;

/** Which jobs, by what they are. */
final class JobFilters {

    @Option(
            names = "--state",
            paramLabel = "STATE",
            description = "Jobs in this state: ready, scheduled, retrying, running or failed.")
    private @Nullable JobState state;

    @Option(names = "--task", paramLabel = "TASK", description = "Jobs of this task.")
    private @Nullable String task;

    @Option(names = "--queue", paramLabel = "QUEUE", description = "Jobs of this named queue.")
    private @Nullable String queue;

    @Option(
            names = "--search",
            paramLabel = "TEXT",
            description = "Jobs whose key, last error or payload contains this text, exactly as written.")
    private @Nullable String search;

    boolean isEmpty() {
        return state == null && task == null && queue == null && search == null;
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
                .search(search)
                .build();
    }

    /** Says which jobs a query means, such as " in state failed of task mail"; nothing for all. */
    static String describe(JobQuery query) {
        return (query.state() == null ? "" : " in state " + query.state().name().toLowerCase(Locale.ROOT))
                + (query.taskIdentifier() == null ? "" : " of task " + Text.line(query.taskIdentifier()))
                + (query.queueName() == null ? "" : " in queue " + Text.line(query.queueName()))
                + (query.search() == null ? "" : " with the text \"" + Text.line(query.search()) + "\"");
    }
}
