package dev.pgworker.engine;

import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantReadWriteLock;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import dev.pgworker.store.JobStore;
import dev.pgworker.store.JobStore.Release;
import dev.pgworker.store.JobStore.ReleaseAction;

/**
 * Gives back jobs that the database handed to this worker in an answer that never arrived, because the connection broke
 * between the commit and the answer, and frees queues that were left locked so. Nobody else would: the worker lives and
 * holds their locks.
 *
 * <p>A claim holds the lock shared, from the statement until its jobs are in the local queue; a check holds it alone, so
 * that it sees no job that is still on its way. A check follows every failed claim and every outcome that could not be
 * written because the job is not held any more, and two more follow later, because a server may finish a statement after
 * its client has gone.
 */
public final class ClaimAudit {

    private static final Logger log = LoggerFactory.getLogger(ClaimAudit.class);

    private static final List<Duration> CHECKS_AFTER =
            List.of(Duration.ZERO, Duration.ofSeconds(5), Duration.ofSeconds(30));

    private static final long RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    private final JobStore store;
    private final LocalQueue localQueue;
    private final ReentrantReadWriteLock lock = new ReentrantReadWriteLock();

    /** Which check comes next; the size of the list when there is nothing to check. Set to 0 by any thread. */
    private final AtomicInteger nextCheck = new AtomicInteger(CHECKS_AFTER.size());

    private volatile long failedAt;

    /** Called when a check becomes due. */
    private volatile Runnable checkDue = () -> {};

    /** Creates the audit of one worker. */
    public ClaimAudit(JobStore store, LocalQueue localQueue) {
        this.store = store;
        this.localQueue = localQueue;
    }

    /** Says whom to wake for a check. Call before the start. */
    public void connect(Runnable onCheckDue) {
        checkDue = onCheckDue;
    }

    /** A statement that may claim jobs, and what takes them into the local queue. */
    @FunctionalInterface
    interface Claim {
        void run() throws SQLException;
    }

    /** Runs a claim on the calling thread and remembers if it fails. */
    void during(Claim claim) throws SQLException {
        lock.readLock().lock();
        try {
            claim.run();
        } catch (SQLException | RuntimeException e) {
            doubt();
            throw e;
        } finally {
            lock.readLock().unlock();
        }
    }

    /** Asks for checks, because what the database says this worker holds may not be what it knows of. */
    void doubt() {
        failedAt = System.nanoTime();
        nextCheck.set(0);
        checkDue.run();
    }

    /** Gives lost jobs back, and frees lost queues, if it is time for a check. */
    void checkIfDue() throws SQLException {
        int check = nextCheck.get();
        if (check < CHECKS_AFTER.size()
                && System.nanoTime() - failedAt >= CHECKS_AFTER.get(check).toNanos()
                && lock.writeLock().tryLock()) {
            try {
                giveBackLost();
                freeLost();
                nextCheck.compareAndSet(check, check + 1);
            } finally {
                lock.writeLock().unlock();
            }
        }
    }

    /** Returns how long to wait for the next check, some milliseconds at least; a very long time if none is to come. */
    long nanosUntilCheck() {
        int check = nextCheck.get();
        if (check >= CHECKS_AFTER.size()) {
            return Long.MAX_VALUE;
        }
        long left = failedAt + CHECKS_AFTER.get(check).toNanos() - System.nanoTime();
        // A check that is due but was kept out by a claim is tried again shortly.
        return Math.max(left, RETRY_NANOS);
    }

    private void giveBackLost() throws SQLException {
        List<Release> lost = new ArrayList<>();
        List<Long> goingOn = new ArrayList<>();
        for (JobStore.Held held : store.held()) {
            if (!localQueue.contains(held.id())) {
                lost.add(new Release(held.id(), held.key(), null, ReleaseAction.BACK, null, null, null));
                if (localQueue.containsQueue(held.queueName())) {
                    goingOn.add(held.id());
                }
            }
        }
        if (!lost.isEmpty()) {
            log.info("{} jobs were claimed in an answer that never arrived; they are given back", lost.size());
            store.release(lost, goingOn);
        }
    }

    private void freeLost() throws SQLException {
        List<String> lost = new ArrayList<>(store.heldQueues());
        lost.removeIf(localQueue::containsQueue);
        if (!lost.isEmpty()) {
            log.info("{} queues were left locked by an answer that never arrived; they are freed", lost.size());
            store.free(lost);
        }
    }
}
