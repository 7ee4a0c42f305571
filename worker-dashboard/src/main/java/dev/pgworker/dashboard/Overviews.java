package dev.pgworker.dashboard;

import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

import org.jspecify.annotations.Nullable;

import dev.pgworker.history.HistoryStatus;
import dev.pgworker.job.ActiveWorker;
import dev.pgworker.job.JobBacklog;
import dev.pgworker.job.JobPage;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.Pause;
import dev.pgworker.job.RunningJob;
import dev.pgworker.schedule.RecurringJob;
import dev.pgworker.statistics.StatisticsPoint;

/**
 * What there is to do and how the workers do, read once for everybody who asks at about the same time. What changes slowly is
 * read less often. Thread-safe.
 */
final class Overviews {

    private static final int MOST_RUNNING = 200;
    private static final int MOST_SHOWN = 20;

    /** More of them are as bad as these. */
    static final int MOST_PROBLEMS = 10;

    private static final Duration FRESH = Duration.ofMillis(1_500);
    private static final Duration SLOW = Duration.ofSeconds(10);

    private final Clock clock;
    private final PayloadRule payloads;
    private final Map<String, Known> known = new ConcurrentHashMap<>();

    Overviews(Clock clock, PayloadRule payloads) {
        this.clock = clock;
        this.payloads = payloads;
    }

    /**
     * What is known of a worker's schema.
     *
     * @param pauses what is paused
     * @param problems the first schedules that are not executed, because something is wrong with them
     * @param newestId the id of the newest job; null if there is none
     * @param lastHour what happened in the last hour
     * @param point what happened in the current minute
     */
    record Snapshot(
            Instant readAt,
            JobBacklog backlog,
            List<RunningJob> running,
            List<ActiveWorker> workers,
            Source.Part<HistoryStatus> history,
            List<Pause> pauses,
            List<RecurringJob> problems,
            @Nullable Long newestId,
            @Nullable StatisticsPoint point,
            @Nullable StatisticsPoint lastHour,
            Instant slowReadAt) {}

    /** The lock of one schema's reading, so that nobody reads what somebody else is reading. */
    private static final class Known {
        @Nullable Snapshot snapshot;
    }

    /** Returns what is known, at most a second and a half old. Inside {@link Source#read}. */
    Snapshot read(Source source) {
        Known of = known.computeIfAbsent(source.instance().name(), name -> new Known());
        synchronized (of) {
            Snapshot last = of.snapshot;
            Instant now = clock.instant();
            if (last != null && age(last.readAt(), now).compareTo(FRESH) < 0) {
                return last;
            }
            Snapshot snapshot = read(source, last, now);
            of.snapshot = snapshot;
            return snapshot;
        }
    }

    private static Duration age(Instant then, Instant now) {
        Duration age = Duration.between(then, now);
        // The clock may have been set back.
        return age.isNegative() ? SLOW : age;
    }

    private static Snapshot read(Source source, @Nullable Snapshot last, Instant now) {
        JobQueries queries = source.queries();
        boolean slow = last == null || age(last.slowReadAt(), now).compareTo(SLOW) >= 0;
        JobPage newest =
                queries.list(JobQuery.builder().pageSize(1).payloadLimit(0).build());
        List<StatisticsPoint> minute = queries.statistics().series(Duration.ofMinutes(1), 1);
        List<StatisticsPoint> hour = slow ? queries.statistics().series(Duration.ofHours(1), 1) : List.of();
        return new Snapshot(
                now,
                queries.backlog(),
                queries.running(MOST_RUNNING),
                last == null || slow ? queries.registeredWorkers() : last.workers(),
                last == null || slow ? history(source) : last.history(),
                queries.pauses(),
                last == null || slow ? source.schedulesWithProblem(MOST_PROBLEMS) : last.problems(),
                newest.jobs().isEmpty() ? null : newest.jobs().get(0).id(),
                minute.isEmpty() ? null : minute.get(minute.size() - 1),
                last == null || slow ? (hour.isEmpty() ? null : hour.get(0)) : last.lastHour(),
                last == null || slow ? now : last.slowReadAt());
    }

    private static Source.Part<HistoryStatus> history(Source source) {
        return source.part(
                "The history is not shown", () -> source.queries().history().status());
    }

    /** Shows a snapshot; it has no payloads, and is therefore the same for all visitors. */
    View view(Source source, Snapshot snapshot) {
        JobViews jobs = new JobViews(payloads, new Visitor(null), snapshot.readAt());
        JobBacklog backlog = snapshot.backlog();
        boolean recorded = source.recordsStatistics();
        return new View()
                .put("time", clock.instant())
                .put(
                        "backlog",
                        new View()
                                .put("ready", backlog.ready())
                                .put("scheduled", backlog.scheduled())
                                .put("retrying", backlog.retrying())
                                .put("limited", backlog.limited())
                                .put("failed", backlog.failed())
                                .put("running", snapshot.running().size())
                                .put("oldestDueMs", backlog.oldestDue())
                                .put("workers", backlog.workers())
                                .put("estimated", backlog.estimated()))
                .put(
                        "pauses",
                        snapshot.pauses().stream()
                                .limit(MOST_SHOWN)
                                .map(JobViews::pause)
                                .toList())
                .put("attention", new Attention(source, snapshot).list())
                .put(
                        "running",
                        snapshot.running().stream()
                                .limit(MOST_SHOWN)
                                .map(jobs::running)
                                .toList())
                .put(
                        "workers",
                        snapshot.workers().stream()
                                .limit(MOST_SHOWN)
                                .map(worker -> WorkerViews.worker(worker, source, List.of()))
                                .toList())
                .put("history", WorkerViews.history(snapshot.history()))
                .put("statistics", new View().put("recorded", recorded))
                .put("schema", source.instance().schema().name());
    }

    /** Adds what live pages need besides. */
    View live(Source source, Snapshot snapshot) {
        StatisticsPoint point = snapshot.point();
        return view(source, snapshot)
                .put("newestId", snapshot.newestId())
                .put("point", point == null ? null : WorkerViews.point(point, Duration.ofMinutes(1)));
    }
}
