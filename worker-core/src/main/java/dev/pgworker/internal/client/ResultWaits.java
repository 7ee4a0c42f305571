package dev.pgworker.internal.client;

import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.springframework.dao.InvalidDataAccessResourceUsageException;

import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.store.EndStore;
import dev.pgworker.internal.store.EndStore.End;

/**
 * Waits for the ends of jobs, for all who wait for some of one schema. Its thread, {@code worker-results}, is there
 * while a caller waits.
 *
 * <p>The listener of a worker in this process reports which jobs have ended, and then a look at all is taken every five
 * seconds, as a notification may be lost. Whether there is such a worker is found out by what comes: until one has
 * announced a job of these, and after a look has found an end that was not announced, one statement looks at all of
 * them, at first after milliseconds, and at last four times a second.
 */
public final class ResultWaits {

    private static final Logger log = WorkerLog.of(ResultWaits.class);

    private static final long FIRST_NANOS = TimeUnit.MILLISECONDS.toNanos(5);
    private static final long UNHEARD_NANOS = TimeUnit.MILLISECONDS.toNanos(250);
    private static final long HEARD_NANOS = TimeUnit.SECONDS.toNanos(5);

    /** How long the thread stays when no caller waits. */
    private static final long IDLE_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** A look takes at most this part of the time. */
    private static final int SHARE = 20;

    /** Those of this process for which a caller waits. */
    private static final Set<ResultWaits> ACTIVE = ConcurrentHashMap.newKeySet();

    private final EndStore store;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();

    @GuardedBy("lock") private final Map<Long, Set<CompletableFuture<End>>> waiting = new HashMap<>();

    /** What to look at without waiting any longer. */
    @GuardedBy("lock") private final Set<Long> toLookAt = new HashSet<>();

    @GuardedBy("lock") private boolean lookAtAll;

    @GuardedBy("lock") private boolean running;

    /** Whether a worker of this process announces ends, as far as is known. */
    @GuardedBy("lock") private boolean heard;

    @GuardedBy("lock") private long pauseNanos = FIRST_NANOS;

    private volatile boolean failed;

    ResultWaits(EndStore store) {
        this.store = store;
    }

    /**
     * Notes that jobs have ended. May be called from any thread, returns at once.
     *
     * @param ids of the jobs, separated by commas, in whatever schema; any role may have sent it. Empty if there were
     *     too many, and null if some may have been missed
     */
    public static void announced(@Nullable String ids) {
        ACTIVE.forEach(each -> each.hear(ids));
    }

    private void hear(@Nullable String ids) {
        lock.lock();
        try {
            if (ids == null) {
                heard = false;
                pauseNanos = FIRST_NANOS;
                lookAtAll = true;
            } else if (ids.isEmpty()) {
                lookAtAll = true;
            } else {
                for (String id : ids.split(",", -1)) {
                    if (id.matches("[0-9]{1,18}") && waiting.containsKey(Long.valueOf(id))) {
                        toLookAt.add(Long.valueOf(id));
                        heard = true;
                        pauseNanos = HEARD_NANOS;
                    }
                }
            }
            changed.signal();
        } finally {
            lock.unlock();
        }
    }

    /**
     * Has a future complete with the end of a job.
     *
     * @param end completes on the thread that looks: nothing of a caller's may run there
     */
    void add(long jobId, CompletableFuture<End> end) {
        lock.lock();
        try {
            waiting.computeIfAbsent(jobId, first -> new HashSet<>()).add(end);
            toLookAt.add(jobId);
            if (!heard) {
                pauseNanos = FIRST_NANOS;
            }
            changed.signal();
            if (!running) {
                Thread thread = new Thread(this::run, "worker-results");
                thread.setDaemon(true);
                thread.start();
                running = true;
                ACTIVE.add(this);
            }
        } finally {
            lock.unlock();
        }
    }

