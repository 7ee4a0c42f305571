package dev.pgworker.internal.engine.run;

import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.engine.queue.LocalQueue;
import dev.pgworker.internal.failure.WorkerLog;

/**
 * Hands the runners of a local queue to what runs the handlers: threads of the worker's own, or an executor of the application's,
 * which may refuse, block, lose them, or run them on the thread of the caller. Thread-safe.
 */
public final class HandlerThreads {

    private static final Logger log = WorkerLog.of(HandlerThreads.class);

    private static final Duration TELL_PAUSE = Duration.ofSeconds(10);

    private final LocalQueue localQueue;
    private final Executor executor;

    /** Runs what hands tasks to the executor: at once, or on {@code worker-hand-over} where that may take long. */
    private final Executor handOvers;

    /** The executor if it is the worker's own; null otherwise. */
    private final @Nullable ExecutorService own;

    /** How many are still to be handed over. */
    private final AtomicInteger waiting = new AtomicInteger();

    private final AtomicLong tellAgainAt = new AtomicLong(System.nanoTime());

    /**
     * Creates threads.
     *
     * @param given runs the handlers; null for threads of their own
     */
    public HandlerThreads(LocalQueue localQueue, @Nullable Executor given) {
        this.localQueue = localQueue;
        own = given == null ? ownThreads() : null;
        executor = own == null ? Objects.requireNonNull(given) : own;
        handOvers = own == null ? handOverThread() : Runnable::run;
    }

    private static ExecutorService ownThreads() {
        AtomicInteger number = new AtomicInteger();
        return new ThreadPoolExecutor(0, Integer.MAX_VALUE, 60, TimeUnit.SECONDS, new SynchronousQueue<>(), task -> {
            Thread thread = new Thread(task, "worker-job-" + number.incrementAndGet());
            thread.setDaemon(true);
            return thread;
        });
    }

    /** Its thread is there while tasks are handed over. */
    private static ExecutorService handOverThread() {
        ThreadPoolExecutor service =
                new ThreadPoolExecutor(1, 1, 10, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), task -> {
                    Thread thread = new Thread(task, "worker-hand-over");
                    thread.setDaemon(true);
                    return thread;
                });
        service.allowCoreThreadTimeOut(true);
        return service;
    }

    /** Starts a runner that is awaited; where that fails the jobs stay queued. */
    void start(Runnable runsJobs) {
        waiting.incrementAndGet();
        try {
            handOvers.execute(() -> handOver(runsJobs));
        } catch (Throwable e) {
            waiting.decrementAndGet();
            localQueue.runnerRefused();
            tell("A task could not be handed to the handler executor", e);
        }
    }

    /** Hands a runner over. Where that fails its jobs stay queued: the next poll tries again, or they are given back. */
    private void handOver(Runnable runsJobs) {
        if (waiting.decrementAndGet() >= localQueue.awaitedRunners()) {
            return; // the executor has been busy with others for so long
        }
        HandOver handOver = new HandOver(runsJobs);
        try {
            executor.execute(handOver);
        } catch (Throwable e) {
            localQueue.runnerRefused();
            tell(
                    e instanceof RejectedExecutionException
                            ? "The handler executor refuses work"
                            : "The handler executor failed",
                    e);
        } finally {
            handOver.isHandedOver = true;
        }
    }

    /** What the handler executor runs. It must not do so on the thread that hands it over, which has other work to do. */
    private final class HandOver implements Runnable {

        private final Runnable jobs;
        private final Thread handsOver = Thread.currentThread();
        private volatile boolean isHandedOver;

        HandOver(Runnable jobs) {
            this.jobs = jobs;
        }

        @Override
        public void run() {
            if (!isHandedOver && Thread.currentThread() == handsOver) {
                tell(
                        "The handler executor runs tasks on the caller's thread; they are run on separate threads instead",
                        null);
                Thread thread = new Thread(jobs, "worker-job");
                thread.setDaemon(true);
                thread.start();
            } else {
                jobs.run();
            }
        }
    }

    /** Logs what is wrong with the handler executor, but not so often that it does harm. */
    void tell(String what, @Nullable Throwable error) {
        long time = System.nanoTime();
        long again = tellAgainAt.get();
        if (time - again >= 0 && tellAgainAt.compareAndSet(again, time + TELL_PAUSE.toNanos())) {
            log.error(what, error);
        }
    }

    /** Hands nothing over any more. The threads that are the worker's own end when their handlers have. */
    void shutDown() {
        if (handOvers instanceof ExecutorService service) {
            service.shutdownNow();
        }
        if (own != null) {
            own.shutdown();
        }
    }
}
