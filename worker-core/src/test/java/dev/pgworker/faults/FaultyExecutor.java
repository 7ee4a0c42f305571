package dev.pgworker.faults;

import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

import dev.pgworker.faults.FaultPlan.Area;
import dev.pgworker.faults.FaultPlan.Fault;
import dev.pgworker.faults.FaultPlan.Kind;

/** An executor that refuses work, or takes it and says that it does not, or runs it late, twice, or on the caller's thread. */
final class FaultyExecutor implements Executor, AutoCloseable {

    private final FaultPlan plan;
    private final AtomicInteger number = new AtomicInteger();
    private final ThreadPoolExecutor threads = new ThreadPoolExecutor(
            0, Integer.MAX_VALUE, 60, TimeUnit.SECONDS, new SynchronousQueue<>(), task -> thread(task));
    private final ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(1, this::thread);

    FaultyExecutor(FaultPlan plan) {
        this.plan = plan;
    }

    private Thread thread(Runnable task) {
        Thread thread = new Thread(task, "rig-handler-" + number.incrementAndGet());
        thread.setDaemon(true);
        // What escapes from a task ends this thread, and is no fault of the executor.
        thread.setUncaughtExceptionHandler((t, e) -> {});
        return thread;
    }

    @Override
    public void execute(Runnable task) {
        Fault fault = plan.next(
                Area.EXECUTOR,
                "execute",
                Kind.FAILURE,
                Kind.LOST_ANSWER,
                Kind.ERROR,
                Kind.LATE_ERROR,
                Kind.DELAY,
                Kind.TWICE,
                Kind.LATER,
                Kind.INLINE);
        if (fault == null) {
            threads.execute(task);
            return;
        }
        switch (fault.kind()) {
            case FAILURE -> throw refusal(fault);
            case LOST_ANSWER -> {
                threads.execute(task);
                throw refusal(fault);
            }
            case ERROR -> throw fault.error();
            case LATE_ERROR -> {
                threads.execute(task);
                throw fault.error();
            }
            case DELAY -> {
                fault.delay();
                threads.execute(task);
            }
            case TWICE -> {
                threads.execute(task);
                threads.execute(task);
            }
            case LATER -> {
                Future<?> unused = timer.schedule(
                        () -> threads.execute(task), 20 + fault.random().nextInt(300), TimeUnit.MILLISECONDS);
            }
            case INLINE -> task.run();
            default -> throw new AssertionError(fault);
        }
    }

    private static RuntimeException refusal(Fault fault) {
        return fault.random().nextBoolean()
                ? new RejectedExecutionException("On purpose: " + fault.kind())
                : FaultPlan.sneaky(fault.ofApplication());
    }

    /** Ends the threads; returns false if one of them does not end. */
    boolean end() throws InterruptedException {
        close();
        return timer.awaitTermination(2, TimeUnit.SECONDS) && threads.awaitTermination(2, TimeUnit.SECONDS);
    }

    @Override
    public void close() {
        timer.shutdown();
        threads.shutdown();
    }
}
