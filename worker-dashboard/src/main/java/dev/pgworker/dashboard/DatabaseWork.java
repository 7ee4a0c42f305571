package dev.pgworker.dashboard;

import java.time.Duration;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.failure.WorkerLog;

/**
 * Everything that visitors ask of the database, on a few threads, so that however many visitors there are, few connections are
 * taken from the application, and a visitor waits for a bounded time. The threads end when they are not needed.
 */
final class DatabaseWork {

    private static final Logger log = WorkerLog.of(DatabaseWork.class);

    private static final int CONNECTIONS = 3;
    private static final int WAITING = 50;

    /** A little more than a statement may take, which then says by itself what is wrong. */
    private static final Duration LONGEST_READ = Duration.ofSeconds(6);

    /** A cleanup or a sweep may have much to do. */
    private static final Duration LONGEST_CHANGE = Duration.ofSeconds(60);

    private final ThreadPoolExecutor threads;

    /** A change keeps its thread for as long as another transaction has locked what it needs; one thread is left to reads. */
    private final Semaphore changes = new Semaphore(CONNECTIONS - 1);

    DatabaseWork() {
        AtomicInteger number = new AtomicInteger();
        threads = new ThreadPoolExecutor(
                CONNECTIONS, CONNECTIONS, 30, TimeUnit.SECONDS, new ArrayBlockingQueue<>(WAITING), task -> {
                    Thread thread = new Thread(task, "worker-dashboard-" + number.incrementAndGet());
                    thread.setDaemon(true);
                    return thread;
                });
        threads.allowCoreThreadTimeOut(true);
    }

    <T> T read(Callable<T> work) {
        return call(
                work,
                LONGEST_READ,
                "The database takes too long to answer, or all connections are in use. Try again in a moment.");
    }

    <T> T change(Callable<T> work) {
        return call(
                () -> changed(work),
                LONGEST_CHANGE,
                "The change waits, perhaps for a row that another transaction has locked, and may still be made."
                        + " Reload the page before you repeat it.");
    }

    private <T> T changed(Callable<T> work) throws Exception {
        if (!changes.tryAcquire(1, TimeUnit.SECONDS)) {
            throw new Refusal(
                    503,
                    "Nothing was changed: earlier changes still wait, perhaps for rows locked by another transaction."
                            + " End that transaction, or try again in a moment.");
        }
        try {
            return work.call();
        } finally {
            changes.release();
        }
    }

    private <T> T call(Callable<T> work, Duration limit, String tooLong) {
        Future<T> result;
        try {
            result = threads.submit(work);
        } catch (RejectedExecutionException e) {
            throw new Refusal(503, "The dashboard is busy. Try again in a moment.");
        }
        try {
            return result.get(limit.toMillis(), TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            result.cancel(true);
            threads.purge();
            throw new Refusal(503, tooLong);
        } catch (InterruptedException e) {
            result.cancel(true);
            Thread.currentThread().interrupt();
            throw new Refusal(503, "The application is stopping.");
        } catch (ExecutionException e) {
            throw unwrapped(e.getCause());
        }
    }

    private static RuntimeException unwrapped(@Nullable Throwable cause) {
        if (cause instanceof Error error) {
            throw error;
        }
        return cause instanceof RuntimeException runtime ? runtime : new IllegalStateException(cause);
    }

    /** Waits for nothing: what is under way ends by itself. */
    void stop() {
        int left = threads.shutdownNow().size();
        log.debug("{} requests of the dashboard were not served", left);
    }
}
