package dev.pgworker.internal.lifecycle;

import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Delayed;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.IntConsumer;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;
import org.springframework.scheduling.Trigger;
import org.springframework.scheduling.support.SimpleTriggerContext;

/**
 * A task that runs at the times of its trigger, one execution after the other. Unlike those of Spring's own schedulers
 * it can ask its trigger again before that time has come. An execution that fails, and one that cannot be scheduled for
 * lack of memory, end nothing: {@link #reconsider} continues from there.
 */
final class TimedTask implements ScheduledFuture<Object> {

    private final Runnable task;
    private final Trigger trigger;
    private final Clock clock;
    private final ScheduledExecutorService executor;
    private final IntConsumer running;
    private final SimpleTriggerContext context;
    private final CompletableFuture<Object> end = new CompletableFuture<>();
    private final ReentrantLock lock = new ReentrantLock();

    /** Which of the executions that have been scheduled is the next one; others are void. */
    @GuardedBy("lock") private int execution;

    @GuardedBy("lock") private boolean isRunning;

    /** Null while there is none, or it runs. */
    @GuardedBy("lock") private @Nullable ScheduledFuture<?> next;

    /** When the next execution is due, by {@link System#nanoTime}. */
    private volatile long dueAt = System.nanoTime();

    /**
     * Creates a task that is not scheduled yet.
     *
     * @param trigger asked under a lock, so that it must not wait for one
     * @param running called with 1 before an execution and with -1 after it; must not fail
     */
    TimedTask(Runnable task, Trigger trigger, Clock clock, ScheduledExecutorService executor, IntConsumer running) {
        this.task = task;
        this.trigger = trigger;
        this.clock = clock;
        this.executor = executor;
        this.running = running;
        context = new SimpleTriggerContext(clock);
    }

    /** Asks the trigger when to run next, unless the task is running, after which that is done anyway. */
    void reconsider() {
        lock.lock();
        try {
            if (!isRunning) {
                schedule();
            }
        } finally {
            lock.unlock();
        }
    }

    @GuardedBy("lock") private void schedule() {
        Instant time = end.isDone() ? null : trigger.nextExecution(context);
        if (time == null) {
            return;
        }
        long delay = Duration.between(clock.instant(), time).toNanos();
        int scheduled = execution + 1;
        ScheduledFuture<?> before = next;
        try {
            next = executor.schedule(() -> run(scheduled, time), delay, TimeUnit.NANOSECONDS);
        } catch (RejectedExecutionException e) {
            end.cancel(false);
            return;
        }
        execution = scheduled;
        dueAt = System.nanoTime() + delay;
        if (before != null) {
            before.cancel(false);
        }
    }

    private void run(int scheduled, Instant time) {
        if (!begin(scheduled)) {
            return;
        }
        running.accept(1);
        Instant began = null;
        try {
            began = clock.instant();
            task.run();
        } catch (Throwable e) {
            // The task itself has told of it.
        } finally {
            running.accept(-1);
            ended(time, began);
        }
    }

    private boolean begin(int scheduled) {
        lock.lock();
        try {
            if (scheduled != execution || isRunning || end.isDone()) {
                return false;
            }
            isRunning = true;
            next = null;
            return true;
        } finally {
            lock.unlock();
        }
    }

    private void ended(Instant time, @Nullable Instant began) {
        lock.lock();
        try {
            isRunning = false;
            context.update(time, began, clock.instant());
            schedule();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
        lock.lock();
        try {
            if (next != null) {
                next.cancel(mayInterruptIfRunning);
            }
            return end.cancel(false);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean isCancelled() {
        return end.isCancelled();
    }

    @Override
    public boolean isDone() {
        return end.isDone();
    }

    @Override
    public Object get() throws InterruptedException, ExecutionException {
        return end.get();
    }

    @Override
    public Object get(long timeout, TimeUnit unit) throws InterruptedException, ExecutionException, TimeoutException {
        return end.get(timeout, unit);
    }

    @Override
    public long getDelay(TimeUnit unit) {
        return unit.convert(dueAt - System.nanoTime(), TimeUnit.NANOSECONDS);
    }

    @Override
    public int compareTo(Delayed other) {
        return Long.compare(getDelay(TimeUnit.NANOSECONDS), other.getDelay(TimeUnit.NANOSECONDS));
    }
}
