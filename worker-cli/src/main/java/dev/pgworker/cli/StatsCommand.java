package dev.pgworker.cli;

import java.util.Map;

import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

import dev.pgworker.job.JobBacklog;
import dev.pgworker.job.JobCounts;
import dev.pgworker.job.JobQueries;

/** Tells how many jobs there are. */
@Command(
        name = "stats",
        description = {
            "Show the number of jobs in each state, with estimates above 10,000.",
            "With --exact or a filter, count every job, including running ones."
        },
        footer = {"  worker-cli stats", "  worker-cli stats --queue mail --output json"})
final class StatsCommand extends SessionCommand {

    @Option(names = "--exact", description = "Count every job.")
    private boolean exact;

    @Mixin
    private JobFilters filters = new JobFilters();

    StatsCommand(Session session) {
        super(session);
    }

    @Override
    public Integer call() {
        JobQueries queries = session.queries();
        if (exact || !filters.isEmpty()) {
            printCounts(queries.count(filters.query(null)));
        } else {
            printBacklog(queries.backlog());
        }
        return ExitStatus.OK;
    }

    private void printCounts(JobCounts counts) {
        if (session.isJson()) {
            session.writeJson(Json.object(
                    "ready", counts.ready(),
                    "scheduled", counts.scheduled(),
                    "retrying", counts.retrying(),
                    "limited", counts.limited(),
                    "running", counts.running(),
                    "failed", counts.failed(),
                    "total", counts.total()));
            return;
        }
        session.writeTable(new Table(">READY", ">SCHEDULED", ">RETRYING", ">LIMITED", ">RUNNING", ">FAILED", ">TOTAL")
                .row(
                        counts.ready(),
                        counts.scheduled(),
                        counts.retrying(),
                        counts.limited(),
                        counts.running(),
                        counts.failed(),
                        counts.total()));
    }

    private void printBacklog(JobBacklog backlog) {
        if (session.isJson()) {
            session.writeJson(json(backlog));
            return;
        }
        session.writeTable(
                new Table(">READY", ">SCHEDULED", ">RETRYING", ">LIMITED", ">FAILED", ">OLDEST DUE", ">WORKERS")
                        .row(
                                backlog.ready(),
                                backlog.scheduled(),
                                backlog.retrying(),
                                backlog.limited(),
                                backlog.failed(),
                                oldestDue(backlog),
                                backlog.workers()));
        if (backlog.estimated()) {
            session.say("Numbers above 10,000 are estimates; --exact counts.");
        }
    }

    static @Nullable String oldestDue(JobBacklog backlog) {
        return backlog.oldestDue() == null ? null : Text.duration(backlog.oldestDue());
    }

    static Map<String, Object> json(JobBacklog backlog) {
        return Json.object(
                "ready", backlog.ready(),
                "scheduled", backlog.scheduled(),
                "retrying", backlog.retrying(),
                "limited", backlog.limited(),
                "failed", backlog.failed(),
                "oldestDueSeconds",
                        backlog.oldestDue() == null ? null : backlog.oldestDue().toMillis() / 1000.0,
                "workers", backlog.workers(),
                "estimated", backlog.estimated());
    }
}
