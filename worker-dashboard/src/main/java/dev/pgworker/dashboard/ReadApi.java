package dev.pgworker.dashboard;

import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;

import dev.pgworker.Worker;
import dev.pgworker.autoconfigure.WorkerInstance;
import dev.pgworker.history.HistoryEntry;
import dev.pgworker.history.HistoryOutcome;
import dev.pgworker.history.HistoryPage;
import dev.pgworker.history.HistoryQuery;
import dev.pgworker.job.ActiveWorker;
import dev.pgworker.job.Cancellation;
import dev.pgworker.job.CleanupPreview;
import dev.pgworker.job.CleanupTask;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobCounts;
import dev.pgworker.job.JobPage;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobSort;
import dev.pgworker.job.JobState;
import dev.pgworker.job.JobWait;
import dev.pgworker.job.NamedQueue;
import dev.pgworker.job.RunningJob;
import dev.pgworker.job.TaskSummary;
import dev.pgworker.statistics.StatisticsPoint;
import dev.pgworker.statistics.TaskStatistics;
import dev.pgworker.step.JobStep;

/** What the pages read. Each method reads in one transaction, or one more for the history, and a bounded number of rows. */
final class ReadApi {

    /** As many jobs as one page reads in search of those that match. */
    private static final int SCAN = 50_000;

    /** What is selected has to be counted whole. */
    private static final int SELECTION_SCAN = 1_000_000;

    private static final int MOST_RUNNING = 200;
    private static final int MOST_TASKS = 1_000;

    private final Clock clock;
    private final PayloadRule payloads;
    private final Overviews overviews;
    private final CronViews crontabs = new CronViews();

    ReadApi(Clock clock, PayloadRule payloads, Overviews overviews) {
        this.clock = clock;
        this.payloads = payloads;
        this.overviews = overviews;
    }

    private JobViews views(Visitor visitor) {
        return new JobViews(payloads, visitor, clock.instant());
    }

    View overview(Source source) {
        return overviews.view(source, source.read(() -> overviews.read(source)));
    }

    View series(Source source, Input input) {
        Duration window = input.window("window", Duration.ofHours(1));
        int points = input.integer("points", 60, 1, 1440);
        List<StatisticsPoint> series =
                source.read(() -> source.queries().statistics().series(window, points));
        Duration width = window.dividedBy(points);
        return new View()
                .put(
                        "points",
                        series.stream()
                                .map(point -> WorkerViews.point(point, width))
                                .toList());
    }

    /**
     * Reads what jobs have to match.
     *
     * @throws IllegalArgumentException if a parameter is wrong
     */
    JobQuery.Builder filter(Input input) {
        return JobQuery.builder()
                .state(input.constant("state", JobState.class))
                .taskIdentifier(input.text("task"))
                .queueName(input.text("queue"))
                .key(input.text("key"))
                .flag(input.text("flag"))
                .search(input.text("search"))
                .from(input.instant("from"))
                .to(input.instant("to"))
                .payloadLimit(input.text("search") == null || payloads.allShown() ? payloads.readOfEach() : 0)
                .scanLimit(SCAN);
    }

    View preview(Source source, Bulks bulks, DashboardAction action, Input filter, Visitor visitor) {
        return bulks.preview(
                source, action, filter(filter).scanLimit(SELECTION_SCAN).build(), visitor, views(visitor));
    }

    View jobs(Source source, Input input, Visitor visitor) {
        JobSort sort = input.constant("sort", JobSort.class);
        JobQuery query = filter(input)
                .sort(sort == null ? JobSort.NEWEST : sort)
                .pageSize(input.integer("limit", 50, 1, 200))
                .after(input.number("after"))
                .build();
        JobPage page = source.read(() -> source.queries().list(query));
        JobViews views = views(visitor);
        View view = new View()
                .put("jobs", page.jobs().stream().map(views::listed).toList())
                .put("next", page.next())
                .put("limited", page.limited());
        return query.search() == null ? view : view.put("searchedPayloads", payloads.allShown());
    }

