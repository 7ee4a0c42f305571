package dev.pgworker.cli;

import java.io.PrintWriter;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

import org.jspecify.annotations.Nullable;
import org.springframework.dao.DataAccessException;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

import dev.pgworker.job.ActiveWorker;
import dev.pgworker.job.JobBacklog;
import dev.pgworker.job.JobQueries;

/** Shows again and again how many jobs there are. */
@Command(
        name = "watch",
        description = {
            "Show the number of jobs and the workers repeatedly, until you press Ctrl-C.",
            "A terminal is redrawn; a file or pipe gets a line each time."
        },
        footer = {"  worker-cli watch --interval 5s"})
final class WatchCommand extends SessionCommand {

    private static final String HOME = "\u001b[H";
    private static final String END_OF_LINE = "\u001b[K";
    private static final String END_OF_SCREEN = "\u001b[J";
    private static final int MOST_WORKERS = 20;

    @Option(
            names = {"-i", "--interval"},
            paramLabel = "DURATION",
            converter = Times.DurationConverter.class,
            description = "How long to wait between two looks, at least 100ms. Default: 2s.")
    private Duration interval = Duration.ofSeconds(2);

    @Option(names = "--count", paramLabel = "N", description = "End after so many looks. Default: never.")
    private @Nullable Integer count;

    private boolean began;

    WatchCommand(Session session) {
        super(session);
    }

    @Override
    public Integer call() throws InterruptedException {
        if (interval.compareTo(Duration.ofMillis(100)) < 0 || interval.compareTo(Duration.ofDays(1)) > 0) {
            throw CommandFailure.usage("--interval must be between 100ms and 1d");
        }
        if (count != null && count < 1) {
            throw CommandFailure.usage("--count must be at least 1, but is " + count);
        }
        JobQueries queries = session.queries();
        for (int look = 0; count == null || look < count; look++) {
            if (look > 0) {
                Thread.sleep(interval.toMillis());
            }
            look(queries);
            session.terminal().flush();
        }
        return ExitStatus.OK;
    }

    /** A look that fails after one that did not is told, and the next one may succeed. */
    private void look(JobQueries queries) {
        JobBacklog backlog;
        List<ActiveWorker> workers;
        try {
            backlog = queries.backlog();
            workers = isDrawn() ? queries.activeWorkers() : List.of();
        } catch (DataAccessException e) {
            if (!began) {
                throw e;
            }
            tell(e);
            session.disconnect();
            return;
        }
        if (session.isJson()) {
            Map<String, Object> line = new LinkedHashMap<>();
            line.put("at", Instant.now().toString());
            line.putAll(StatsCommand.json(backlog));
            session.terminal().out().println(Json.writeLine(line));
        } else if (isDrawn()) {
            draw(backlog, workers);
        } else {
            writeRow(backlog);
        }
        began = true;
    }

    private boolean isDrawn() {
        return session.terminal().isInteractive() && !session.isJson();
    }

    private void tell(DataAccessException failure) {
        String message = Text.line(Failure.of(failure, session.schema(), false).message());
        if (isDrawn()) {
            draw(List.of(Text.seconds(Instant.now()), "", message));
        } else {
            session.say(message);
        }
    }

    private void draw(JobBacklog backlog, List<ActiveWorker> workers) {
        List<String> lines = new ArrayList<>();
        lines.add("Schema " + session.schema().name() + ", " + Text.seconds(Instant.now()) + ", every "
                + Text.duration(interval) + ", Ctrl-C ends");
        lines.add("");
        lines.addAll(new Table(">READY", ">SCHEDULED", ">RETRYING", ">FAILED", ">OLDEST DUE")
                .row(
                        about(backlog, backlog.ready()),
                        about(backlog, backlog.scheduled()),
                        about(backlog, backlog.retrying()),
                        about(backlog, backlog.failed()),
                        StatsCommand.oldestDue(backlog))
                .lines(session.terminal()));
        lines.add("");
        Table table = new Table("WORKER", "=LAST HEARTBEAT", ">JOBS", "=STATE");
        workers.stream().limit(MOST_WORKERS).forEach(worker -> {
            Table unused = table.row(
                    worker.id(),
                    Text.seconds(worker.lastHeartbeatAt()),
                    worker.heldJobs(),
                    worker.stale() ? "stale" : "alive");
        });
        lines.addAll(table.lines(session.terminal()));
        if (workers.size() > MOST_WORKERS) {
            lines.add("and " + (workers.size() - MOST_WORKERS) + " more");
        }
        draw(lines);
    }

    private static String about(JobBacklog backlog, long number) {
        return (backlog.estimated() && number > 10_000 ? "~" : "") + number;
    }

    private void draw(List<String> lines) {
        PrintWriter out = session.terminal().out();
        int width = session.terminal().width();
        out.print(began ? HOME : HOME + END_OF_SCREEN);
        lines.forEach(line -> out.print(Text.cut(line, width) + END_OF_LINE + "\n"));
        out.print(END_OF_SCREEN);
    }

    private void writeRow(JobBacklog backlog) {
        PrintWriter out = session.terminal().out();
        String format = "%-20s %10s %10s %10s %10s %11s %8s%n";
        if (!began) {
            out.printf(Locale.ROOT, format, "AT", "READY", "SCHEDULED", "RETRYING", "FAILED", "OLDEST DUE", "WORKERS");
        }
        String oldest = StatsCommand.oldestDue(backlog);
        out.printf(
                Locale.ROOT,
                format,
                Text.seconds(Instant.now()),
                about(backlog, backlog.ready()),
                about(backlog, backlog.scheduled()),
                about(backlog, backlog.retrying()),
                about(backlog, backlog.failed()),
                oldest == null ? "" : oldest,
                backlog.workers());
    }
}
