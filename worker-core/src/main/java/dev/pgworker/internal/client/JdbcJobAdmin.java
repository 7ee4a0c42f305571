package dev.pgworker.internal.client;

import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
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
import dev.pgworker.job.Cancellation;
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
import dev.pgworker.job.Pause;
import dev.pgworker.job.PauseTarget;
import dev.pgworker.job.Rescheduling;
import dev.pgworker.job.RunningJob;
import dev.pgworker.job.SweepOptions;
import dev.pgworker.job.SweepResult;
import dev.pgworker.job.TaskSummary;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.statistics.JobStatistics;
import dev.pgworker.step.JobStep;

/** Administers jobs on the connection of the caller's transaction; cleans up, and changes many, apart from it. */
public final class JdbcJobAdmin implements JobAdmin {

    private final ClientConnections connections;
    private final JobChanges changes;
    private final JobCancels cancels;
    private final JobLookup lookup;
    private final SchemaOverview overview;
    private final TaskOverview tasks;
    private final JobWaits waits;
    private final JobStepList steps;
    private final RunningJobs running;
    private final JobStatistics statistics;
    private final Pauses pauses;
    private final Cleanup cleanup;
    private final CleanupEstimate estimate;
    private final JobHistory history;
    private final SweepStore sweeps;
    private final SweepStore.Request usualSweep;
    private static final Duration LONGEST_AGE = Duration.ofDays(3650);

    private final WorkerEvents events;
    private final ChangeReport report;

    /**
     * Creates the administration of one schema.
     *
     * @param usualSweep what a sweep does unless its options say otherwise
     * @param events where to tell what has been changed; delivers by itself
     */
    public JdbcJobAdmin(
            DataSource dataSource,
            WorkerSchema schema,
            SweepStore sweeps,
            SweepStore.Request usualSweep,
            WorkerEvents events) {
        this.connections = new ClientConnections(dataSource);
        this.changes = new JobChanges(connections, schema);
        this.cancels = new JobCancels(connections, schema);
        this.lookup = new JobLookup(connections, schema);
        this.overview = new SchemaOverview(connections, schema);
        this.tasks = new TaskOverview(connections, schema);
        this.steps = new JobStepList(connections, schema);
        this.waits = new JobWaits(connections, schema, this::registeredWorkers);
        this.running = new RunningJobs(connections, schema);
        this.statistics = new JdbcJobStatistics(connections, schema);
        this.pauses = new Pauses(connections, schema);
        this.cleanup = new Cleanup(connections, schema);
        this.estimate = new CleanupEstimate(connections, schema);
        this.history = new JdbcJobHistory(connections, schema);
        this.sweeps = sweeps;
        this.usualSweep = usualSweep;
        this.events = events;
        this.report = new ChangeReport(events, null);
    }

    private JdbcJobAdmin(JdbcJobAdmin other, String user) {
        connections = other.connections;
        changes = other.changes;
        cancels = other.cancels;
        lookup = other.lookup;
        overview = other.overview;
        tasks = other.tasks;
        steps = other.steps;
        waits = other.waits;
        running = other.running;
        statistics = other.statistics;
        history = other.history;
        pauses = other.pauses;
        cleanup = other.cleanup;
        estimate = other.estimate;
        sweeps = other.sweeps;
        usualSweep = other.usualSweep;
        events = other.events;
        report = other.report.of(user);
    }

    @Override
    public JdbcJobAdmin actingAs(String user) {
        return new JdbcJobAdmin(this, Arguments.requireUser(user));
    }

    @Override
    public List<Job> complete(Collection<Long> ids) {
        return change(new JobChange.Complete(), ids);
    }

    @Override
    public List<Job> permanentlyFail(Collection<Long> ids, String reason) {
        return change(new JobChange.Fail(reason), ids);
    }

    @Override
    public List<Job> reschedule(Collection<Long> ids, Rescheduling rescheduling) {
        return change(new JobChange.Reschedule(rescheduling), ids);
    }

    @Override
    public List<Job> runNow(Collection<Long> ids) {
        return change(new JobChange.RunNow(), ids);
    }

    @Override
    public List<Job> remove(Collection<Long> ids) {
        return change(new JobChange.Remove(), ids);
    }

    private List<Job> change(JobChange change, Collection<Long> ids) {
        List<Job> changed = changes.change(change, ids);
        report.jobs(ChangeStatement.of(change), changed.stream().map(Job::id).toList());
        return changed;
    }

    @Override
    public Optional<Job> remove(String jobKey) {
        Optional<Job> removed = changes.remove(jobKey);
        report.jobs(ChangeStatement.REMOVE, removed.stream().map(Job::id).toList());
        return removed;
    }

    @Override
    public boolean pause(PauseTarget target, @Nullable String reason) {
        boolean paused = pauses.pause(target, report.user(), reason);
        if (paused) {
            report.other("pause", "Paused", List.of(words(target)), List.of(), 1);
        }
        return paused;
    }

    @Override
    public boolean resume(PauseTarget target) {
        boolean resumed = pauses.resume(target);
        if (resumed) {
            report.other("resume", "Resumed", List.of(words(target)), List.of(), 1);
        }
        return resumed;
    }

    /** In the log, quotes are escaped. */
    private static String words(PauseTarget target) {
        String kind = target.kind().name().toLowerCase(Locale.ROOT);
        return target.name() == null ? kind : kind + " " + target.name();
    }

    @Override
    public List<Pause> pauses() {
        return pauses.list();
    }

