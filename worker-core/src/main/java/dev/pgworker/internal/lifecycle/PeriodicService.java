package dev.pgworker.internal.lifecycle;

import java.lang.reflect.Method;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.micrometer.observation.ObservationRegistry;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.springframework.scheduling.TriggerContext;

import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.failure.WorkerLog;

/**
 * Work that is done again and again, with pauses, on a thread that it shares with others: {@link PeriodicTasks} has it done. It
 * keeps the contract of a {@link BackgroundService}:
 *
 * <ul>
 *   <li>Work that fails is done again, at once after a conflict with another transaction, after growing pauses else. A database that
 *       cannot be used is noted in the {@link Outage}; what else fails is logged as what it is.
 *   <li>Stopping is idempotent and legal before the start; a stopped service does not start again.
 *   <li>When {@link #stop} returns true no work is under way.
 * </ul>
 *
 * <p>The work is never done twice at the same time, and sees all that the work before it has written, though that may have been
 * done on another thread.
 */
public abstract class PeriodicService implements Service {

    /** What {@link #work} returns when there is nothing to do before {@link #wake} is called; it is done from time to time all the same. */
    protected static final Duration UNTIL_WOKEN = Duration.ofHours(1);

    private static final Logger log = WorkerLog.of(PeriodicService.class);

    /** So long after its time work that has not begun never will: nothing else delays it as long. */
    private static final Duration LATEST = Duration.ofSeconds(30);

    private static final Duration AFTER_INTERRUPTION = Duration.ofMillis(100);

    private final String name;
    private final String purpose;
    private final StepResults results;
    private final Activity activity = new Activity();

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();

    /** The thread that does the work; null while that is not being done. */
    @GuardedBy("lock") private @Nullable Thread thread;

    private volatile boolean stopping;

    /** Set by {@link #wake} until the work begins. */
    private volatile boolean woken;

    /** Whether the work that is being done, or was last, was called for by {@link #wake}. */
    private volatile boolean byWake;

    /** Whether the work waits because it has failed, which nothing cuts short. */
    private volatile boolean backingOff;

    /** When the work is to be done, by {@link System#nanoTime}. */
    private volatile long dueAt = System.nanoTime();

    /** When it last succeeded, or the service was started, by {@link System#nanoTime}. */
    private volatile long succeededAt = System.nanoTime();

    /** Null before the start. */
    private volatile @Nullable TimedTask task;

    /**
     * Creates a service that is not running.
     *
     * @param name the thread's name while it does the work, also used in messages
     * @param purpose what the work is, in words that complete "worker:"
     */
    protected PeriodicService(String name, String purpose, Outage outage) {
        this.name = name;
        this.purpose = purpose;
        results = new StepResults(name, outage);
    }

    /** Does the work once, and returns how long there is none. */
    protected abstract Duration work() throws SQLException, InterruptedException;

    /** Returns how long there is no work after the start. */
    protected Duration firstPause() {
        return Duration.ZERO;
    }

    /** Has the work done at once, or once more if it is being done, unless it waits because it has failed. May be called from any thread. */
    protected final void wake() {
        if (woken) {
            return;
        }
        woken = true;
        TimedTask scheduled = task;
        if (scheduled != null && !backingOff) {
            scheduled.reconsider();
        }
    }

    /** Returns whether the work is done because {@link #wake} has been called. Called by the work. */
    protected final boolean wasWoken() {
        return byWake;
    }

    /** Waits in the middle of the work; the stop ends that with an interruption. What has been done until then counts as done. */
    protected final void rest(Duration time) throws InterruptedException {
        results.progressed();
        activity.end();
        try {
            Thread.sleep(Math.max(1, time.toMillis()));
        } finally {
            activity.begin();
        }
    }

    /** Notes that one of several things that belong to the work is done. */
    protected final void progress() {
        activity.progress();
    }

    /** Returns true once {@link #stop} has been called. */
    protected final boolean isStopping() {
        return stopping;
    }

    /** Returns when to do the work next. Waits for nothing. */
    final Instant next(TriggerContext context) {
        long delay = woken && !backingOff ? 0 : dueAt - System.nanoTime();
        return context.getClock().instant().plusNanos(Math.max(0, delay));
    }

