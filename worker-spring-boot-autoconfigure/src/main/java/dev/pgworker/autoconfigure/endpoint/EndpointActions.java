package dev.pgworker.autoconfigure.endpoint;

import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.CleanupTask;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobAdmin;
import dev.pgworker.job.Rescheduling;
import dev.pgworker.job.SweepOptions;

/** What the endpoint changes. Each action tells what it changed. */
final class EndpointActions {

    private final JobAdmin admin;

    EndpointActions(JobAdmin admin) {
        this.admin = admin;
    }

    Object complete(@Nullable String ids) {
        return changed(admin.complete(EndpointParameters.ids(ids)));
    }

    Object fail(@Nullable String ids, @Nullable String reason) {
        return changed(
                admin.permanentlyFail(EndpointParameters.ids(ids), EndpointParameters.required("reason", reason)));
    }

    Object reschedule(
            @Nullable String ids,
            @Nullable String runAt,
            @Nullable String priority,
            @Nullable String attempts,
            @Nullable String maxAttempts) {
        Rescheduling.Builder changes = Rescheduling.builder()
                .priority(EndpointParameters.integer("priority", priority))
                .attempts(EndpointParameters.integer("attempts", attempts))
                .maxAttempts(EndpointParameters.integer("maxAttempts", maxAttempts));
        EndpointParameters.runAt("runAt", runAt, changes);
        return changed(admin.reschedule(EndpointParameters.ids(ids), changes.build()));
    }

    Object runNow(@Nullable String ids) {
        return changed(admin.runNow(EndpointParameters.ids(ids)));
    }

    Object remove(@Nullable String key) {
        return changed(
                admin.remove(EndpointParameters.required("key", key)).stream().toList());
    }

    Object cleanup(@Nullable String tasks) {
        Set<CleanupTask> wanted = EnumSet.noneOf(CleanupTask.class);
        for (String task : EndpointParameters.list("tasks", tasks)) {
            wanted.add(EndpointParameters.constant("tasks", task, CleanupTask.class));
        }
        return admin.cleanup(wanted);
    }

    Object forceUnlock(@Nullable String workers) {
        List<String> ids = EndpointParameters.list("workers", workers);
        admin.forceUnlockWorkers(ids);
        return Map.of("unlocked", ids);
    }

    Object sweep(@Nullable String threshold, @Nullable String recoveryDelay, @Nullable String dryRun) {
        return admin.sweep(new SweepOptions(
                EndpointParameters.duration("threshold", threshold),
                EndpointParameters.duration("recoveryDelay", recoveryDelay),
                EndpointParameters.flag("dryRun", dryRun)));
    }

    private static Object changed(List<Job> jobs) {
        return Map.of("changed", jobs.stream().map(Job::id).toList());
    }
}