    @Override
    public List<Cancellation> cancel(Collection<Long> ids) {
        List<Cancellation> answers = cancels.cancel(ids, report.user());
        reportCancelled(answers);
        return answers;
    }

    @Override
    public Optional<Cancellation> cancel(String jobKey) {
        Optional<Cancellation> answer = cancels.cancel(jobKey, report.user());
        reportCancelled(answer.stream().toList());
        return answer;
    }

    private void reportCancelled(List<Cancellation> answers) {
        report.jobs(
                ChangeStatement.CANCEL,
                answers.stream()
                        .filter(answer -> answer.state() != Cancellation.State.GONE)
                        .map(Cancellation::jobId)
                        .toList());
    }

    @Override
    public List<Cancellation> cancellations(Collection<Long> ids) {
        return cancels.of(ids);
    }

    @Override
    public List<Cancellation> awaitCancellations(Collection<Long> ids, Duration limit) {
        return cancels.await(ids, limit);
    }

    @Override
    public JobSelection select(JobQuery filter, int most) {
        return lookup.select(filter, most);
    }

    @Override
    public BulkResult change(JobSelection selection, JobChange change, BulkProgress progress) {
        return new BulkChange(changes, report, change).run(selection, progress);
    }

    @Override
    public void forceUnlockWorkers(Collection<String> workerIds) {
        Set<String> unlocked = changes.forceUnlockWorkers(workerIds);
        if (!unlocked.isEmpty()) {
            report.other("force-unlock", "Workers unlocked", unlocked, List.of(), unlocked.size());
        }
    }

    @Override
    public SweepResult sweep(SweepOptions options) {
        Arguments.requireNonNull("options", options);
        SweepStore.Request request = usualSweep.with(options);
        SweepStore.Result result =
                connections.call("sweep", true, connection -> sweeps.sweep(connection, request, DeadWorker.BY_HAND));
        if (!request.dryRun()) {
            ClientConnections.afterCommit(() -> SweepReport.tell(result, DeadWorker.BY_HAND, events));
            if (result.worthTelling()) {
                List<Long> jobs =
                        result.jobs().stream().map(each -> each.job().id()).toList();
                report.other("sweep", "Dead workers swept up", result.workerIds(), jobs, jobs.size());
            }
        }
        return new SweepResult(
                result.locked(), result.workerIds(), result.jobs().size());
    }

    @Override
    public CleanupResult cleanup(Set<CleanupTask> which) {
        return cleanup(which, Duration.ZERO);
    }

    @Override
    public CleanupResult cleanup(Set<CleanupTask> which, Duration failedJobsOlderThan) {
        return cleanup(which, failedJobsOlderThan, Cleanup.UNTIL_DONE);
    }

    /**
     * As {@link #cleanup(Set, Duration)}, but in bounded time: the next one goes on with the rest.
     *
     * @param limit after which no more chunks of jobs and schedules are deleted
     */
    public CleanupResult cleanup(Set<CleanupTask> which, Duration failedJobsOlderThan, Duration limit) {
        Arguments.requireNonNull("failedJobsOlderThan", failedJobsOlderThan);
        if (failedJobsOlderThan.isNegative() || failedJobsOlderThan.compareTo(LONGEST_AGE) > 0) {
            throw new IllegalArgumentException(
                    "failedJobsOlderThan must be between 0 and 3650 days, but is " + failedJobsOlderThan);
        }
        CleanupResult result = cleanup.run(Arguments.requireElements("tasks", which), failedJobsOlderThan, limit);
        long rows =
                result.deleted().values().stream().mapToLong(Long::longValue).sum();
        if (rows > 0) {
            List<String> deleted = result.deleted().entrySet().stream()
                    .map(entry -> entry.getKey() + " " + entry.getValue())
                    .sorted()
                    .toList();
            report.other("cleanup", "Rows cleaned up", deleted, List.of(), rows);
        }
        return result;
    }

    @Override
    public CleanupPreview previewCleanup(Set<CleanupTask> which) {
        return estimate.of(Arguments.requireElements("tasks", which));
    }

    @Override
    public Optional<Job> find(long id) {
        return lookup.find(id);
    }

    @Override
    public List<Job> find(Collection<Long> ids, int payloadLimit) {
        return lookup.find(ids, payloadLimit);
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
    public Instant now() {
        return overview.now();
    }

    @Override
    public JobBacklog backlog() {
        return overview.backlog();
    }

    @Override
    public List<ActiveWorker> activeWorkers() {
        return overview.workers(usualSweep.threshold(), usualSweep.peerThreshold(), true);
    }

    @Override
    public List<ActiveWorker> activeWorkers(Duration staleAfter) {
        Arguments.requireNotNegative("staleAfter", staleAfter);
        return overview.workers(staleAfter, null, true);
    }

    @Override
    public List<ActiveWorker> registeredWorkers() {
        return overview.workers(usualSweep.threshold(), usualSweep.peerThreshold(), false);
    }

    @Override
    public List<JobStep> steps(long id, boolean results) {
        return steps.of(id, results);
    }

    @Override
    public Optional<JobWait> waitOf(long id) {
        return waits.of(id);
    }

    @Override
    public List<RunningJob> running(int limit) {
        return running.list(limit);
    }

    @Override
    public List<TaskSummary> tasks(@Nullable String after, int limit) {
        return tasks.tasks(after, limit, registeredWorkers());
    }

    @Override
    public JobHistory history() {
        return history;
    }

    @Override
    public JobStatistics statistics() {
        return statistics;
    }
}
