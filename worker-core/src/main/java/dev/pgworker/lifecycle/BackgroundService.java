package dev.pgworker.lifecycle;

import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A thread that repeats one step until it is stopped. The contract that every background thread of a worker keeps:
 *
 * <ul>
 *   <li>A step that fails never ends the thread: the failure is noted in the {@link Outage}, and after a
 *       {@link Backoff} the step runs again.
 *   <li>Stopping is idempotent and legal before the start; a stopped service does not start again.
 *   <li>When {@link #stop} returns true the thread has ended.
 * </ul>
 */
public abstract class BackgroundService {

    private static final Logger log = LoggerFactory.getLogger(BackgroundService.class);

    /** How long to wait after a failure that could not be noted. */
    private static final long WITHOUT_A_WORD_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final String name;
    private final boolean daemon;
    private final Outage outage;
    private final Backoff backoff = new Backoff();
    private final Activity activity = new Activity();

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();

    @GuardedBy("lock") private boolean woken;

    @GuardedBy("lock") private @Nullable Thread thread;

    /** Set when no step is under way or will be: what comes then is not to be interrupted. */
    @GuardedBy("lock") private boolean pastLastStep;

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
        this.outage = outage;
    }

    /** Does a piece of work or waits for some. Called again and again on the service's thread. */
    protected abstract void step() throws SQLException, InterruptedException;

    /** Runs on the service's thread before it ends, uninterrupted; {@link #stop} waits for it within its limit. */
    protected void afterLastStep() {}

    /** Starts the thread, unless the service has been started or stopped already. */
    public final void start() {
        lock.lock();
        try {
            if (thread == null && !stopping) {
                succeededAt = System.nanoTime();
                thread = new Thread(this::run, name);
                thread.setDaemon(daemon);
                thread.start();
            }
        } finally {
            lock.unlock();
        }
    }

    /**
     * Ends the service: no step begins after this call, and a waiting one is interrupted.
     *
     * @param limit how long to wait for the thread to end
     * @return whether it has ended; false is logged
     */
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

    /** As {@link #stop}, but returns at once, so that several services can end at the same time. */
    public final void beginStop() {
        interruptWaiting();
    }

    private @Nullable Thread interruptWaiting() {
        lock.lock();
        try {
            stopping = true;
            changed.signalAll();
            if (thread != null && !pastLastStep && thread != Thread.currentThread()) {
                thread.interrupt();
            }
            return thread;
        } finally {
            lock.unlock();
        }
    }

    /** Returns the time since a step last succeeded, or since the service was started if none has. */
    public final Duration sinceSuccess() {
        return Duration.ofNanos(System.nanoTime() - succeededAt);
    }

    /** Returns true if the thread was started and has ended although nobody stopped it. */
    public final boolean isDead() {
        lock.lock();
        try {
            return thread != null && !stopping && !thread.isAlive();
        } finally {
            lock.unlock();
        }
    }

    /**
     * Returns true if the thread has been at one thing for longer than that, without waiting for the database and without
     * being stopped. Never waits.
     */
    public boolean isStuck(Duration longerThan) {
        return !stopping && activity.isStuck(longerThan);
    }

    /** Returns the thread's name. */
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

    /** Waits for the given time, for {@link #wake}, or for the stop, whichever comes first. */
    protected final void pause(long nanos) throws InterruptedException {
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

    /** Says that one of several things that a step does is done. Called on the service's thread. */
    protected final void progress() {
        activity.progress();
    }

    private void run() {
        while (!stopping) {
            try {
                activity.begin();
                step();
                succeededAt = System.nanoTime();
                outage.succeeded(name);
                backoff.reset();
            } catch (InterruptedException e) {
                // Only stop() interrupts; the loop's condition tells.
            } catch (SQLException | RuntimeException | Error e) {
                survive(e);
            }
        }
        outage.succeeded(name);
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

    /** Even where there is no memory to note a failure, the thread goes on. */
    private void survive(Throwable failure) {
        try {
            retryLater(failure);
        } catch (RuntimeException | Error e) {
            LockSupport.parkNanos(WITHOUT_A_WORD_NANOS);
        }
    }

    private void retryLater(Throwable failure) {
        if (stopping) {
            return;
        }
        if (failure instanceof Error) {
            log.error("Thread {} goes on after an error", name, failure);
        }
        outage.failed(name, failure);
        activity.end();
        try {
            TimeUnit.NANOSECONDS.sleep(backoff.next().toNanos());
        } catch (InterruptedException e) {
            // Only stop() interrupts; the loop's condition tells.
        }
    }
}
