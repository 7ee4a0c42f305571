package dev.pgworker.internal.lifecycle;

import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.failure.WorkerLog;

/**
 * A thread that repeats one step until it is stopped. The contract that every background thread of a worker keeps:
 *
 * <ul>
 *   <li>A step that fails never ends the thread: it runs again, at once after a conflict with another transaction, after a
 *       pause else, longer each time. A database that cannot be used is noted in the {@link Outage}; what else fails is logged as
 *       what it is, once.
 *   <li>Stopping is idempotent and legal before the start; a stopped service does not start again.
 *   <li>When {@link #stop} returns true the thread has ended.
 * </ul>
 */
public abstract class BackgroundService implements Service {

    private static final Logger log = WorkerLog.of(BackgroundService.class);

    /** How long to wait after a failure that could not be noted. */
    private static final long WITHOUT_A_WORD_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final String name;
    private final boolean daemon;
    private final StepResults results;
    private final Activity activity = new Activity();

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();

    @GuardedBy("lock") private boolean woken;

    @GuardedBy("lock") private @Nullable Thread thread;

    /** Set when no step is under way or will be: what comes then is not to be interrupted. */
    @GuardedBy("lock") private boolean pastLastStep;

    @GuardedBy("lock") private boolean shielded;

    private volatile boolean stopping;

    /** When a step last succeeded, or the service was started, by {@link System#nanoTime}. */
    private volatile long succeededAt = System.nanoTime();

    /**
     * Creates a service that is not running.
     *
     * @param name the thread's name, also used in messages
     * @param daemon whether the JVM may end while the thread runs
     */
    protected BackgroundService(String name, boolean daemon, Outage outage) {
        this.name = name;
        this.daemon = daemon;
        results = new StepResults(name, outage);
    }

    /** Does a piece of work or waits for some. Called again and again on the service's thread. */
    protected abstract void step() throws SQLException, InterruptedException;

    /** Runs on the service's thread before it ends, uninterrupted; {@link #stop} waits for it within its limit. */
    protected void afterLastStep() {}

    /**
     * Ends a wait of the step that no interruption ends. Called on the thread that stops the service, each time that is asked for;
     * must return at once.
     */
    protected void endWait() {}

    /** Returns the thread that is to run the task, not started. */
    Thread newThread(Runnable task) {
        return new Thread(task, name);
    }

    /** Starts the thread, unless the service has been started or stopped already. */
    public final void start() {
        lock.lock();
        try {
            if (thread == null && !stopping) {
                succeededAt = System.nanoTime();
                thread = newThread(this::run);
                thread.setDaemon(daemon);
                thread.start();
            }
        } finally {
            lock.unlock();
        }
    }

    @Override
    public final boolean stop(Duration limit) {
        Thread running = interruptWaiting();
        if (running == null || running == Thread.currentThread()) {
            return true;
        }
        try {
            running.join(Math.max(1, limit.toMillis()));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        if (running.isAlive()) {
            log.warn("Thread {} did not end within {} ms", name, limit.toMillis());
            return false;
        }
        return true;
    }

    @Override
    public final void beginStop() {
        interruptWaiting();
    }

    private @Nullable Thread interruptWaiting() {
        Thread running;
        lock.lock();
        try {
            stopping = true;
            changed.signalAll();
            if (thread != null && !pastLastStep && !shielded && thread != Thread.currentThread()) {
                thread.interrupt();
            }
            running = thread;
        } finally {
            lock.unlock();
        }
        endWait();
        return running;
    }

    /** Returns what the service has failed with since its last success; null if it has not. May be called from any thread. */
    public final @Nullable Failing failing() {
        return results.failing();
    }

    @Override
    public final Duration sinceSuccess() {
        return Duration.ofNanos(System.nanoTime() - succeededAt);
    }

    /** Returns true if the thread was started and has ended although it was not stopped. */
    @Override
    public final boolean isDead() {
        lock.lock();
        try {
            return thread != null && !stopping && !thread.isAlive();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean isStuck(Duration longerThan) {
        return !stopping && activity.isStuck(longerThan);
    }

    @Override
    public final String name() {
        return name;
    }

    /** Returns true once {@link #stop} has been called. */
    protected final boolean isStopping() {
        return stopping;
    }

    /** Ends the current or next {@link #pause} at once. May be called from any thread. */
    protected final void wake() {
        lock.lock();
        try {
            woken = true;
            changed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /**
     * Waits for the given time, for {@link #wake}, or for the stop, whichever comes first. What the step has done until then
     * counts as done. Called on the service's thread.
     */
    protected final void pause(long nanos) throws InterruptedException {
        results.progressed();
        activity.end();
        lock.lock();
        try {
            long left = nanos;
            while (!woken && !stopping && left > 0) {
                left = changed.awaitNanos(left);
            }
            woken = false;
        } finally {
            lock.unlock();
            activity.begin();
        }
    }

    /** Something that a service waits for because it has nothing else to do. */
    @FunctionalInterface
    protected interface Wait<T> {
        T await() throws InterruptedException;
    }

    /** Waits in another way than {@link #pause}, for as long as it takes. Called on the service's thread. */
    protected final <T> T idle(Wait<T> wait) throws InterruptedException {
        activity.end();
        try {
            return wait.await();
        } finally {
            activity.begin();
        }
    }

    /**
     * Sets whether the stop leaves alone what the thread is doing, which is to look for it itself. Called on the
     * service's thread.
     */
    protected final void shield(boolean on) {
        lock.lock();
        try {
            shielded = on;
        } finally {
            lock.unlock();
        }
    }

    /** Notes that one of several things that a step does is done. Called on the service's thread. */
    protected final void progress() {
        activity.progress();
    }

    private void run() {
        results.begin();
        while (!stopping) {
            try {
                activity.begin();
                step();
                succeededAt = System.nanoTime();
                results.succeeded();
            } catch (InterruptedException e) {
                // Only stop() interrupts; the loop's condition shows it.
            } catch (Throwable e) {
                // Whatever it is, checked exceptions included that code throws undeclared.
                survive(e);
            }
        }
        results.left();
        activity.end();
        leaveSteps();
        try {
            afterLastStep();
        } catch (RuntimeException | Error e) {
            log.warn("Thread {} did not end cleanly", name, e);
        }
    }

    private void leaveSteps() {
        lock.lock();
        try {
            pastLastStep = true;
            Thread.interrupted();
        } finally {
            lock.unlock();
        }
    }

    /** Even where there is no memory to note a failure, the thread continues. */
    private void survive(Throwable failure) {
        try {
            if (!stopping) {
                sleep(results.failed(failure));
            }
        } catch (Throwable e) {
            LockSupport.parkNanos(WITHOUT_A_WORD_NANOS);
        }
    }

    private void sleep(long nanos) {
        activity.end();
        try {
            TimeUnit.NANOSECONDS.sleep(nanos);
        } catch (InterruptedException e) {
            // Only stop() interrupts; the loop's condition shows it.
        }
    }
}
