package dev.pgworker.engine;

import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.event.WorkerEvents;
import dev.pgworker.job.Job;
import dev.pgworker.lifecycle.BackgroundService;
import dev.pgworker.lifecycle.Outage;
import dev.pgworker.store.JobStore;
import dev.pgworker.store.JobStore.Completion;
import dev.pgworker.store.JobStore.Lanes;
import dev.pgworker.store.JobStore.Release;
import dev.pgworker.store.JobStore.ReleaseAction;
import dev.pgworker.store.JobStore.Unwritten;
import dev.pgworker.store.JobStore.When;

/**
 * Writes outcomes in groups on {@code worker-complete}: what ends while a write is under way forms the next one. An
 * outcome stays here until it is written or the job turns out to be another worker's.
 */
public final class JobCompleter extends BackgroundService {

    private static final Logger log = LoggerFactory.getLogger(JobCompleter.class);

    private static final int LARGEST_GROUP = 500;
    private static final Duration BUSY_PAUSE = Duration.ofMillis(20);

    private final String workerId;
    private final JobStore store;
    private final LocalQueue localQueue;
    private final ClaimAudit audit;
    private final Continuations continuations;
    private final Duration interruptedRetryDelay;
    private final WorkerEvents events;

    private final BlockingQueue<Finished> finished = new LinkedBlockingQueue<>();

    /** What the next write holds. Owned by the thread; survives a failed write. */
    private final List<Finished> group = new ArrayList<>();

    private volatile Runnable capacityFreed = () -> {};
    private volatile Runnable jobsReleased = () -> {};

    /** Creates a completer for one worker. */
    public JobCompleter(
            String workerId,
            JobStore store,
            LocalQueue localQueue,
            ClaimAudit audit,
            Continuations continuations,
            Duration interruptedRetryDelay,
            WorkerEvents events,
            Outage outage) {
        super("worker-complete", true, outage);
        this.workerId = workerId;
        this.store = store;
        this.localQueue = localQueue;
        this.audit = audit;
        this.continuations = continuations;
        this.interruptedRetryDelay = interruptedRetryDelay;
        this.events = events;
    }

    private record Finished(Job job, JobOutcome outcome) {}

    /** Says whom to tell about free slots, and about jobs that run again at a later time. Call before the start. */
    public void connect(Runnable onCapacityFreed, Runnable onJobsReleased) {
        capacityFreed = onCapacityFreed;
        jobsReleased = onJobsReleased;
    }

    /** Takes an outcome; returns before it is written. May be called from any thread. */
    void submit(Job job, JobOutcome outcome) {
        finished.add(new Finished(job, outcome));
    }

    /**
     * Waits until every outcome submitted so far is written.
     *
     * @return false if that takes longer than the limit
     */
    public boolean awaitWritten(Duration limit) throws InterruptedException {
        return localQueue.awaitIdle(limit);
    }

    @Override
    protected void step() throws SQLException, InterruptedException {
        if (group.isEmpty()) {
            group.add(finished.take());
        }
        finished.drainTo(group, LARGEST_GROUP - group.size());
        settleDecided();
        complete();
        release();
        if (!group.isEmpty()) {
            // Only busy jobs are left: somebody changes them in an open transaction.
            Finished next = finished.poll(BUSY_PAUSE.toMillis(), TimeUnit.MILLISECONDS);
            if (next != null) {
                group.add(next);
            }
        }
    }

    private void complete() throws SQLException {
        List<Job> done = new ArrayList<>();
        for (Finished f : group) {
            if (f.outcome instanceof JobOutcome.Success) {
                done.add(f.job);
            }
        }
        if (done.isEmpty()) {
            return;
        }
        done.sort(Comparator.comparingLong(Job::id));
        audit.during(() -> {
            Lanes lanes = continuations.allowed(localQueue.plan(done));
            Completion completion = store.complete(done, continuations.tasks(), lanes);
            continuations.accept(completion.claimed());
            settle(done, completion.unwritten());
        });
    }

    /** Settles what handlers' transactions have written, or found to be another worker's. */
    private void settleDecided() throws SQLException {
        List<Job> decided = new ArrayList<>();
        List<Job> holding = new ArrayList<>();
        List<Long> lost = new ArrayList<>();
        for (Finished f : group) {
            if (f.outcome instanceof JobOutcome.Committed committed) {
                decided.add(f.job);
                if (committed.queueHeld()) {
                    holding.add(f.job);
                }
            } else if (f.outcome instanceof JobOutcome.Lost) {
                decided.add(f.job);
                lost.add(f.job.id());
            }
        }
        if (!decided.isEmpty()) {
            freeQueues(holding, decided);
            settle(decided, new Unwritten(List.of(), lost));
        }
    }

