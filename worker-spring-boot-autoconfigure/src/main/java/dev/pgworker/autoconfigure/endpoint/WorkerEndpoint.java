package dev.pgworker.autoconfigure.endpoint;

import java.util.Map;
import java.util.function.Supplier;

import org.jspecify.annotations.Nullable;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.boot.actuate.endpoint.annotation.Selector;
import org.springframework.boot.actuate.endpoint.annotation.WriteOperation;
import org.springframework.boot.actuate.endpoint.web.WebEndpointResponse;
import org.springframework.boot.actuate.endpoint.web.annotation.WebEndpoint;

import dev.pgworker.autoconfigure.WorkerInstance;
import dev.pgworker.autoconfigure.WorkerInstances;

/**
 * Shows and changes jobs over HTTP. The parameter {@code instance} names one of several workers.
 * Parameters arrive as text, so that a wrong one is answered with status 400 and a
 * message that names it.
 */
@WebEndpoint(id = "worker")
final class WorkerEndpoint {

    private final WorkerInstances instances;
    private final boolean showPayloads;

    WorkerEndpoint(WorkerInstances instances, boolean showPayloads) {
        this.instances = instances;
        this.showPayloads = showPayloads;
    }

    /** Returns what there is to do and how this application's worker does. */
    @ReadOperation
    WebEndpointResponse<Object> overview(@Nullable String instance) {
        return answer(() -> views(instance).overview(instances.all()));
    }

    /** Lists jobs, queues, workers or recurring items. */
    @ReadOperation
    WebEndpointResponse<Object> list(
            @Selector String what,
            @Nullable String state,
            @Nullable String task,
            @Nullable String queue,
            @Nullable String search,
            @Nullable String limit,
            @Nullable String after,
            @Nullable String instance) {
        return answer(() -> switch (what) {
            case "jobs" -> views(instance).jobs(state, task, queue, search, limit, after);
            case "queues" -> views(instance).queues(limit, after);
            case "workers" -> views(instance).workers();
            case "crontab" -> crontab(instance).list();
            default -> null;
        });
    }

    /** Returns one job or recurring item. */
    @ReadOperation
    WebEndpointResponse<Object> one(@Selector String what, @Selector String id, @Nullable String instance) {
        return answer(() -> switch (what) {
            case "jobs" -> views(instance).job(id);
            case "crontab" -> crontab(instance).one(id);
            default -> null;
        });
    }

    /** Changes jobs. */
    @WriteOperation
    WebEndpointResponse<Object> change(
            @Selector String action,
            @Nullable String ids,
            @Nullable String reason,
            @Nullable String runAt,
            @Nullable String priority,
            @Nullable String attempts,
            @Nullable String maxAttempts,
            @Nullable String key,
            @Nullable String tasks,
            @Nullable String workers,
            @Nullable String threshold,
            @Nullable String recoveryDelay,
            @Nullable String dryRun,
            @Nullable String item,
            @Nullable String instance) {
        return answer(() -> switch (action) {
            case "complete" -> actions(instance).complete(ids);
            case "fail" -> actions(instance).fail(ids, reason);
            case "reschedule" -> actions(instance).reschedule(ids, runAt, priority, attempts, maxAttempts);
            case "run-now" -> actions(instance).runNow(ids);
            case "remove" -> actions(instance).remove(key);
            case "cleanup" -> actions(instance).cleanup(tasks);
            case "force-unlock" -> actions(instance).forceUnlock(workers);
            case "sweep" -> actions(instance).sweep(threshold, recoveryDelay, dryRun);
            case "cron-trigger" -> crontab(instance).trigger(item);
            case "cron-pause" -> crontab(instance).pause(item);
            case "cron-resume" -> crontab(instance).resume(item);
            default -> null;
        });
    }

    private EndpointViews views(@Nullable String instance) {
        return new EndpointViews(instance(instance), showPayloads);
    }

    private EndpointActions actions(@Nullable String instance) {
        return new EndpointActions(instance(instance).jobAdmin());
    }

    private EndpointCrontab crontab(@Nullable String instance) {
        return new EndpointCrontab(instance(instance).cronAdmin());
    }

    private WorkerInstance instance(@Nullable String name) {
        return instances.get(name == null || name.isBlank() ? WorkerInstances.DEFAULT : name.strip());
    }

    /** Returns what there is, or status 404 for null, or status 400 for an argument that is not allowed. */
    private static WebEndpointResponse<Object> answer(Supplier<@Nullable Object> body) {
        try {
            Object found = body.get();
            return found == null
                    ? new WebEndpointResponse<>(WebEndpointResponse.STATUS_NOT_FOUND)
                    : new WebEndpointResponse<>(found);
        } catch (IllegalArgumentException e) {
            return new WebEndpointResponse<>(
                    Map.of("error", String.valueOf(e.getMessage())), WebEndpointResponse.STATUS_BAD_REQUEST);
        }
    }
}
