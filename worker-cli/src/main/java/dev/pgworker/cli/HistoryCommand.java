package dev.pgworker.cli;

import java.time.Instant;
import java.util.Locale;
import java.util.Map;

import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import tools.jackson.databind.util.RawValue;

import dev.pgworker.history.HistoryEntry;
import dev.pgworker.history.HistoryOutcome;
import dev.pgworker.history.HistoryPage;
import dev.pgworker.history.HistoryQuery;
import dev.pgworker.history.JobHistory;

/** Lists what became of jobs. */
@Command(
        name = "history",
        description = {
            "List ended runs and deleted jobs, latest first, if pgworker.history.enabled is set.",
            "With the id of a job, its runs only."
        },
        footer = {"  worker-cli history 4711", "  worker-cli history --outcome failed --from 2026-01-31T00:00:00Z"})
final class HistoryCommand extends SessionCommand {

    @Parameters(paramLabel = "ID", arity = "0..1", description = "The id of a job.")
    private @Nullable Long id;

    @Option(
            names = "--outcome",
            paramLabel = "OUTCOME",
            description = "succeeded, retried, failed, removed, cancelled or recovered.")
    private @Nullable HistoryOutcome outcome;

    @Option(names = "--task", paramLabel = "TASK", description = "Jobs of this task.")
    private @Nullable String task;

    @Option(names = "--queue", paramLabel = "QUEUE", description = "Jobs of this named queue.")
    private @Nullable String queue;

    @Option(names = "--key", paramLabel = "KEY", description = "Jobs that had this key.")
    private @Nullable String key;

    @Option(
            names = "--from",
            paramLabel = "TIME",
            converter = Times.TimeConverter.class,
            description = "What ended at this time or later.")
    private @Nullable Instant from;

    @Option(
            names = "--to",
            paramLabel = "TIME",
            converter = Times.TimeConverter.class,
            description = "What ended before this time.")
    private @Nullable Instant to;

    @Option(
            names = "--search",
            paramLabel = "TEXT",
            description = "Jobs whose key, error, result or payload contains this text, exactly as written.")
    private @Nullable String search;

    @Option(
            names = {"-n", "--limit"},
            paramLabel = "N",
            description = "Largest number of rows, 1 to 1000. Default: ${DEFAULT-VALUE}.")
    private int limit = 50;

    @Option(
            names = "--after",
            paramLabel = "PLACE",
            description = "Continue after the position that the previous page has shown.")
    private @Nullable String after;

    HistoryCommand(Session session) {
        super(session);
    }

    @Override
    public Integer call() {
        JobHistory history = session.queries().history();
        HistoryPage page = id == null ? history.list(query()) : new HistoryPage(history.of(id), null, false);
        if (session.isJson()) {
            session.writeJson(Json.object(
                    "entries",
                    page.entries().stream().map(HistoryCommand::json).toList(),
                    "next",
                    page.next(),
                    "limited",
                    page.limited() ? true : null));
            return ExitStatus.OK;
        }
        Table table =
                new Table(">JOB", "TASK", "=OUTCOME", "=ENDED", ">TOOK", ">ATTEMPT", "QUEUE", "KEY", "WORKER", "ERROR");
        page.entries().forEach(entry -> {
            Table unused = table.row(
                    entry.jobId(),
                    entry.taskIdentifier(),
                    name(entry.outcome()),
                    Text.seconds(entry.endedAt()),
                    entry.took() == null ? null : Text.duration(entry.took()),
                    entry.attempt() + "/" + entry.maxAttempts(),
                    entry.queueName(),
                    entry.key(),
                    entry.workerId(),
                    entry.error());
        });
        session.writeTable(table);
        if (page.next() != null) {
            session.say("There may be more: --after " + Text.line(page.next()));
        }
        if (page.entries().isEmpty() && !history.status().enabled()) {
            session.say("No history is kept: set pgworker.history.enabled in the application.");
        }
        return ExitStatus.OK;
    }

    private HistoryQuery query() {
        return HistoryQuery.builder()
                .outcome(outcome)
                .taskIdentifier(task)
                .queueName(queue)
                .key(key)
                .from(from)
                .to(to)
                .search(search)
                .pageSize(limit)
                .after(after)
                .build();
    }

    private static String name(HistoryOutcome outcome) {
        return outcome.name().toLowerCase(Locale.ROOT);
    }

    private static Map<String, Object> json(HistoryEntry entry) {
        return Json.object(
                "id", entry.jobId(),
                "task", entry.taskIdentifier(),
                "outcome", name(entry.outcome()),
                "endedAt", entry.endedAt(),
                "startedAt", entry.startedAt(),
                "took", entry.took() == null ? null : entry.took().toString(),
                "attempt", entry.attempt(),
                "maxAttempts", entry.maxAttempts(),
                "queue", entry.queueName(),
                "key", entry.key(),
                "priority", entry.priority(),
                "runAt", entry.runAt(),
                "createdAt", entry.createdAt(),
                "flags", entry.flags(),
                "workerId", entry.workerId(),
                "error", entry.error(),
                "result", entry.result() == null ? null : new RawValue(entry.result()),
                "traceId", entry.traceId(),
                "payload", entry.payload() == null ? null : new RawValue(entry.payload()));
    }
}
