package dev.pgworker.autoconfigure.endpoint;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.jspecify.annotations.Nullable;

import dev.pgworker.Worker;
import dev.pgworker.autoconfigure.WorkerInstance;
import dev.pgworker.history.HistoryEntry;
import dev.pgworker.history.HistoryOutcome;
import dev.pgworker.history.HistoryPage;
import dev.pgworker.history.HistoryQuery;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobBacklog;
import dev.pgworker.job.JobPage;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobSort;
import dev.pgworker.job.JobState;
import dev.pgworker.job.NamedQueue;
import dev.pgworker.job.RunningJob;
import dev.pgworker.job.TaskSummary;
import dev.pgworker.step.JobStep;

/** What the endpoint shows. */
final class EndpointViews {

    /** Of each payload in a list so many characters are read. */
    static final int MOST_OF_PAYLOAD = 100_000;

    private final WorkerInstance instance;
    private final JobQueries queries;
    private final boolean showPayloads;

    EndpointViews(WorkerInstance instance, boolean showPayloads) {
        this.instance = instance;
        queries = instance.jobQueries();
        this.showPayloads = showPayloads;
    }

    /**
     * Returns what there is to do and how the worker does.
     *
     * @param all all workers of the application
     */
    Object overview(List<WorkerInstance> all) {
        Map<String, Object> view = new LinkedHashMap<>();
        if (all.size() > 1) {
            view.put("instance", instance.name());
            view.put("instances", all.stream().map(WorkerInstance::name).toList());
        }
        JobBacklog backlog = queries.backlog();
        view.put("backlog", backlog);
        Worker worker = instance.worker();
        if (worker != null && !worker.tasks().isEmpty()) {
            view.put("tasks", worker.tasks());
            put(view, "status", worker.status());
        }
        return view;
    }

    Object jobs(
            EndpointFilters filters,
            @Nullable String sort,
            @Nullable String scanLimit,
            @Nullable String limit,
            @Nullable String after) {
        Integer pageSize = EndpointParameters.integer("limit", limit);
        requireLimit(pageSize);
        JobSort order = EndpointParameters.constant("sort", sort, JobSort.class);
        JobQuery query = filters.query(showPayloads)
                .sort(order == null ? JobSort.NEWEST : order)
                .scanLimit(EndpointParameters.integer("scanLimit", scanLimit))
                .pageSize(pageSize == null ? JobQuery.ALL.pageSize() : pageSize)
                .after(EndpointParameters.id("after", after))
                .build();
        JobPage page = queries.list(query);
        Instant now = queries.now();
        Map<String, Object> view = page(
                "jobs",
                page.jobs().stream()
                        .map(job -> view(job, query.state() == null ? JobState.of(job, now) : query.state()))
                        .toList(),
                page.next());
        view.put("limited", page.limited());
        return view;
    }

    private static void requireLimit(@Nullable Integer limit) {
        EndpointParameters.requireRange("limit", limit, 1, 1000);
    }

    private static Map<String, Object> page(String name, List<?> items, @Nullable Object next) {
        Map<String, Object> page = new LinkedHashMap<>();
        page.put(name, items);
        put(page, "next", next);
        return page;
    }

    @Nullable Object job(String id) {
        Long number = EndpointParameters.id("id", id);
        return number == null
                ? null
                : queries.find(number)
                        .map(job -> {
                            Map<String, Object> view = view(job, JobState.of(job, queries.now()));
                            queries.waitOf(number).ifPresent(wait -> view.put("wait", wait));
                            put(view, "cancellation", cancellation(id));
                            List<JobStep> steps = queries.steps(number, showPayloads);
                            put(view, "steps", steps.isEmpty() ? null : steps);
                            return view;
                        })
                        .orElse(null);
    }

    /** Returns what became of a job that was cancelled while it ran. */
    @Nullable Object cancellation(String id) {
        Long number = EndpointParameters.id("id", id);
        return number == null
                ? null
                : queries.cancellations(List.of(number)).stream().findFirst().orElse(null);
    }

    /** Returns the jobs that run for a while, with what they say of their progress. */
    Object running(@Nullable String limit) {
        Integer given = EndpointParameters.integer("limit", limit);
        requireLimit(given);
        List<Map<String, Object>> running = new ArrayList<>();
        for (RunningJob each : queries.running(given == null ? 100 : given)) {
            Map<String, Object> view = view(each.job(), JobState.RUNNING);
            view.put("startedAt", each.startedAt());
            put(view, "progress", each.progress());
            running.add(view);
        }
        return Map.of("running", running);
    }

    Object tasks(@Nullable String limit, @Nullable String after) {
        Integer given = EndpointParameters.integer("limit", limit);
        requireLimit(given);
        int most = given == null ? 100 : given;
        List<TaskSummary> tasks = queries.tasks(after, most);
        return page(
                "tasks", tasks, tasks.size() < most ? null : tasks.get(most - 1).identifier());
    }

