package dev.pgworker.autoconfigure.endpoint;

import java.security.Principal;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;

import org.jspecify.annotations.Nullable;
import org.springframework.boot.actuate.endpoint.SecurityContext;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.boot.actuate.endpoint.annotation.Selector;
import org.springframework.boot.actuate.endpoint.annotation.WriteOperation;
import org.springframework.boot.actuate.endpoint.web.WebEndpointResponse;
import org.springframework.boot.actuate.endpoint.web.annotation.WebEndpoint;

import dev.pgworker.autoconfigure.WorkerInstance;
import dev.pgworker.autoconfigure.WorkerInstances;
import dev.pgworker.limit.JobLimits;
import dev.pgworker.schedule.RecurringJobs;

/**
 * Shows and changes jobs over HTTP. The parameter {@code instance} names one of several workers.
 * Parameters arrive as text, so that a wrong one is answered with status 400 and a
 * message that names it.
 */
@WebEndpoint(id = "pgworker")
final class WorkerEndpoint {

    private static final int LONGEST_NAME = 255;

    /** What has names that may contain a slash, which servers refuse in a path. */
    private static final Set<String> BY_NAME = Set.of("limits", "recurring");

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

    /**
     * Lists jobs, what became of them, what runs, tasks, queues, workers, pauses, recurring jobs or limits, or figures of the
     * last day. One recurring job or limit may be named by a parameter.
     */
    @ReadOperation
    WebEndpointResponse<Object> list(
            @Selector String what,
            @Nullable String state,
            @Nullable String task,
            @Nullable String queue,
            @Nullable String key,
            @Nullable String flag,
            @Nullable String from,
            @Nullable String to,
            @Nullable String search,
            @Nullable String sort,
            @Nullable String scanLimit,
            @Nullable String outcome,
            @Nullable String window,
            @Nullable String points,
            @Nullable String prefix,
            @Nullable String paused,
            @Nullable String problem,
            @Nullable String origin,
            @Nullable String name,
            @Nullable String runs,
            @Nullable String limit,
            @Nullable String after,
            @Nullable String instance) {
        if (name != null && BY_NAME.contains(what)) {
            return one(what, name, runs, limit, after, instance);
        }
        EndpointFilters filters = new EndpointFilters(state, task, queue, key, flag, from, to, search);
        return answer(() -> switch (what) {
            case "jobs" -> views(instance).jobs(filters, sort, scanLimit, limit, after);
            case "history" -> views(instance).history(filters, outcome, limit, after);
            case "running" -> views(instance).running(limit);
            case "statistics" -> views(instance).statistics(window, points);
            case "tasks" -> views(instance).tasks(limit, after);
            case "queues" -> views(instance).queues(limit, after);
            case "workers" -> views(instance).workers();
            case "pauses" -> views(instance).pauses();
            case "limits" -> limits(instance, SecurityContext.NONE).list();
            case "recurring" ->
                recurring(instance, SecurityContext.NONE)
                        .list(new EndpointRecurring.Filters(prefix, task, paused, problem, origin), limit, after);
            default -> null;
        });
    }

    /** Returns one job, what became of it or of its cancellation, a recurring job or a limit. */
    @ReadOperation
    WebEndpointResponse<Object> one(
            @Selector String what,
            @Selector String id,
            @Nullable String runs,
            @Nullable String limit,
            @Nullable String after,
            @Nullable String instance) {
        return answer(() -> switch (what) {
            case "jobs" -> views(instance).job(id);
            case "history" -> views(instance).historyOf(id);
            case "cancellations" -> views(instance).cancellation(id);
            case "recurring" -> recurring(instance, SecurityContext.NONE).one(id, runs);
            case "limits" -> limits(instance, SecurityContext.NONE).one(id, limit, after);
            default -> null;
        });
    }

