package dev.pgworker.dashboard;

import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;

import org.jspecify.annotations.Nullable;
import org.springframework.web.util.UriUtils;

import dev.pgworker.Worker;
import dev.pgworker.WorkerStatus;
import dev.pgworker.history.HistoryStatus;
import dev.pgworker.job.ActiveWorker;
import dev.pgworker.job.JobBacklog;
import dev.pgworker.job.Pause;
import dev.pgworker.job.PauseTarget;
import dev.pgworker.schedule.RecurringJob;

import static java.nio.charset.StandardCharsets.UTF_8;

/** What somebody should look at, in plain words, the worst first. */
final class Attention {

    private static final Duration OLD = Duration.ofMinutes(5);
    private static final Duration VERY_OLD = Duration.ofHours(1);

    private static final int MOST_PAUSES = 5;

    private final Source source;
    private final Overviews.Snapshot snapshot;
    private final List<Item> items = new ArrayList<>();

    Attention(Source source, Overviews.Snapshot snapshot) {
        this.source = source;
        this.snapshot = snapshot;
    }

    private enum Level {
        ERROR,
        WARNING,
        INFO
    }

    private record Item(Level level, String text, @Nullable String link) {

        Map<String, @Nullable Object> view() {
            return new View()
                    .put("level", level)
                    .put("text", text)
                    .put("link", link)
                    .map();
        }
    }

    List<Map<String, @Nullable Object>> list() {
        backlog();
        failures();
        schedules();
        pauses();
        workers();
        thisWorker();
        HistoryStatus history = snapshot.history().value();
        if (history == null) {
            add(Level.INFO, String.valueOf(snapshot.history().error()), null);
        } else if (!history.enabled()) {
            add(Level.INFO, "Finished jobs are not kept: set pgworker.history.enabled=true to keep them.", null);
        }
        if (history != null && history.losses() != null) {
            add(
                    Level.WARNING,
                    count(history.losses().jobs(), "job has", "jobs have")
                            + " ended within the last day without an entry in the history: "
                            + history.losses().reason(),
                    "history");
        }
        if (!source.recordsStatistics()) {
            add(Level.INFO, "No figures are recorded: pgworker.statistics.enabled is false.", null);
        }
        return items.stream()
                .sorted(Comparator.comparing(Item::level))
                .map(Item::view)
                .toList();
    }

    private void add(Level level, String text, @Nullable String link) {
        items.add(new Item(level, text, link));
    }

    private void backlog() {
        JobBacklog backlog = snapshot.backlog();
        if (backlog.workers() == 0 && backlog.ready() > 0) {
            add(
                    Level.ERROR,
                    count(backlog.ready(), "job is due", "jobs are due")
                            + ", and no worker has sent a heartbeat within five minutes. (Node.js workers send none.)",
                    "workers");
        }
        Duration oldest = backlog.oldestDue();
        if (oldest != null && oldest.compareTo(OLD) >= 0) {
            add(
                    oldest.compareTo(VERY_OLD) >= 0 ? Level.ERROR : Level.WARNING,
                    "The oldest due job has been waiting for " + words(oldest) + ".",
                    "jobs?state=ready&sort=run_at");
        }
    }

    private void failures() {
        long recent = snapshot.lastHour() == null ? 0 : snapshot.lastHour().failed();
        long failed = snapshot.backlog().failed();
        if (recent > 0) {
            add(
                    Level.ERROR,
                    count(recent, "run", "runs") + " failed permanently within the last hour.",
                    failed > 0 ? "jobs?state=failed&sort=updated" : null);
        } else if (failed > 0) {
            add(
                    Level.WARNING,
                    (snapshot.backlog().estimated() && failed > 10_000 ? "About " : "")
                            + count(failed, "job has", "jobs have")
                            + " failed permanently, and waits for your decision."
                                    .replace("waits", failed == 1 ? "waits" : "wait"),
                    "jobs?state=failed&sort=updated");
        }
    }

    private void schedules() {
        List<RecurringJob> problems = snapshot.problems();
        if (problems.isEmpty()) {
            return;
        }
        RecurringJob first = problems.get(0);
        if (problems.size() == 1) {
            add(
                    Level.ERROR,
                    "The schedule " + first.id() + " is not executed: " + first.problem(),
                    "recurring/schedule?name=" + UriUtils.encode(first.id(), UTF_8));
            return;
        }
        boolean more = problems.size() == Overviews.MOST_PROBLEMS;
        add(
                Level.ERROR,
                problems.size() + (more ? " or more" : "") + " schedules are not executed, such as " + first.id() + ": "
                        + first.problem(),
                "recurring?show=problem");
    }

