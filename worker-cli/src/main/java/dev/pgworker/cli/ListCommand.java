package dev.pgworker.cli;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobPage;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobSort;
import dev.pgworker.job.JobState;

/** Lists jobs. */
@Command(
        name = "list",
        description = "List jobs, newest first unless sorted.",
        footer = {
            "  worker-cli list --state failed --task send_mail --search timeout --limit 20",
            "  worker-cli list --state failed --ids | worker-cli retry -"
        })
final class ListCommand extends SessionCommand {

    @Mixin
    private JobFilters filters = new JobFilters();

    @Option(
            names = {"-n", "--limit"},
            paramLabel = "N",
            description = "Largest number of rows, 1 to 1000. Default: ${DEFAULT-VALUE}.")
    private int limit = 50;

    @Option(
            names = "--after",
            paramLabel = "ID",
            description = "Continue after the position that the previous page has shown.")
    private @Nullable Long after;

    @Option(
            names = "--sort",
            paramLabel = "ORDER",
            description = "newest, oldest, run_at, updated, priority or attempts. Default: newest.")
    private JobSort sort = JobSort.NEWEST;

    @Option(
            names = "--scan-limit",
            paramLabel = "N",
            description = "Read at most so many jobs, 1 to 1000000, and show if others may be missing. Default: all.")
    private @Nullable Integer scanLimit;

    @Option(names = "--ids", description = "Write ids only, one a line, for another command.")
    private boolean ids;

    ListCommand(Session session) {
        super(session);
    }

    @Override
    public Integer call() {
        JobQueries queries = session.queries();
        JobQuery query = filters.query(null).toBuilder()
                .sort(sort)
                .scanLimit(scanLimit)
                .payloadLimit(session.isJson() ? null : filters.isSearch() ? 1 : 0)
                .pageSize(limit)
                .after(after)
                .build();
        JobPage page = queries.list(query);
        if (session.isJson()) {
            List<Map<String, Object>> jobs = new ArrayList<>();
            page.jobs().forEach(job -> jobs.add(Json.job(job, state(job))));
            session.writeJson(Json.object("jobs", jobs, "next", page.next(), "limited", page.limited() ? true : null));
        } else if (ids) {
            page.jobs().forEach(job -> {
                session.terminal().out().println(job.id());
            });
        } else {
            Table table =
                    new Table(">ID", "TASK", "=STATE", "QUEUE", ">PRIO", ">ATTEMPTS", "=RUN AT", "KEY", "LAST ERROR");
            page.jobs().forEach(job -> {
                Table unused = table.row(
                        job.id(),
                        job.taskIdentifier(),
                        state(job),
                        job.queueName(),
                        job.priority(),
                        job.attempts() + "/" + job.maxAttempts(),
                        Text.seconds(job.runAt()),
                        job.key(),
                        job.lastError());
            });
            session.writeTable(table);
        }
        if (!session.isJson()) {
            tellRest(page);
        }
        return ExitStatus.OK;
    }

    private void tellRest(JobPage page) {
        if (page.limited() && page.next() != null) {
            session.say("Read as many jobs as it may; continue with --after " + page.next());
        } else if (page.limited()) {
            session.say("Read as many jobs as it may; others may be missing.");
        } else if (page.next() != null) {
            session.say("There are more: --after " + page.next());
        }
    }

    /** That by which it was asked for is the database's own answer. */
    private String state(Job job) {
        JobState asked = filters.state();
        return asked == null ? States.of(job) : States.name(asked);
    }
}
