package dev.pgworker.internal.client;

import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

import dev.pgworker.history.JobHistory;
import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.internal.store.SweepReport;
import dev.pgworker.internal.store.SweepStore;
import dev.pgworker.job.ActiveWorker;
import dev.pgworker.job.BulkProgress;
import dev.pgworker.job.BulkResult;
import dev.pgworker.job.CleanupPreview;
import dev.pgworker.job.CleanupResult;
import dev.pgworker.job.CleanupTask;
import dev.pgworker.job.DeadWorker;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobAdmin;
import dev.pgworker.job.JobBacklog;
import dev.pgworker.job.JobChange;
import dev.pgworker.job.JobCounts;
import dev.pgworker.job.JobPage;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobSelection;
import dev.pgworker.job.JobWait;
import dev.pgworker.job.NamedQueue;
import dev.pgworker.job.Rescheduling;
import dev.pgworker.job.RunningJob;
import dev.pgworker.job.SweepOptions;
import dev.pgworker.job.SweepResult;
import dev.pgworker.job.TaskSummary;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.statistics.JobStatistics;

/** Administers jobs on the connection of the caller's transaction, and cleans up apart from it. */
public final class JdbcJobAdmin implements JobAdmin {

    private final ClientConnections connections;
    private final JobChanges changes;
    private final JobLookup lookup;
    private final SchemaOverview overview;
    private final Cleanup cleanup;
    private final SweepStore sweeps;
    private final SweepStore.Request usualSweep;
    private final WorkerEvents events;

    /**
     * Creates the administration of one schema.
     *
     * @param usualSweep what a sweep does unless its options say otherwise
     * @param events where to tell what sweeps have done; delivers by itself
     */
    public JdbcJobAdmin(
            DataSource dataSource,
            WorkerSchema schema,
            SweepStore sweeps,
            SweepStore.Request usualSweep,
            WorkerEvents events) {
        this.connections = new ClientConnections(dataSource);
        this.changes = new JobChanges(connections, schema);
        this.lookup = new JobLookup(connections, schema);
        this.overview = new SchemaOverview(connections, schema);
        this.cleanup = new Cleanup(connections, schema);
        this.sweeps = sweeps;
        this.usualSweep = usualSweep;
        this.events = events;
    }

    @Override
    public List<Job> complete(Collection<Long> ids) {
        return changes.complete(ids);
    }

    @Override
    public List<Job> permanentlyFail(Collection<Long> ids, String reason) {
        return changes.permanentlyFail(ids, reason);
    }

    @Override
    public List<Job> reschedule(Collection<Long> ids, Rescheduling rescheduling) {
        return changes.reschedule(ids, rescheduling);
    }

    @Override
    public List<Job> runNow(Collection<Long> ids) {
        return changes.runNow(ids);
    }

    @Override
    public Optional<Job> remove(String jobKey) {
        return changes.remove(jobKey);
    }

    @Override
    public void forceUnlockWorkers(Collection<String> workerIds) {
        changes.forceUnlockWorkers(workerIds);
    }

    @Override
    public SweepResult sweep(SweepOptions options) {
        Arguments.requireNonNull("options", options);
        SweepStore.Request request = usualSweep.with(options);
        SweepStore.Result result =
                connections.call("sweep", true, connection -> sweeps.sweep(connection, request, DeadWorker.BY_HAND));
        if (!request.dryRun()) {
            ClientConnections.afterCommit(() -> SweepReport.tell(result, DeadWorker.BY_HAND, events));
        }
        return new SweepResult(
                result.locked(), result.workerIds(), result.jobs().size());
    }

    @Override
    public CleanupResult cleanup(Set<CleanupTask> tasks) {
        return cleanup.run(Arguments.requireElements("tasks", tasks));
    }

    @Override
    public Optional<Job> find(long id) {
        return lookup.find(id);
    }

    @Override
    public JobPage list(JobQuery query) {
        return lookup.list(query);
    }

    @Override
    public JobCounts count(JobQuery filter) {
        return lookup.count(filter);
    }

    @Override
    public List<NamedQueue> queues(@Nullable String after, int limit) {
        return overview.queues(after, limit);
    }

    @Override
    public JobBacklog backlog() {
        return overview.backlog();
    }

    @Override
    public List<ActiveWorker> activeWorkers() {
        return overview.workers(usualSweep.threshold(), usualSweep.peerThreshold());
    }

    @Override
    public List<ActiveWorker> activeWorkers(Duration staleAfter) {
        Arguments.requireNotNegative("staleAfter", staleAfter);
        return overview.workers(staleAfter, null);
    }

    @Override
    public JobAdmin actingAs(String user) {
        throw new UnsupportedOperationException();
    }

    @Override
    public List<Job> remove(Collection<Long> ids) {
        throw new UnsupportedOperationException();
    }

    @Override
    public JobSelection select(JobQuery filter, int most) {
        throw new UnsupportedOperationException();
    }

    @Override
    public BulkResult change(JobSelection selection, JobChange change, BulkProgress progress) {
        throw new UnsupportedOperationException();
    }

    @Override
    public Optional<JobWait> waitOf(long id) {
        throw new UnsupportedOperationException();
    }

    @Override
    public List<RunningJob> running(int limit) {
        throw new UnsupportedOperationException();
    }

    @Override
    public List<TaskSummary> tasks(@Nullable String after, int limit) {
        throw new UnsupportedOperationException();
    }

    @Override
    public CleanupPreview previewCleanup(Set<CleanupTask> tasks) {
        throw new UnsupportedOperationException();
    }

    @Override
    public JobHistory history() {
        throw new UnsupportedOperationException();
    }

    @Override
    public JobStatistics statistics() {
        throw new UnsupportedOperationException();
    }
}