    /** Everything is said on every page. */
    private void pauses() {
        snapshot.pauses().stream()
                .filter(pause -> pause.target().kind() != PauseTarget.Kind.EVERYTHING)
                .limit(MOST_PAUSES)
                .forEach(pause -> {
                    Instant since = pause.since().truncatedTo(ChronoUnit.SECONDS);
                    String what = new Pause(pause.target(), since, pause.by(), pause.reason()).text();
                    boolean task = pause.target().kind() == PauseTarget.Kind.TASK;
                    add(
                            Level.WARNING,
                            Character.toUpperCase(what.charAt(0)) + what.substring(1) + ".",
                            task ? "tasks" : "queues");
                });
    }

    private void workers() {
        List<String> stale = snapshot.workers().stream()
                .filter(ActiveWorker::stale)
                .map(ActiveWorker::id)
                .toList();
        if (!stale.isEmpty()) {
            add(
                    Level.WARNING,
                    count(stale.size(), "worker sends", "workers send")
                            + " no heartbeat for too long; their jobs are given back after a while."
                                    .replace("their", stale.size() == 1 ? "its" : "their"),
                    "workers");
        }
    }

    private static boolean hasNoWork(Worker worker) {
        return worker.tasks().isEmpty()
                && worker.cronItems().isEmpty()
                && worker.declaredSchedules().isEmpty();
    }

    private void thisWorker() {
        Worker worker = source.instance().worker();
        if (worker == null || hasNoWork(worker)) {
            return;
        }
        WorkerStatus status = worker.status();
        if (status == null) {
            if (source.instance().autoStartup() || worker.hasFailed()) {
                add(Level.ERROR, "The worker of this instance does not run; see its log.", "workers");
            }
            return;
        }
        running(status);
    }

    private void running(WorkerStatus status) {
        if (!status.deadThreads().isEmpty()) {
            add(
                    Level.ERROR,
                    "Threads of the worker have ended: " + String.join(", ", status.deadThreads()) + ".",
                    null);
        }
        if (!status.stuckThreads().isEmpty()) {
            add(Level.ERROR, "Threads of the worker hang: " + String.join(", ", status.stuckThreads()) + ".", null);
        }
        if (!status.starting().isEmpty()) {
            add(
                    Level.WARNING,
                    "The worker of this instance is starting: " + String.join(", ", status.starting()) + ".",
                    "workers");
        }
        if (status.outage()) {
            add(Level.ERROR, "The worker of this instance cannot use the database.", null);
        }
        if (status.stall() != null) {
            add(Level.ERROR, "Due jobs do not start although a handler is free: " + status.stall(), null);
        }
        for (String obstacle : status.heldUp()) {
            add(Level.WARNING, "The worker of this instance is held up: " + obstacle + ".", null);
        }
        for (WorkerStatus.UnservedTask unserved : status.unservedTasks()) {
            add(
                    Level.WARNING,
                    "No worker serves the task " + unserved.task() + ", which has due jobs."
                            + (unserved.closest() == null ? "" : " Is " + unserved.closest() + " meant?"),
                    "jobs?task=" + UriUtils.encode(unserved.task(), UTF_8));
        }
        WorkerStatus.HeldSnapshot held = status.heldSnapshot();
        if (held != null) {
            add(
                    Level.WARNING,
                    "Finished jobs cannot be vacuumed, because a snapshot has been held for " + words(held.age())
                            + " by " + held.holder() + ".",
                    null);
        }
    }

    private static String count(long number, String one, String many) {
        return number + " " + (number == 1 ? one : many);
    }

    private static String words(Duration duration) {
        if (duration.compareTo(Duration.ofDays(2)) >= 0) {
            return duration.toDays() + " days";
        }
        if (duration.compareTo(Duration.ofHours(2)) >= 0) {
            return duration.toHours() + " hours";
        }
        return duration.toMinutes() <= 1 ? duration.toSeconds() + " seconds" : duration.toMinutes() + " minutes";
    }
}