    View count(Source source, Input input) {
        JobQuery filter = filter(input).build();
        JobCounts counts = source.read(() -> source.queries().count(filter));
        return new View()
                .put("ready", counts.ready())
                .put("scheduled", counts.scheduled())
                .put("retrying", counts.retrying())
                .put("limited", counts.limited())
                .put("running", counts.running())
                .put("failed", counts.failed())
                .put("total", counts.total())
                .put("complete", counts.complete());
    }

    /** What is known of a job that is there. */
    private record JobStory(
            @Nullable Job job,
            @Nullable JobWait waiting,
            @Nullable RunningJob running) {}

    private static String task(@Nullable Job job, @Nullable List<HistoryEntry> history) {
        return job != null
                ? job.taskIdentifier()
                : history == null ? "" : history.get(0).taskIdentifier();
    }

    View job(Source source, long id, Visitor visitor) {
        JobStory story = source.read(() -> {
            JobQueries queries = source.queries();
            Optional<Job> job =
                    queries.find(List.of(id), payloads.readOfOne()).stream().findFirst();
            return new JobStory(
                    job.orElse(null),
                    job.isPresent() ? queries.waitOf(id).orElse(null) : null,
                    job.filter(found -> found.lockedAt() != null)
                            .flatMap(found -> queries.running(MOST_RUNNING).stream()
                                    .filter(running -> running.job().id() == id)
                                    .findFirst())
                            .orElse(null));
        });
        Source.Part<List<HistoryEntry>> part = source.partBeside(
                "The history is not shown", () -> source.queries().history().of(id, payloads.readOfOne()));
        Source.Part<List<Cancellation>> cancelled = source.partBeside(
                "The cancellation is not shown", () -> source.queries().cancellations(List.of(id)));
        Source.Part<List<JobStep>> steps = source.partBeside(
                "The steps are not shown", () -> source.queries().steps(id, payloads.readOfOne() != 0));
        List<HistoryEntry> history = part.value();
        if (story.job() == null && (history == null || history.isEmpty())) {
            throw new Refusal(
                    404,
                    "There is no job " + id
                            + (history == null ? ". " + part.error() : ", and no history of it is kept."));
        }
        JobViews views = views(visitor);
        return new View()
                .put("job", story.job() == null ? null : views.whole(story.job()))
                .put("wait", JobViews.wait(story.waiting()))
                .put("running", story.running() == null ? null : views.running(story.running()))
                .put("cancellation", JobViews.cancellation(cancelled.value()))
                .put("steps", views.steps(steps.value(), task(story.job(), history)))
                .put(
                        "history",
                        history == null
                                ? List.of()
                                : history.stream()
                                        .limit(200)
                                        .map(entry -> views.entry(entry, true))
                                        .toList())
                .put("historyError", part.error());
    }

    View history(Source source, Input input, Visitor visitor) {
        HistoryQuery query = HistoryQuery.builder()
                .outcome(input.constant("outcome", HistoryOutcome.class))
                .taskIdentifier(input.text("task"))
                .queueName(input.text("queue"))
                .key(input.text("key"))
                .search(input.text("search"))
                .from(input.instant("from"))
                .to(input.instant("to"))
                .payloadLimit(payloads.readOfEach())
                .pageSize(input.integer("limit", 50, 1, 200))
                .after(input.text("after"))
                .build();
        if (query.search() != null && !payloads.allShown()) {
            throw new IllegalArgumentException(
                    "search also reads payloads and results of finished jobs, which are hidden; filter by task, queue or"
                            + " key instead, or set pgworker.dashboard.payloads=shown");
        }
        JobViews views = views(visitor);
        return source.read(() -> {
            HistoryPage page = source.queries().history().list(query);
            return new View()
                    .put(
                            "entries",
                            page.entries().stream()
                                    .map(entry -> views.entry(entry, false))
                                    .toList())
                    .put("next", page.next())
                    .put("limited", page.limited())
                    .put(
                            "status",
                            WorkerViews.history(source.part(
                                    "The size of the history is not shown",
                                    () -> source.queries().history().status())));
        });
    }