    /** Changes jobs, or what is paused. */
    @WriteOperation
    WebEndpointResponse<Object> change(
            SecurityContext security,
            @Selector String action,
            @Nullable String ids,
            @Nullable String state,
            @Nullable String task,
            @Nullable String queue,
            @Nullable String key,
            @Nullable String flag,
            @Nullable String from,
            @Nullable String to,
            @Nullable String search,
            @Nullable String limit,
            @Nullable String dryRun,
            @Nullable String reason,
            @Nullable String runAt,
            @Nullable String priority,
            @Nullable String attempts,
            @Nullable String maxAttempts,
            @Nullable String tasks,
            @Nullable String workers,
            @Nullable String threshold,
            @Nullable String recoveryDelay,
            @Nullable String everything,
            @Nullable String payload,
            @Nullable String name,
            @Nullable String maxRunning,
            @Nullable String maxStarts,
            @Nullable String period,
            @Nullable String burst,
            @Nullable String per,
            @Nullable String weights,
            @Nullable String instance) {
        EndpointFilters filters = new EndpointFilters(state, task, queue, key, flag, from, to, search);
        EndpointActions.Target target = new EndpointActions.Target(ids, filters, limit, dryRun);
        return answer(() -> switch (action) {
            case "complete" -> actions(instance, security).complete(target);
            case "fail" -> actions(instance, security).fail(target, reason);
            case "reschedule" -> actions(instance, security).reschedule(target, runAt, priority, attempts, maxAttempts);
            case "run-now" -> actions(instance, security).runNow(target);
            case "remove" -> actions(instance, security).remove(target);
            case "cancel" -> actions(instance, security).cancel(target);
            case "cleanup" -> actions(instance, security).cleanup(tasks, dryRun);
            case "force-unlock" -> actions(instance, security).forceUnlock(workers);
            case "sweep" -> actions(instance, security).sweep(threshold, recoveryDelay, dryRun);
            case "pause" -> actions(instance, security).pause(task, queue, everything, reason);
            case "resume" -> actions(instance, security).resume(task, queue, everything);
            case "recurring-trigger" -> recurring(instance, security).trigger(name, payload);
            case "recurring-pause" -> recurring(instance, security).pause(name);
            case "recurring-resume" -> recurring(instance, security).resume(name);
            case "recurring-delete" -> recurring(instance, security).delete(name);
            case "limit-put" ->
                limits(instance, security).put(name, limit(tasks, maxRunning, maxStarts, period, burst, per, weights));
            case "limit-delete" -> limits(instance, security).delete(name);
            case "signal" -> new EndpointSignals(instance(instance).jobSignals()).send(name, payload);
            default -> null;
        });
    }

    private static Map<String, @Nullable String> limit(
            @Nullable String tasks,
            @Nullable String maxRunning,
            @Nullable String maxStarts,
            @Nullable String period,
            @Nullable String burst,
            @Nullable String per,
            @Nullable String weights) {
        Map<String, @Nullable String> limit = new HashMap<>();
        limit.put("tasks", tasks);
        limit.put("maxRunning", maxRunning);
        limit.put("maxStarts", maxStarts);
        limit.put("period", period);
        limit.put("burst", burst);
        limit.put("per", per == null ? null : per.strip());
        limit.put("weights", weights);
        return limit;
    }

    private EndpointViews views(@Nullable String instance) {
        return new EndpointViews(instance(instance), showPayloads);
    }

    /** In the name of whoever has logged in, if anybody has. */
    private EndpointActions actions(@Nullable String instance, SecurityContext security) {
        return new EndpointActions(instance(instance), user(security), showPayloads);
    }

    private static String user(SecurityContext security) {
        Principal principal = security.getPrincipal();
        String name = principal == null || principal.getName() == null ? "" : principal.getName();
        return name.substring(0, Math.min(LONGEST_NAME, name.length()));
    }

    private EndpointRecurring recurring(@Nullable String instance, SecurityContext security) {
        WorkerInstance its = instance(instance);
        RecurringJobs recurring = its.recurringJobs();
        String user = user(security);
        return new EndpointRecurring(
                user.isEmpty() ? recurring : recurring.actingAs(user),
                () -> its.jobQueries().now());
    }

    private EndpointLimits limits(@Nullable String instance, SecurityContext security) {
        JobLimits limits = instance(instance).jobLimits();
        String user = user(security);
        return new EndpointLimits(user.isEmpty() ? limits : limits.actingAs(user), showPayloads);
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
