package dev.pgworker.internal.lifecycle;

import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import dev.pgworker.internal.failure.Backoff;
import dev.pgworker.internal.failure.DatabaseContact;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.Failures;
import dev.pgworker.internal.failure.Outage;

/**
 * A thread that repeats one step until it is stopped. The contract that every background thread of a worker keeps:
 *
 * <ul>
 *   <li>A step that fails never ends the thread: it runs again, at once after a conflict with another transaction, after a
 *       {@link Backoff} else. A database that cannot be used is noted in the {@link Outage}; what else fails is logged as
 *       what it is, see {@link Failures}.
 *   <li>Stopping is idempotent and legal before the start; a stopped service does not start again.
 *   <li>When {@link #stop} returns true the thread has ended.
 * </ul>
 */
public abstract class BackgroundService {

    private static final Logger log = LoggerFactory.getLogger(BackgroundService.class);

    /** So many conflicts one after the other are no coincidence. */
    private static final int CONFLICTS_AT_ONCE = 10;

    private static final long LONGEST_CONFLICT_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    /** How long to wait after a failure that could not be noted. */
    private static final long WITHOUT_A_WORD_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final String name;
    private final boolean daemon;
    private final Outage outage;
    private final Backoff backoff = new Backoff();
    private final Activity activity = new Activity();
    private final Failures failures;

    /** Owned by the service's thread. */
    private @Nullable DatabaseContact contact;

    private int conflictsInARow;

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
        this.outage = outage;
        this.failures = new Failures(name);
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

    /**
     * Waits for the given time, for {@link #wake}, or for the stop, whichever comes first. What the step has done until then
     * counts as done. Called on the service's thread.
     */
    protected final void pause(long nanos) throws InterruptedException {
        noteProgress();
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
     * Says whether the stop leaves alone what the thread is doing, which is to look for it itself. Called on the service's
     * thread.
     */
    protected final void shield(boolean on) {
        lock.lock();
        try {
            shielded = on;
        } finally {
            lock.unlock();
        }
    }

    /** Says that one of several things that a step does is done. Called on the service's thread. */
    protected final void progress() {
        activity.progress();
    }

    private void run() {
        contact = DatabaseContact.watch();
        while (!stopping) {
            try {
                activity.begin();
                step();
                succeededAt = System.nanoTime();
                noteProgress();
                conflictsInARow = 0;
                failures.succeeded();
                backoff.reset();
            } catch (InterruptedException e) {
                // Only stop() interrupts; the loop's condition tells.
            } catch (Throwable e) {
                // Whatever it is, checked exceptions included that somebody throws undeclared.
                survive(e);
            }
        }
        outage.left(name);
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
        } catch (Throwable e) {
            LockSupport.parkNanos(WITHOUT_A_WORD_NANOS);
        }
    }

    private void noteProgress() {
        if (contact != null && contact.take()) {
            outage.succeeded(name);
        } else {
            outage.left(name);
        }
    }

    private void retryLater(Throwable failure) {
        if (stopping) {
            return;
        }
        if (contact != null) {
            contact.take();
        }
        DatabaseFailure kind = DatabaseFailure.of(failure);
        if (kind == DatabaseFailure.CONFLICT && ++conflictsInARow <= CONFLICTS_AT_ONCE) {
            log.debug("Thread {} repeats its work after a conflict", name, failure);
            sleep(ThreadLocalRandom.current().nextLong(LONGEST_CONFLICT_PAUSE_NANOS));
            return;
        }
        if (kind == DatabaseFailure.OUTAGE) {
            outage.failed(name, failure);
        } else if (DatabaseFailure.isMissingSchema(failure)) {
            outage.schemaMissing(name, failure);
        } else {
            failures.report(kind, failure);
        }
        sleep(backoff.next().toNanos());
    }

    private void sleep(long nanos) {
        activity.end();
        try {
            TimeUnit.NANOSECONDS.sleep(nanos);
        } catch (InterruptedException e) {
            // Only stop() interrupts; the loop's condition tells.
        }
    }
}
