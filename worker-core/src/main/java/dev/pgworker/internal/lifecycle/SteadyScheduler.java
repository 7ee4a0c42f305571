package dev.pgworker.internal.lifecycle;

import java.io.Serial;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

import org.springframework.scheduling.Trigger;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;

/**
 * Spring's scheduler with daemon threads of the worker's own, and with a {@link TimedTask} for each {@link Trigger}. One thread more
 * than such tasks run waits for the next one, so that no task waits for another; two threads are enough where there is little to do.
 */
final class SteadyScheduler extends ThreadPoolTaskScheduler {

    @Serial
    private static final long serialVersionUID = 1;

    private static final int LEAST_THREADS = 2;

    /**
     * For threads that are created later, which would otherwise get that of their creator, for example of a handler.
     */
    private final transient ClassLoader classLoader = Thread.currentThread().getContextClassLoader();

    private final transient Set<Thread> alive = ConcurrentHashMap.newKeySet();
    private final Object running = new Object[0];
    private int tasksRunning;
    private int threads = LEAST_THREADS;

    SteadyScheduler() {
        setPoolSize(LEAST_THREADS);
        setThreadNamePrefix("worker-schedule-");
        setClock(new SteadyClock());
        setRemoveOnCancelPolicy(true);
        setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
        // What runs has been interrupted already, or is what calls for the shutdown.
        setWaitForTasksToCompleteOnShutdown(true);
    }

    /** A trigger that receives what times its task, before it is asked. */
    interface Told extends Trigger, Consumer<TimedTask> {}

    @Override
    public ScheduledFuture<?> schedule(Runnable task, Trigger trigger) {
        TimedTask timed = new TimedTask(task, trigger, getClock(), getScheduledExecutor(), this::running);
        if (trigger instanceof Told told) {
            told.accept(timed);
        }
        timed.reconsider();
        return timed;
    }

    /** What there is no thread for waits until one is free. */
    private void running(int change) {
        synchronized (running) {
            tasksRunning += change;
            int wanted = Math.max(LEAST_THREADS, tasksRunning + 1);
            if (threads == wanted) {
                return;
            }
            threads = wanted;
            try {
                setPoolSize(wanted);
            } catch (RuntimeException | Error e) {
                logger.debug("There is no thread for another task", e);
            }
        }
    }

    @Override
    public Thread createThread(Runnable runnable) {
        Thread thread = new Thread(getThreadGroup(), runnable, nextThreadName(), 0, false);
        thread.setDaemon(true);
        thread.setContextClassLoader(classLoader);
        alive.removeIf(other -> other.getState() == Thread.State.TERMINATED);
        alive.add(thread);
        return thread;
    }

    /**
     * Waits for the end of all threads after the shutdown, unless one of them asks for that.
     *
     * @return whether they have ended
     */
    boolean awaitThreads(Duration limit) throws InterruptedException {
        if (alive.contains(Thread.currentThread())) {
            return true;
        }
        long end = System.nanoTime() + limit.toNanos();
        if (!getScheduledExecutor().awaitTermination(limit.toNanos(), TimeUnit.NANOSECONDS)) {
            return false;
        }
        for (Thread thread : alive) {
            thread.join(Math.max(1, TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime())));
        }
        return alive.stream().noneMatch(Thread::isAlive);
    }
}
