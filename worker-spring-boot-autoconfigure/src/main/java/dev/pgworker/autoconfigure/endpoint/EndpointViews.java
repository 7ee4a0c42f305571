package dev.pgworker.autoconfigure.endpoint;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.jspecify.annotations.Nullable;

import dev.pgworker.Worker;
import dev.pgworker.autoconfigure.WorkerInstance;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobAdmin;
import dev.pgworker.job.JobBacklog;
import dev.pgworker.job.JobPage;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobState;
import dev.pgworker.job.NamedQueue;

/** What the endpoint shows. */
final class EndpointViews {

    private final WorkerInstance instance;
    private final JobAdmin admin;
    private final boolean showPayloads;

    EndpointViews(WorkerInstance instance, boolean showPayloads) {
        this.instance = instance;
        admin = instance.jobAdmin();
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
        JobBacklog backlog = admin.backlog();
        view.put("backlog", backlog);
        Worker worker = instance.worker();
        if (worker != null && !worker.tasks().isEmpty()) {
            view.put("tasks", worker.tasks());
            put(view, "status", worker.status());
        }
        return view;
    }

    Object jobs(
            @Nullable String state,
            @Nullable String task,
            @Nullable String queue,
            @Nullable String search,
            @Nullable String limit,
            @Nullable String after) {
        if (search != null && !showPayloads) {
            throw new IllegalArgumentException(
                    "search also matches payloads, which are hidden unless worker.endpoint.show-payloads is true");
        }
        Integer pageSize = EndpointParameters.integer("limit", limit);
        requireLimit(pageSize);
        JobPage page = admin.list(JobQuery.builder()
                .state(EndpointParameters.constant("state", state, JobState.class))
                .taskIdentifier(task)
                .queueName(queue)
                .search(search)
                .pageSize(pageSize == null ? JobQuery.ALL.pageSize() : pageSize)
                .after(EndpointParameters.id("after", after))
                .build());
        return page("jobs", page.jobs().stream().map(this::view).toList(), page.next());
    }

    private static void requireLimit(@Nullable Integer limit) {
        if (limit != null && (limit < 1 || limit > 1000)) {
            throw new IllegalArgumentException("limit must be between 1 and 1000, but is " + limit);
        }
    }

    private static Map<String, Object> page(String name, List<?> items, @Nullable Object next) {
        Map<String, Object> page = new LinkedHashMap<>();
        page.put(name, items);
        put(page, "next", next);
        return page;
    }

    @Nullable Object job(String id) {
        Long number = EndpointParameters.id("id", id);
        return number == null ? null : admin.find(number).map(this::view).orElse(null);
    }

    private Map<String, Object> view(Job job) {
        Map<String, Object> view = new LinkedHashMap<>();
        view.put("id", job.id());
        view.put("task", job.taskIdentifier());
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
        List<NamedQueue> queues = admin.queues(after, most);
        return page(
                "queues",
                queues,
                queues.size() < most ? null : queues.get(most - 1).name());
    }

    Object workers() {
        return Map.of("workers", admin.activeWorkers());
    }
}
