package dev.pgworker.autoconfigure.endpoint;

import java.util.Collection;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;

import org.jspecify.annotations.Nullable;

import dev.pgworker.autoconfigure.WorkerInstance;
import dev.pgworker.job.BulkResult;
import dev.pgworker.job.CleanupTask;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobChange;
import dev.pgworker.job.JobChanges;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobSelection;
import dev.pgworker.job.PauseTarget;
import dev.pgworker.job.Rescheduling;
import dev.pgworker.job.SweepOptions;
import dev.pgworker.job.WorkerOperations;

/** What the endpoint changes. Each action tells what it changed. */
final class EndpointActions {

    /** More jobs are changed at once only if the limit is given. */
    private static final int USUAL_LIMIT = 10_000;

    private final JobQueries queries;
    private final JobChanges changes;
    private final WorkerOperations operations;
    private final boolean showPayloads;

    /**
     * Creates the actions.
     *
     * @param user in whose name; empty if nobody has logged in
     * @param showPayloads whether payloads may be searched
     */
    EndpointActions(WorkerInstance instance, String user, boolean showPayloads) {
        queries = instance.jobQueries();
        changes = user.isEmpty() ? instance.jobChanges() : instance.jobChanges().actingAs(user);
        operations = user.isEmpty()
                ? instance.workerOperations()
                : instance.workerOperations().actingAs(user);
        this.showPayloads = showPayloads;
    }

    /** Which jobs to change: those with the ids or else, up to a limit, those that match; or how many these are. */
    record Target(
            @Nullable String ids,
            EndpointFilters filters,
            @Nullable String limit,
            @Nullable String dryRun) {}

    Object complete(Target target) {
        return change(target, new JobChange.Complete(), changes::complete);
    }

    Object fail(Target target, @Nullable String reason) {
        String given = EndpointParameters.required("reason", reason);
        return change(target, new JobChange.Fail(given), ids -> changes.permanentlyFail(ids, given));
    }

    Object reschedule(
            Target target,
            @Nullable String runAt,
            @Nullable String priority,
            @Nullable String attempts,
            @Nullable String maxAttempts) {
        Rescheduling.Builder builder = Rescheduling.builder()
                .priority(EndpointParameters.integer("priority", priority))
                .attempts(EndpointParameters.integer("attempts", attempts))
                .maxAttempts(EndpointParameters.integer("maxAttempts", maxAttempts));
        EndpointParameters.runAt("runAt", runAt, builder);
        Rescheduling given = builder.build();
        return change(target, new JobChange.Reschedule(given), ids -> changes.reschedule(ids, given));
    }

    Object runNow(Target target) {
        return change(target, new JobChange.RunNow(), changes::runNow);
    }

    /** Removes by key alone as the worker's own function does, which takes a running job's key. */
    Object remove(Target target) {
        EndpointFilters filters = target.filters;
        boolean byKey = target.ids == null && filters.key() != null && filters.hasOnlyKey();
        return byKey && !EndpointParameters.flag("dryRun", target.dryRun)
                ? changed(changes.remove(EndpointParameters.required("key", filters.key())).stream()
                        .toList())
                : change(target, new JobChange.Remove(), changes::remove);
    }

    /** Tells of ids and of a key what became of each job; of filters how many have been cancelled. */
    Object cancel(Target target) {
        EndpointFilters filters = target.filters;
        boolean plain = target.limit == null && !EndpointParameters.flag("dryRun", target.dryRun);
        if (plain && target.ids != null && filters.isEmpty()) {
            return Map.of("cancellations", changes.cancel(EndpointParameters.ids(target.ids)));
        } else if (plain && target.ids == null && filters.key() != null && filters.hasOnlyKey()) {
            return Map.of(
                    "cancellations",
                    changes.cancel(EndpointParameters.required("key", filters.key())).stream()
                            .toList());
        }
        return change(target, new JobChange.Cancel(), ids -> List.of());
    }

    private Object change(Target target, JobChange change, Function<Collection<Long>, List<Job>> changeIds) {
        boolean dryRun = EndpointParameters.flag("dryRun", target.dryRun);
        if (target.ids != null) {
            if (dryRun || !target.filters.isEmpty() || target.limit != null) {
                throw new IllegalArgumentException("ids cannot be combined with filters, limit or dryRun");
            }
            return changed(changeIds.apply(EndpointParameters.ids(target.ids)));
        }
        if (target.filters.isEmpty()) {
            throw new IllegalArgumentException("ids is required, or one of the filters " + EndpointFilters.NAMES);
        }
        Integer limit = EndpointParameters.integer("limit", target.limit);
        EndpointParameters.requireRange("limit", limit, 1, 1_000_000);
        JobSelection selection =
                queries.select(target.filters.query(showPayloads).build(), limit == null ? USUAL_LIMIT : limit);
        if (dryRun) {
            return Map.of("selected", selection.ids().size(), "complete", selection.complete());
        }
        BulkResult result = changes.change(selection, change, (done, changed, total) -> true);
        return Map.of("selected", result.selected(), "complete", selection.complete(), "changed", result.changed());
    }

    Object cleanup(@Nullable String tasks, @Nullable String dryRun) {
        Set<CleanupTask> wanted = EnumSet.noneOf(CleanupTask.class);
        for (String task : EndpointParameters.list("tasks", tasks)) {
            wanted.add(EndpointParameters.constant("tasks", task, CleanupTask.class));
        }
        return EndpointParameters.flag("dryRun", dryRun) ? queries.previewCleanup(wanted) : operations.cleanup(wanted);
    }

    Object forceUnlock(@Nullable String workers) {
        List<String> ids = EndpointParameters.list("workers", workers);
        operations.forceUnlockWorkers(ids);
        return Map.of("unlocked", ids);
    }

    Object sweep(@Nullable String threshold, @Nullable String recoveryDelay, @Nullable String dryRun) {
        return operations.sweep(new SweepOptions(
                EndpointParameters.duration("threshold", threshold),
                EndpointParameters.duration("recoveryDelay", recoveryDelay),
                EndpointParameters.flag("dryRun", dryRun)));
    }

    Object pause(@Nullable String task, @Nullable String queue, @Nullable String everything, @Nullable String reason) {
        return Map.of("paused", operations.pause(target(task, queue, everything), reason));
    }

    Object resume(@Nullable String task, @Nullable String queue, @Nullable String everything) {
        return Map.of("resumed", operations.resume(target(task, queue, everything)));
    }

    private static PauseTarget target(@Nullable String task, @Nullable String queue, @Nullable String everything) {
        boolean all = EndpointParameters.flag("everything", everything);
        if ((task == null ? 0 : 1) + (queue == null ? 0 : 1) + (all ? 1 : 0) != 1) {
            throw new IllegalArgumentException("One of task, queue and everything is required, and only one");
        }
        return all
                ? PauseTarget.everything()
                : task != null ? PauseTarget.task(task) : PauseTarget.queue(Objects.requireNonNull(queue));
    }

    private static Object changed(List<Job> jobs) {
        return Map.of("changed", jobs.stream().map(Job::id).toList());
    }
}
