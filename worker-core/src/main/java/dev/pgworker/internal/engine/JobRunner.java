package dev.pgworker.internal.engine;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Objects;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.ErrorText;
import dev.pgworker.internal.store.RetryTime;
import dev.pgworker.job.Job;
import dev.pgworker.task.BatchResult;
import dev.pgworker.task.JobControlException;
import dev.pgworker.task.JobInterceptor;
import dev.pgworker.task.JobTimeoutException;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.task.RetryPolicy;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.task.TaskRegistry;

/** Runs one attempt: finds the handler, decodes, calls, and tells how it went. */
public final class JobRunner {

    private static final Logger log = LoggerFactory.getLogger(JobRunner.class);

    private static final Duration LONGEST_WAIT = Duration.ofDays(36_500);

    private final TaskRegistry tasks;
    private final PayloadCodec codec;
    private final @Nullable HandlerTransactions transactions;
    private final List<JobInterceptor> interceptors;
    private final WorkerEvents events;

    /**
     * Creates a runner for the given tasks.
     *
     * @param interceptors stand around every run, the first one outermost
     * @param transactions runs transactional handlers; null if there are none
     */
    public JobRunner(
            TaskRegistry tasks,
            PayloadCodec codec,
            List<JobInterceptor> interceptors,
            @Nullable HandlerTransactions transactions,
            WorkerEvents events) {
        this.interceptors = interceptors;
        this.tasks = tasks;
        this.codec = codec;
        this.transactions = transactions;
        this.events = events;
    }

    /** Returns how the jobs of a task are run. */
    TaskOptions options(Job job) {
        TaskRegistration task = tasks.find(job.taskIdentifier());
        return task == null ? TaskOptions.DEFAULT : task.options();
    }

    /** Runs on the handler's thread; whatever the handler throws is an outcome. */
    JobOutcome run(Attempt attempt) {
        JobMdc.put(attempt.claimed(), attempt.workerId());
        try {
            return runNamed(attempt);
        } finally {
            JobMdc.clear();
        }
    }

    private JobOutcome runNamed(Attempt attempt) {
        reportStart(attempt);
        TaskOptions options = options(attempt.claimed());
        try {
            TaskRegistration task = tasks.find(attempt.claimed().taskIdentifier());
            if (task == null) {
                throw new IllegalStateException(
                        "No handler for task \"" + attempt.claimed().taskIdentifier() + "\"");
            }
            if (options.transactional()) {
                return Objects.requireNonNull(transactions).run(attempt.claimed(), () -> work(task, attempt));
            }
            return work(task, attempt);
        } catch (Throwable e) {
            return failure(attempt, options, e, null);
        }
    }

    private void reportStart(Attempt attempt) {
        if (events.isWatched()) {
            events.publish(
                    new WorkerEvent.JobStarted(attempt.workerId(), attempt.claimed(), waited(attempt.claimed())));
        }
    }

    /** A job may have been due since forever; what counts time in nanoseconds cannot hold that. */
    private static Duration waited(Job job) {
        Duration waited = Duration.between(job.runAt(), Instant.now());
        if (waited.isNegative()) {
            return Duration.ZERO;
        }
        return waited.compareTo(LONGEST_WAIT) < 0 ? waited : LONGEST_WAIT;
    }

    /** Tells how an attempt ended whose outcome is decided. */
    void report(Attempt attempt, JobOutcome outcome) {
        if (!events.isWatched()) {
            return;
        }
        Duration took = Duration.ofNanos(attempt.nanos());
        if (outcome instanceof JobOutcome.Success || outcome instanceof JobOutcome.Committed) {
            events.publish(new WorkerEvent.JobSucceeded(attempt.workerId(), attempt.claimed(), took));
        } else if (outcome instanceof JobOutcome.Failure failure) {
            events.publish(new WorkerEvent.JobErrored(attempt.workerId(), attempt.claimed(), failure.error(), took));
        } else {
            events.publish(new WorkerEvent.JobEnded(attempt.workerId(), attempt.claimed(), took));
        }
    }

    /** Tells that a running handler has been interrupted. */
    void reportInterrupt(Attempt attempt, boolean timedOut) {
        if (events.isWatched()) {
            events.publish(new WorkerEvent.JobInterrupted(attempt.workerId(), attempt.claimed(), timedOut));
        }
    }

    /** Calls the handler; a timeout that it swallowed is a failure all the same. */
    private JobOutcome work(TaskRegistration task, Attempt attempt) throws Exception {
        BatchResult result = new InterceptedRun(interceptors, 0, task, attempt, codec).proceed();
        if (attempt.isTimedOut()) {
            throw new JobTimeoutException(Objects.requireNonNull(task.options().timeout()), null);
        }
        return result == null ? JobOutcome.Success.INSTANCE : batch(task, attempt, result);
    }

    private JobOutcome batch(TaskRegistration task, Attempt attempt, BatchResult result) {
        Throwable first = null;
        int failed = 0;
        for (Throwable error : result.errors()) {
            if (error != null) {
                first = first == null ? error : first;
                failed++;
            }
        }
        String rest = codec.failedItems(attempt.claimed(), result);
        if (first == null) {
            return JobOutcome.Success.INSTANCE;
        }
        Throwable error = new PartialFailureException(failed, result.errors().size(), first);
        return failure(attempt, task.options(), error, rest);
    }

    /** Some items of a batch failed. */
    private static final class PartialFailureException extends RuntimeException {

        private static final long serialVersionUID = 1L;

        PartialFailureException(int failed, int items, Throwable first) {
            super(failed + " of " + items + " items failed, first with " + ErrorText.headline(first), first);
        }
    }

    private static JobOutcome failure(Attempt attempt, TaskOptions options, Throwable e, @Nullable String rest) {
        Job job = attempt.claimed();
        if (attempt.isStopping()) {
            return new JobOutcome.Returned(true, rest);
        }
        Throwable error = e;
        if (attempt.isTimedOut() && !(e instanceof JobTimeoutException)) {
            error = new JobTimeoutException(Objects.requireNonNull(options.timeout()), e);
        } else if (e instanceof JobControlException control) {
            RetryTime when = control.delay() == null && control.runAt() == null
                    ? null
                    : new RetryTime(control.delay(), control.runAt());
            switch (control.decision()) {
                case FAIL -> {
                    return new JobOutcome.Failure(e, true, null, rest);
                }
                case SNOOZE -> {
                    return new JobOutcome.Snoozed(Objects.requireNonNull(when));
                }
                case RETRY -> {
                    return new JobOutcome.Failure(e, isLast(job, options), when, rest);
                }
            }
        }
        return new JobOutcome.Failure(error, isLast(job, options), retryDelay(job, options, error), rest);
    }

    private static boolean isLast(Job job, TaskOptions options) {
        return options.maxAttempts() != null && job.attempts() >= options.maxAttempts();
    }

    private static @Nullable RetryTime retryDelay(Job job, TaskOptions options, Throwable error) {
        RetryPolicy policy = options.retryPolicy();
        if (policy == null) {
            return null;
        }
        try {
            Duration delay = policy.delay(job, error);
            return RetryTime.in(delay.isNegative() ? Duration.ZERO : delay);
        } catch (Throwable e) {
            log.error(
                    "The retry policy of task {} failed; the usual back-off is taken",
                    job.taskIdentifier(),
                    ErrorText.loggable(e));
            return null;
        }
    }
}