    View queues(Source source, Input input) {
        int limit = input.integer("limit", 100, 1, 1000);
        return source.read(() -> {
            List<NamedQueue> queues = source.queries().queues(input.text("after"), limit);
            Map<String, Instant> running = source.queries().running(MOST_RUNNING).stream()
                    .filter(job -> job.job().queueName() != null)
                    .collect(Collectors.toMap(
                            job -> String.valueOf(job.job().queueName()), RunningJob::startedAt, (one, other) -> one));
            return new View()
                    .put(
                            "queues",
                            queues.stream()
                                    .map(queue -> queue(queue, running.get(queue.name())))
                                    .toList())
                    .put(
                            "next",
                            queues.size() < limit ? null : queues.get(limit - 1).name());
        });
    }

    /**
     * Returns a queue of the list.
     *
     * @param runningSince when its job started; null if none has been running for a second
     */
    private static Map<String, @Nullable Object> queue(NamedQueue queue, @Nullable Instant runningSince) {
        return new View()
                .put("name", queue.name())
                .put("waiting", queue.waiting())
                .put("waitingMore", queue.more())
                .put("busy", queue.lockedAt() != null)
                .put("runningSince", runningSince)
                .put("lockedBy", queue.lockedBy())
                .put("pause", JobViews.pause(queue.pause()))
                .map();
    }

    View tasks(Source source, Input input) {
        Duration window = input.window("window", Duration.ofHours(24));
        return source.read(() -> {
            Map<String, TaskSummary> summaries = source.queries().tasks(null, MOST_TASKS).stream()
                    .collect(Collectors.toMap(TaskSummary::identifier, Function.identity()));
            Map<String, TaskStatistics> figures = source.queries().statistics().tasks(window).stream()
                    .collect(Collectors.toMap(TaskStatistics::taskIdentifier, Function.identity()));
            Set<String> served = Stream.concat(Stream.of(source.instance()), source.siblings().stream())
                    .map(WorkerInstance::worker)
                    .filter(Objects::nonNull)
                    .flatMap(worker -> worker.tasks().stream())
                    .collect(Collectors.toSet());
            Set<String> names = new TreeSet<>(summaries.keySet());
            names.addAll(figures.keySet());
            return new View()
                    .put(
                            "tasks",
                            names.stream()
                                    .map(name ->
                                            task(name, summaries.get(name), served.contains(name), figures.get(name)))
                                    .toList())
                    .put("recorded", source.recordsStatistics());
        });
    }

    private static Map<String, @Nullable Object> task(
            String name, @Nullable TaskSummary summary, boolean servedHere, @Nullable TaskStatistics figures) {
        View view = new View()
                .put("name", name)
                .put("workers", summary == null ? List.of() : summary.workerIds())
                .put("servedHere", servedHere)
                .put("waiting", summary == null ? 0 : summary.waiting())
                .put("failedJobs", summary == null ? 0 : summary.failed())
                .put("pause", JobViews.pause(summary == null ? null : summary.pause()));
        WorkerViews.put(view, figures);
        return view.map();
    }

    View crontab(Source source, Visitor visitor) {
        return crontabs.view(source, views(visitor), payloads.readOfEach());
    }

    View workers(Source source, Visitor visitor) {
        JobViews views = views(visitor);
        return source.read(() -> {
            Map<String, List<RunningJob>> running = source.queries().running(MOST_RUNNING).stream()
                    .filter(job -> job.job().lockedBy() != null)
                    .collect(Collectors.groupingBy(
                            job -> String.valueOf(job.job().lockedBy())));
            return new View()
                    .put(
                            "workers",
                            source.queries().registeredWorkers().stream()
                                    .map(worker -> WorkerViews.worker(
                                            worker,
                                            source,
                                            running.getOrDefault(worker.id(), List.of()).stream()
                                                    .map(views::running)
                                                    .toList()))
                                    .toList());
        });
    }

    View maintenance(Source source) {
        Worker worker = source.instance().worker();
        return source.read(() -> {
            CleanupPreview preview = source.queries().previewCleanup(EnumSet.allOf(CleanupTask.class));
            View counts = new View();
            preview.counts().forEach((task, count) -> counts.put(task.name(), count));
            return new View()
                    .put("cleanup", counts)
                    .put("limit", preview.limit())
                    .put(
                            "deadWorkers",
                            source.queries().registeredWorkers().stream()
                                    .filter(ActiveWorker::stale)
                                    .map(ActiveWorker::id)
                                    .toList())
                    .put("status", worker == null ? null : WorkerViews.status(worker.status()));
        });
    }
}