    /** Returns what became of jobs, the latest first. */
    Object history(EndpointFilters filters, @Nullable String outcome, @Nullable String limit, @Nullable String after) {
        Integer pageSize = EndpointParameters.integer("limit", limit);
        requireLimit(pageSize);
        if (filters.search() != null && !showPayloads) {
            throw new IllegalArgumentException(
                    "search also matches payloads, which are hidden unless pgworker.endpoint.show-payloads is true");
        }
        HistoryPage page = queries.history()
                .list(HistoryQuery.builder()
                        .outcome(EndpointParameters.constant("outcome", outcome, HistoryOutcome.class))
                        .taskIdentifier(filters.task())
                        .queueName(filters.queue())
                        .key(filters.key())
                        .from(EndpointParameters.instant("from", filters.from()))
                        .to(EndpointParameters.instant("to", filters.to()))
                        .search(filters.search())
                        .pageSize(pageSize == null ? HistoryQuery.ALL.pageSize() : pageSize)
                        .after(after)
                        .build());
        Map<String, Object> view =
                page("entries", page.entries().stream().map(this::view).toList(), page.next());
        view.put("limited", page.limited());
        view.put("status", queries.history().status());
        return view;
    }

    Object historyOf(String id) {
        Long number = EndpointParameters.id("id", id);
        List<HistoryEntry> entries =
                number == null ? List.of() : queries.history().of(number);
        return Map.of("entries", entries.stream().map(this::view).toList());
    }

    private Map<String, Object> view(HistoryEntry entry) {
        Map<String, Object> view = new LinkedHashMap<>();
        view.put("id", entry.jobId());
        view.put("task", entry.taskIdentifier());
        view.put("outcome", entry.outcome());
        view.put("endedAt", entry.endedAt());
        put(view, "startedAt", entry.startedAt());
        put(view, "took", entry.took());
        view.put("attempt", entry.attempt());
        view.put("maxAttempts", entry.maxAttempts());
        put(view, "queue", entry.queueName());
        put(view, "key", entry.key());
        view.put("priority", entry.priority());
        view.put("runAt", entry.runAt());
        view.put("createdAt", entry.createdAt());
        view.put("flags", entry.flags());
        put(view, "workerId", entry.workerId());
        put(view, "error", entry.error());
        put(view, "traceId", entry.traceId());
        if (showPayloads) {
            put(view, "payload", entry.payload());
            put(view, "result", entry.result());
        }
        return view;
    }

    /** Returns the figures of a window of time, 24 hours unless it is given. */
    Object statistics(@Nullable String window, @Nullable String points) {
        Duration given = EndpointParameters.duration("window", window);
        Duration back = given == null ? Duration.ofHours(24) : given;
        Integer number = EndpointParameters.integer("points", points);
        return Map.of(
                "series", queries.statistics().series(back, number == null ? 24 : number),
                "tasks", queries.statistics().tasks(back));
    }

    private Map<String, Object> view(Job job, JobState state) {
        Map<String, Object> view = new LinkedHashMap<>();
        view.put("id", job.id());
        view.put("task", job.taskIdentifier());
        view.put("state", state);
        if (showPayloads) {
            view.put("payload", job.payload());
        }
        put(view, "queue", job.queueName());
        view.put("priority", job.priority());
        view.put("runAt", job.runAt());
        view.put("attempts", job.attempts());
        view.put("maxAttempts", job.maxAttempts());
        put(view, "lastError", job.lastError());
        view.put("createdAt", job.createdAt());
        view.put("updatedAt", job.updatedAt());
        put(view, "key", job.key());
        put(view, "lockedAt", job.lockedAt());
        put(view, "lockedBy", job.lockedBy());
        view.put("revision", job.revision());
        view.put("flags", job.flags());
        return view;
    }

    private static void put(Map<String, Object> view, String name, @Nullable Object value) {
        if (value != null) {
            view.put(name, value);
        }
    }

    Object queues(@Nullable String limit, @Nullable String after) {
        Integer given = EndpointParameters.integer("limit", limit);
        requireLimit(given);
        int most = given == null ? 100 : given;
        List<NamedQueue> queues = queries.queues(after, most);
        return page(
                "queues",
                queues,
                queues.size() < most ? null : queues.get(most - 1).name());
    }

    Object pauses() {
        return Map.of(
                "pauses",
                queries.pauses().stream()
                        .map(pause -> {
                            Map<String, Object> view = new LinkedHashMap<>();
                            view.put("kind", pause.target().kind());
                            put(view, "name", pause.target().name());
                            view.put("since", pause.since());
                            put(view, "by", pause.by());
                            put(view, "reason", pause.reason());
                            return view;
                        })
                        .toList());
    }

    Object workers() {
        return Map.of("workers", queries.activeWorkers());
    }
}