    /** Sets the task that executes the work from here on. */
    final void startedAs(TimedTask scheduled) {
        succeededAt = System.nanoTime();
        dueAt = succeededAt + firstPause().toNanos();
        task = scheduled;
        if (stopping) {
            scheduled.cancel(false);
        }
    }

    /** Returns whether the service can be started: it has not been yet, nor stopped. */
    final boolean isStartable() {
        return task == null && !stopping;
    }

    /** Has the work done if it is due and no thread does it, because there was no memory to schedule it. */
    final void revive(Duration overdue) {
        TimedTask scheduled = task;
        if (scheduled != null && isOverdue(overdue)) {
            scheduled.reconsider();
        }
    }

    private boolean isOverdue(Duration limit) {
        return !stopping && isIdle() && System.nanoTime() - dueAt > limit.toNanos();
    }

    private boolean isIdle() {
        lock.lock();
        try {
            return thread == null;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Does the work on the calling thread.
     *
     * @throws Throwable what kept it from being done, which has been noted
     */
    final void run(ObservationRegistry observations) throws Throwable {
        if (!begin()) {
            return;
        }
        Thread current = Thread.currentThread();
        String usual = current.getName();
        Throwable failure = null;
        long pause = AFTER_INTERRUPTION.toNanos();
        try {
            activity.begin();
            results.begin();
            current.setName(name);
            pause = observed(observations).toNanos();
            succeededAt = System.nanoTime();
            results.succeeded();
        } catch (InterruptedException e) {
            // Ends the work without a message: the stop has come, or other code has interrupted the thread.
        } catch (Throwable e) {
            failure = e;
            pause = stopping ? 0 : results.failed(e);
        } finally {
            end(pause, failure != null);
            current.setName(usual);
        }
        if (failure != null && !stopping) {
            throw failure;
        }
    }

    private boolean begin() {
        lock.lock();
        try {
            if (stopping || thread != null) {
                return false;
            }
            thread = Thread.currentThread();
            byWake = woken;
            woken = false;
            backingOff = false;
            return true;
        } finally {
            lock.unlock();
        }
    }

    private void end(long pause, boolean failed) {
        activity.end();
        results.end();
        lock.lock();
        try {
            if (stopping) {
                results.left();
            }
            dueAt = System.nanoTime() + pause;
            backingOff = failed;
            thread = null;
            // An interruption was meant for this work, and not for what the thread does next.
            Thread.interrupted();
            changed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    private Duration observed(ObservationRegistry observations) throws SQLException, InterruptedException {
        WorkObservation observation = WorkObservation.begin(observations, this, PeriodicService::workMethod);
        if (observation == null) {
            return work();
        }
        Throwable failure = null;
        try {
            return work();
        } catch (Throwable e) {
            failure = e;
            throw e;
        } finally {
            observation.end(failure);
        }
    }

    private static Method workMethod() {
        try {
            return PeriodicService.class.getDeclaredMethod("work");
        } catch (NoSuchMethodException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public final boolean stop(Duration limit) {
        beginStop();
        long left = limit.toNanos();
        lock.lock();
        try {
            while (thread != null && thread != Thread.currentThread() && left > 0) {
                left = changed.awaitNanos(left);
            }
            if (thread == null || thread == Thread.currentThread()) {
                return true;
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            lock.unlock();
        }
        log.warn("Thread {} did not end within {} ms", name, limit.toMillis());
        return false;
    }

    @Override
    public final void beginStop() {
        lock.lock();
        try {
            stopping = true;
            if (thread == null) {
                results.left();
            } else if (thread != Thread.currentThread()) {
                thread.interrupt();
            }
        } finally {
            lock.unlock();
        }
        TimedTask scheduled = task;
        if (scheduled != null) {
            scheduled.cancel(false);
        }
    }

    @Override
    public final Duration sinceSuccess() {
        return Duration.ofNanos(System.nanoTime() - succeededAt);
    }

    /** Returns true if the work should have begun long ago, and was not stopped. */
    @Override
    public final boolean isDead() {
        return task != null && isOverdue(LATEST);
    }

    @Override
    public boolean isStuck(Duration longerThan) {
        return !stopping && activity.isStuck(longerThan);
    }

    @Override
    public final String name() {
        return name;
    }

    /** Returns what the work is, in words that complete "worker:". */
    public final String purpose() {
        return purpose;
    }
}