    /** Waits no longer. */
    @SuppressWarnings("CollectionUndefinedEquality") // each is itself alone
    void forget(long jobId, CompletableFuture<End> end) {
        lock.lock();
        try {
            Set<CompletableFuture<End>> others = waiting.get(jobId);
            if (others != null && others.remove(end) && others.isEmpty()) {
                waiting.remove(jobId);
            }
        } finally {
            lock.unlock();
        }
    }

    private void run() {
        boolean on = true;
        while (on) {
            try {
                on = step();
            } catch (Throwable e) {
                // Whatever it is, those who wait have limits of their own, and others come.
                survive(e);
            }
        }
    }

    /**
     * What to look at.
     *
     * @param poll whether it is everything, and only because time has passed
     */
    private record Look(Set<Long> ids, boolean poll) {}

    /** Returns false when no caller has waited for some time. */
    private boolean step() throws SQLException, InterruptedException {
        Look look = next();
        if (look == null) {
            return false;
        }
        long begun = System.nanoTime();
        boolean found = false;
        List<End> ended;
        do {
            ended = look.ids().isEmpty() ? List.of() : store.ended(look.ids());
            for (End end : ended) {
                look.ids().remove(end.jobId());
                found |= deliver(end);
            }
        } while (!ended.isEmpty());
        failed = false;
        looked(look.poll(), found, System.nanoTime() - begun);
        return true;
    }

    /** Waits until there is something to look at; null if no caller waits, and the thread is to end. */
    private @Nullable Look next() throws InterruptedException {
        lock.lock();
        try {
            long left = waiting.isEmpty() ? IDLE_NANOS : pauseNanos;
            while (left > 0 && !lookAtAll && toLookAt.isEmpty()) {
                left = changed.awaitNanos(left);
            }
            boolean poll = !lookAtAll && toLookAt.isEmpty();
            if (poll && waiting.isEmpty()) {
                running = false;
                ACTIVE.remove(this);
                return null;
            }
            Set<Long> ids = new HashSet<>(poll || lookAtAll ? waiting.keySet() : toLookAt);
            lookAtAll = false;
            toLookAt.clear();
            return new Look(ids, poll);
        } finally {
            lock.unlock();
        }
    }

    /** Returns whether a caller waited for that end. */
    private boolean deliver(End end) {
        Set<CompletableFuture<End>> ends;
        lock.lock();
        try {
            ends = waiting.remove(end.jobId());
        } finally {
            lock.unlock();
        }
        if (ends == null) {
            return false;
        }
        ends.forEach(each -> each.complete(end));
        return true;
    }

    private void looked(boolean poll, boolean found, long tookNanos) {
        lock.lock();
        try {
            if (poll && found) {
                heard = false;
                pauseNanos = FIRST_NANOS;
            } else if (poll) {
                pauseNanos = Math.min(heard ? HEARD_NANOS : UNHEARD_NANOS, 2 * pauseNanos);
            }
            pauseNanos = Math.max(pauseNanos, SHARE * tookNanos);
        } finally {
            lock.unlock();
        }
    }

    private void survive(Throwable failure) {
        if (failure instanceof SQLException refused && DatabaseFailure.isAboutTheSchema(refused)) {
            fail(refused);
        } else if (failed) {
            log.debug("The results of jobs cannot be read", failure);
        } else {
            failed = true;
            log.warn("The results of jobs cannot be read, and those who wait for them continue to wait", failure);
        }
        try {
            TimeUnit.NANOSECONDS.sleep(UNHEARD_NANOS);
        } catch (InterruptedException e) {
            log.debug("This thread was interrupted", e);
        }
    }

    /** A right that is missing, or a schema without the function, ends all waits: they would never end. */
    private void fail(SQLException refused) {
        List<CompletableFuture<End>> all = new ArrayList<>();
        lock.lock();
        try {
            waiting.values().forEach(all::addAll);
            waiting.clear();
            toLookAt.clear();
        } finally {
            lock.unlock();
        }
        all.forEach(each -> each.completeExceptionally(new InvalidDataAccessResourceUsageException(
                "The results of jobs cannot be read: " + refused.getMessage(), refused)));
    }
}
