package dev.pgworker.internal.engine.run;

import java.time.Duration;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;

import org.jspecify.annotations.Nullable;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.lifecycle.Activity;
import dev.pgworker.internal.store.Claim;
import dev.pgworker.task.CancelSettings;
import dev.pgworker.task.JobTimeoutException;

/**
 * Interrupts attempts: each when its time is over, on {@code worker-timeout}, or when its job is cancelled, and all when the worker may
 * not continue with them. One that ignores its interruption by a timeout or a cancellation is abandoned. Thread-safe.
 */
final class AttemptSupervisor {

    /** How long a handler may take to end after its timeout interrupted it. */
    private static final Duration AFTER_TIMEOUT = Duration.ofSeconds(5);

    /** A timeout beyond this never comes. */
    private static final Duration LONGEST_TIMEOUT = Duration.ofDays(36_500);

    private final WorkerContext context;
    private final CancelSettings cancelling;
    private final RunningAttempts attempts;
    private final BiConsumer<Attempt, JobOutcome> abandon;

    /** Its thread starts with the first handler that has a timeout. */
    private final ScheduledThreadPoolExecutor timer;

    private final Activity timing = new Activity();

    /** Set before the running attempts are interrupted, so that one that is just beginning is, too. */
    private volatile boolean interrupting;

    /** The claims whose jobs are cancelled, so that one that is just beginning is notified, too. */
    private volatile Set<Claim> cancelled = Set.of();

    /**
     * Creates a supervisor.
     *
     * @param cancelling how to end attempts whose jobs are cancelled
     * @param abandon gets attempts that ignore their interruption, each with its outcome
     */
    AttemptSupervisor(
            WorkerContext context,
            CancelSettings cancelling,
            RunningAttempts attempts,
            BiConsumer<Attempt, JobOutcome> abandon) {
        this.context = context;
        this.cancelling = cancelling;
        this.attempts = attempts;
        this.abandon = abandon;
        timer = new ScheduledThreadPoolExecutor(1, task -> {
            Thread thread = new Thread(task, "worker-timeout");
            thread.setDaemon(true);
            return thread;
        });
        timer.setRemoveOnCancelPolicy(true);
    }

    /**
     * Takes an attempt in whose handler is about to run.
     *
     * @param timeout how long it may take; null for as long as it likes
     * @return what to cancel when the handler has ended; null for nothing
     */
    @Nullable Future<?> begin(Attempt attempt, @Nullable Duration timeout) {
        attempts.add(attempt);
        if (interrupting) {
            interruptToStop(attempt);
        }
        if (cancelled.contains(attempt.claim())) {
            cancel(attempt);
        }
        if (timeout == null) {
            return null;
        }
        long nanos = timeout.compareTo(LONGEST_TIMEOUT) < 0 ? timeout.toNanos() : LONGEST_TIMEOUT.toNanos();
        return later(() -> timeOut(attempt, timeout), nanos);
    }

    private Future<?> later(Runnable task, long nanos) {
        return timer.schedule(
                () -> {
                    timing.begin();
                    try {
                        task.run();
                    } finally {
                        timing.end();
                    }
                },
                nanos,
                TimeUnit.NANOSECONDS);
    }

    private void timeOut(Attempt attempt, Duration timeout) {
        if (attempt.interruptOnTimeout()) {
            publishInterrupt(attempt, true);
        }
        Future<?> unused = later(
                () -> abandon.accept(attempt, JobOutcome.Failure.of(new JobTimeoutException(timeout, null))),
                AFTER_TIMEOUT.toNanos());
    }

    /**
     * Notifies the attempts of these claims, and those that are just beginning, that their jobs have been cancelled,
     * each once; then they are interrupted, and in the end abandoned. Takes the place of what was given before.
     */
    void cancel(Set<Claim> claims) {
        cancelled = claims;
        for (Claim claim : claims) {
            Attempt attempt = attempts.of(claim);
            if (attempt != null) {
                cancel(attempt);
            }
        }
    }

    private void cancel(Attempt attempt) {
        if (!attempt.cancel()) {
            return;
        }
        context.publish(() -> new WorkerEvent.JobCancelRequested(context.workerId(), attempt.claimed()));
        Duration grace = cancelling.interruptAfter();
        if (grace.isZero()) {
            interruptToCancel(attempt);
        } else {
            Future<?> unused = later(() -> interruptToCancel(attempt), grace.toNanos());
        }
    }

    private void interruptToCancel(Attempt attempt) {
        if (!attempt.interruptToCancel()) {
            return;
        }
        publishInterrupt(attempt, false);
        Future<?> unused = later(
                () -> {
                    if (!attempt.isEnded()) {
                        abandon.accept(attempt, new JobOutcome.Cancelled(null));
                    }
                },
                cancelling.abandonAfter().toNanos());
    }

    /** Interrupts all running handlers, and those that are just beginning, because the worker may not continue with them. */
    void interruptAll() {
        interrupting = true;
        attempts.all().forEach(this::interruptToStop);
    }

    private void interruptToStop(Attempt attempt) {
        if (attempt.interruptToStop()) {
            publishInterrupt(attempt, false);
        }
    }

    private void publishInterrupt(Attempt attempt, boolean timedOut) {
        context.publish(() -> new WorkerEvent.JobInterrupted(context.workerId(), attempt.claimed(), timedOut));
    }

    /** Returns true if {@code worker-timeout} has been at one thing for longer than that; never waits. */
    boolean isStuck(Duration longerThan) {
        return timing.isStuck(longerThan);
    }

    /** Ends the thread. */
    void shutDown() {
        timer.shutdownNow();
    }
}
