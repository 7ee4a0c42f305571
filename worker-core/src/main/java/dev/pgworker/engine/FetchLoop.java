package dev.pgworker.engine;

import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
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

/**
 * Decides on {@code worker-fetch} when to look for jobs and for how many: after a notification, when a known job
 * becomes due, when a full worker has a slot again, and at the poll interval as a safety net.
 *
 * <p>Only this thread owns the schedule; others wake it.
 */
public final class FetchLoop extends BackgroundService {

    private static final Logger log = LoggerFactory.getLogger(FetchLoop.class);

    private final String workerId;
    private final JobStore store;
    private final Set<String> identifiers;
    private final LocalQueue localQueue;
    private final ClaimAudit audit;
    private final JobExecutor executor;
    private final Continuations continuations;
    private final Ownership ownership;
    private final long pollNanos;
    private final ClaimFloor floor;
    private final WorkerEvents events;

    /** Set by any thread when the database may hold a due job that the last claim did not see. */
    private final AtomicBoolean notified = new AtomicBoolean();

    // Owned by the thread.
    private JobStore.@Nullable Tasks tasks;
    private final ClaimBreadth breadth = new ClaimBreadth();
    private boolean mayHaveDue = true;
    private long pollAt;
    private long dueAt = Long.MAX_VALUE;

    /** Creates a loop for one worker. */
    public FetchLoop(
            String workerId,
            JobStore store,
            Set<String> identifiers,
            LocalQueue localQueue,
            ClaimAudit audit,
            JobExecutor executor,
            Continuations continuations,
            Ownership ownership,
            Duration pollInterval,
            ClaimFloor floor,
            WorkerEvents events,
            Outage outage) {
        // The one thread that keeps an application alive which does nothing but work.
        super("worker-fetch", false, outage);
        this.workerId = workerId;
        this.store = store;
        this.identifiers = identifiers;
        this.localQueue = localQueue;
        this.audit = audit;
        this.executor = executor;
        this.continuations = continuations;
        this.ownership = ownership;
        this.pollNanos = pollInterval.toNanos();
        this.floor = floor;
        this.events = events;
    }

    /** Says that there may be a job to claim. May be called from any thread. */
    public void jobsMayBeDue() {
        notified.set(true);
        wake();
    }

    /** Says that a slot is free, or that the worker may claim jobs from here on. May be called from any thread. */
    public void capacityFreed() {
        wake();
    }

    @Override
    protected void step() throws SQLException, InterruptedException {
        long time = System.nanoTime();
        if (tasks == null || time - pollAt >= 0) {
            learnTasks();
            executor.startMissingRunners();
            mayHaveDue = true;
        }
        if (notified.getAndSet(false) || (dueAt != Long.MAX_VALUE && time - dueAt >= 0)) {
            mayHaveDue = true;
        }
        executor.giveBackExpired();
        audit.checkIfDue();
        int wanted = localQueue.free();
        if (mayHaveDue && wanted > 0 && ownership.mayClaim()) {
            claim(wanted);
        } else {
            localQueue.othersWait(mayHaveDue);
            long wakeAt = mayHaveDue || dueAt == Long.MAX_VALUE || pollAt - dueAt < 0 ? pollAt : dueAt;
            long untilCheck = Math.min(audit.nanosUntilCheck(), localQueue.nanosUntilExpired());
            pause(Math.min(Math.max(wakeAt - time, 0), untilCheck));
        }
    }

    /** Looks the ids up again at every poll: a clean-up may have deleted a task, and the next add gives it a new id. */
    private void learnTasks() throws SQLException {
        boolean first = tasks == null;
        JobStore.Tasks learned = store.tasks(identifiers);
        tasks = learned;
        continuations.allow(learned);
        pollAt = System.nanoTime() + pollNanos;
        if (first) {
            log.debug("Tasks and their ids: {}", learned.identifiers());
            publish(() -> new WorkerEvent.WorkerStarted(workerId, identifiers));
        }
    }

    private void claim(int wanted) throws SQLException {
        JobStore.Tasks served = tasks;
        if (served == null) {
            return;
        }
        long before = System.nanoTime();
        List<Job> jobs = new ArrayList<>();
        publish(() -> new WorkerEvent.FetchStarted(workerId, wanted));
        // If this throws, whether something is due is still unknown.
        try {
            audit.during(() -> {
                jobs.addAll(store.claim(served, wanted, localQueue::runOf, breadth.isWide(), floor.current()));
                executor.submit(jobs);
            });
        } catch (SQLException | RuntimeException e) {
            publish(() -> new WorkerEvent.FetchFailed(workerId, e));
            throw e;
        }
        publish(() -> jobs.isEmpty()
                ? new WorkerEvent.FetchEmpty(workerId)
                : new WorkerEvent.JobsFetched(workerId, jobs.size()));
        breadth.claimed(jobs, wanted);
        boolean lookedAtAll = floor.claimed(jobs, wanted);
        if (jobs.size() < wanted && lookedAtAll) {
            Duration untilDue = store.nextDue(served, Duration.ofNanos(System.nanoTime() - before));
            dueAt = untilDue == null || untilDue.toNanos() > pollNanos
                    ? Long.MAX_VALUE
                    : System.nanoTime() + untilDue.toNanos();
            mayHaveDue = false;
        }
        localQueue.othersWait(mayHaveDue);
    }

    private void publish(Supplier<WorkerEvent> event) {
        if (events.isWatched()) {
            events.publish(event.get());
        }
    }
}
