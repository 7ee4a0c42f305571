package dev.pgworker.autoconfigure.endpoint;

import java.util.Map;
import java.util.function.Supplier;

import org.jspecify.annotations.Nullable;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.boot.actuate.endpoint.annotation.Selector;
import org.springframework.boot.actuate.endpoint.annotation.WriteOperation;
import org.springframework.boot.actuate.endpoint.web.WebEndpointResponse;
import org.springframework.boot.actuate.endpoint.web.annotation.WebEndpoint;

/**
 * Shows and changes jobs over HTTP. Parameters arrive as text, so that a wrong one is answered with status 400 and a
 * message that names it.
 */
@WebEndpoint(id = "worker")
final class WorkerEndpoint {

    private final EndpointViews views;
    private final EndpointActions actions;
    private final EndpointCrontab crontab;

    WorkerEndpoint(EndpointViews views, EndpointActions actions, EndpointCrontab crontab) {
        this.views = views;
        this.actions = actions;
        this.crontab = crontab;
    }

    /** Returns what there is to do and how this application's worker does. */
    @ReadOperation
    WebEndpointResponse<Object> overview() {
        return answer(views::overview);
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
            @Nullable String after) {
        return answer(() -> switch (what) {
            case "jobs" -> views.jobs(state, task, queue, search, limit, after);
            case "queues" -> views.queues(limit, after);
            case "workers" -> views.workers();
            case "crontab" -> crontab.list();
            default -> null;
        });
    }

    /** Returns one job or recurring item. */
    @ReadOperation
    WebEndpointResponse<Object> one(@Selector String what, @Selector String id) {
        return answer(() -> switch (what) {
            case "jobs" -> views.job(id);
            case "crontab" -> crontab.one(id);
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
            @Nullable String item) {
        return answer(() -> switch (action) {
            case "complete" -> actions.complete(ids);
            case "fail" -> actions.fail(ids, reason);
            case "reschedule" -> actions.reschedule(ids, runAt, priority, attempts, maxAttempts);
            case "run-now" -> actions.runNow(ids);
            case "remove" -> actions.remove(key);
            case "cleanup" -> actions.cleanup(tasks);
            case "force-unlock" -> actions.forceUnlock(workers);
            case "sweep" -> actions.sweep(threshold, recoveryDelay, dryRun);
            case "cron-trigger" -> crontab.trigger(item);
            case "cron-pause" -> crontab.pause(item);
            case "cron-resume" -> crontab.resume(item);
            default -> null;
        });
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
