package dev.pgworker.dashboard;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

import dev.pgworker.Worker;
import dev.pgworker.WorkerStatus;
import dev.pgworker.autoconfigure.WorkerInstance;
import dev.pgworker.history.HistoryStatus;
import dev.pgworker.job.ActiveWorker;
import dev.pgworker.statistics.BacklogSample;
import dev.pgworker.statistics.Quantiles;
import dev.pgworker.statistics.StatisticsPoint;
import dev.pgworker.statistics.TaskStatistics;

/** Workers and figures as the pages get them. */
final class WorkerViews {

    private WorkerViews() {}

    /**
     * Shows a worker.
     *
     * @param running the jobs that it runs, as they are shown
     */
    static Map<String, @Nullable Object> worker(ActiveWorker worker, Source source, List<?> running) {
        JsonNode metadata = Json.lenient(worker.metadata());
        JsonNode process = metadata.path("process");
        String name = ownName(source, worker.id());
        JsonNode concurrency = metadata.path("concurrency");
        return new View()
                .put("id", worker.id())
                .put("startedAt", worker.startedAt())
                .put("lastHeartbeatAt", worker.lastHeartbeatAt())
                .put("stale", worker.stale())
                .put("heldJobs", worker.heldJobs())
                .put("concurrency", concurrency.isInt() ? (Object) concurrency.intValue() : null)
                .put("tasks", texts(metadata.path("tasks")))
                .put("process", process.isString() ? process.stringValue() : null)
                .put("thisApplication", name != null)
                .put("worker", name)
                .put("running", running)
                .map();
    }

    private static @Nullable List<String> texts(JsonNode list) {
        if (!list.isArray()) {
            return null;
        }
        List<String> texts = new ArrayList<>();
        for (JsonNode element : list) {
            if (element.isString()) {
                texts.add(element.stringValue());
            }
        }
        return texts;
    }

    /** Returns the worker of the application that has an id; null if none has. */
    private static @Nullable String ownName(Source source, String id) {
        return Stream.concat(Stream.of(source.instance()), source.siblings().stream())
                .filter(instance -> id.equals(idOf(instance)))
                .map(WorkerInstance::name)
                .findFirst()
                .orElse(null);
    }

    private static @Nullable String idOf(WorkerInstance instance) {
        Worker worker = instance.worker();
        WorkerStatus status = worker == null ? null : worker.status();
        return status == null ? null : status.workerId();
    }

    /** Nobody knows whether a history is kept that may not be read. */
    static Map<String, @Nullable Object> history(Source.Part<HistoryStatus> part) {
        HistoryStatus status = part.value();
        if (status == null) {
            return new View().put("enabled", null).put("error", part.error()).map();
        }
        return new View()
                .put("enabled", status.enabled())
                .put("keepForMs", status.keepFor())
                .put("keepMost", status.keepMost())
                .put("entries", status.entries())
                .put("bytes", status.bytes())
                .put("oldest", status.oldest())
                .map();
    }

    static Map<String, @Nullable Object> point(StatisticsPoint point, Duration width) {
        Quantiles run = point.run();
        Quantiles waited = point.waited();
        BacklogSample backlog = point.backlog();
        return new View()
                .put("from", point.from())
                .put("widthMs", width)
                .put("succeeded", point.succeeded())
                .put("retried", point.retried())
                .put("failed", point.failed())
                .put("runMedianMs", run == null ? null : run.median())
                .put("run95Ms", run == null ? null : run.most())
                .put("waitMedianMs", waited == null ? null : waited.median())
                .put("wait95Ms", waited == null ? null : waited.most())
                .put("ready", backlog == null ? null : backlog.ready())
                .put("scheduled", backlog == null ? null : backlog.scheduled())
                .put("retrying", backlog == null ? null : backlog.retrying())
                .put("failedTotal", backlog == null ? null : backlog.failed())
                .put("oldestDueMs", backlog == null ? null : backlog.oldestDue())
                .put("workers", backlog == null ? null : backlog.workers())
                .map();
    }

    /** Adds the figures of a task; null if none are known. */
    static void put(View view, @Nullable TaskStatistics figures) {
        Quantiles run = figures == null ? null : figures.run();
        Quantiles waited = figures == null ? null : figures.waited();
        view.put("succeeded", figures == null ? 0 : figures.succeeded())
                .put("retried", figures == null ? 0 : figures.retried())
                .put("failed", figures == null ? 0 : figures.failed())
                .put("runMedianMs", run == null ? null : run.median())
                .put("run95Ms", run == null ? null : run.most())
                .put("runLongestMs", run == null ? null : run.longest())
                .put("wait95Ms", waited == null ? null : waited.most())
                .put("lastEndedAt", figures == null ? null : figures.lastEndedAt());
    }

    static @Nullable Map<String, @Nullable Object> status(@Nullable WorkerStatus status) {
        return status == null
                ? null
                : new View()
                        .put("workerId", status.workerId())
                        .put("running", status.running())
                        .put("waiting", status.waiting())
                        .put("freeSlots", status.freeSlots())
                        .put("listening", status.listening())
                        .put("pollingOnly", status.pollingOnly())
                        .put("sinceStartMs", status.sinceStart())
                        .put("sinceHeartbeatMs", status.sinceHeartbeat())
                        .put("sinceFetchMs", status.sinceFetch())
                        .put("sinceAuditMs", status.sinceAudit())
                        .put("outage", status.outage())
                        .put("stall", status.stall())
                        .put("heldUp", status.heldUp())
                        .put("starting", status.starting())
                        .put("reconciled", status.reconciled())
                        .put("deadThreads", status.deadThreads())
                        .put("stuckThreads", status.stuckThreads())
                        .put(
                                "unservedTasks",
                                status.unservedTasks().stream()
                                        .map(WorkerStatus.UnservedTask::task)
                                        .toList())
                        .map();
    }
}