    /** Frees the queues that these jobs left locked although nothing is left of them. */
    private void freeQueues(List<Job> holding, List<Job> decided) throws SQLException {
        if (holding.isEmpty()) {
            return;
        }
        List<Long> goingOn = localQueue.plan(decided).goingOn();
        Set<String> over = new HashSet<>();
        for (Job job : holding) {
            if (!goingOn.contains(job.id())) {
                over.add(Objects.requireNonNull(job.queueName()));
            }
        }
        if (!over.isEmpty()) {
            store.free(over);
        }
    }

    private void release() throws SQLException {
        List<Job> jobs = new ArrayList<>();
        List<Release> releases = new ArrayList<>();
        for (Finished f : group) {
            Release release = release(f);
            if (release != null) {
                jobs.add(f.job);
                releases.add(release);
            }
        }
        if (!releases.isEmpty()) {
            settle(jobs, write(releases, localQueue.plan(jobs).goingOn()));
            jobsReleased.run();
        }
    }

    private Unwritten write(List<Release> releases, List<Long> goingOn) throws SQLException {
        try {
            return store.release(releases, goingOn);
        } catch (SQLException e) {
            if (e.getSQLState() == null || !e.getSQLState().startsWith("22")) {
                throw e;
            }
            log.debug("The database cannot hold an error text; it is reduced to ASCII", e);
            List<Release> ascii = releases.stream()
                    .map(r -> r.withError(r.error() == null ? null : ErrorText.ascii(r.error())))
                    .toList();
            return store.release(ascii, goingOn);
        }
    }

    /** Returns what to write for an outcome, or null if it is not one of those that give a job up. */
    private @Nullable Release release(Finished f) {
        if (f.outcome instanceof JobOutcome.Failure failure) {
            ReleaseAction action = failure.permanently() ? ReleaseAction.FAIL : ReleaseAction.RETRY;
            return Release.of(f.job, action, failure.when(), ErrorText.of(failure.error()), failure.rest());
        }
        if (f.outcome instanceof JobOutcome.Snoozed snoozed) {
            return Release.of(f.job, ReleaseAction.BACK, snoozed.when(), null, null);
        }
        if (f.outcome instanceof JobOutcome.Returned returned) {
            When when = returned.started() ? When.in(interruptedRetryDelay) : null;
            return Release.of(f.job, ReleaseAction.BACK, when, null, returned.rest());
        }
        return null;
    }

    /** Removes what is written from the group, tells about it, and frees the slots. */
    private void settle(List<Job> jobs, Unwritten unwritten) {
        Map<Long, Boolean> lost = new HashMap<>();
        unwritten.lost().forEach(id -> lost.put(id, true));
        unwritten.busy().forEach(id -> lost.put(id, false));
        Map<Long, Job> settled = new HashMap<>();
        for (Job job : jobs) {
            if (!Boolean.FALSE.equals(lost.get(job.id()))) {
                settled.put(job.id(), job);
            }
        }
        for (Finished f : group) {
            if (settled.containsKey(f.job.id())) {
                report(f, lost.containsKey(f.job.id()));
            }
        }
        group.removeIf(f -> settled.containsKey(f.job.id()));
        localQueue.settled(settled.values());
        if (!unwritten.lost().isEmpty()) {
            audit.doubt();
        }
        capacityFreed.run();
    }

    private void report(Finished f, boolean lost) {
        if (lost) {
            named(f.job, () -> log.warn("{} is not held by this worker any more; its outcome is not recorded", f.job));
            publish(() -> new WorkerEvent.JobLost(workerId, f.job));
        } else if (f.outcome instanceof JobOutcome.Failure failure) {
            boolean permanently = failure.permanently() || f.job.attempts() >= f.job.maxAttempts();
            named(f.job, () -> {
                if (permanently) {
                    log.error("{} failed permanently", f.job, failure.error());
                } else {
                    log.warn("{} failed and will be retried", f.job, failure.error());
                }
            });
            publish(() -> new WorkerEvent.JobFailed(workerId, f.job, failure.error(), permanently));
        } else if (f.outcome instanceof JobOutcome.Snoozed) {
            log.debug("{} is snoozed", f.job);
            publish(() -> new WorkerEvent.JobSnoozed(workerId, f.job));
        } else if (f.outcome instanceof JobOutcome.Returned returned) {
            log.info("{} is given back, its attempt not counted", f.job);
            publish(() -> new WorkerEvent.JobReturned(workerId, f.job, returned.started()));
        } else {
            log.debug("{} succeeded", f.job);
            publish(() -> new WorkerEvent.JobCompleted(workerId, f.job));
        }
    }

    /** Logs with the job in the logging context, as while its handler ran. */
    private void named(Job job, Runnable logging) {
        JobMdc.put(job, workerId);
        try {
            logging.run();
        } finally {
            JobMdc.clear();
        }
    }

    private void publish(Supplier<WorkerEvent> event) {
        if (events.isWatched()) {
            events.publish(event.get());
        }
    }
}
