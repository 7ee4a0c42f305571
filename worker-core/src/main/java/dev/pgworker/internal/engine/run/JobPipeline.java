package dev.pgworker.internal.engine.run;

import java.time.Duration;
import java.time.Instant;
import java.util.Objects;
import java.util.concurrent.Future;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.failure.ErrorText;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.store.RetryTime;
import dev.pgworker.job.Job;
import dev.pgworker.step.JobSuspended;
import dev.pgworker.task.BatchResult;
import dev.pgworker.task.JobControlException;
import dev.pgworker.task.JobInterceptor;
import dev.pgworker.task.JobTimeoutException;
import dev.pgworker.task.RetryDelay;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;

/**
 * One run of a job on the thread of its handler, step by step:
 *
 * <ol>
 *   <li>{@link #run claimed}: the attempt begins, supervised, and its start is published;
 *   <li>{@link #invoke invoked}: in a transaction if the handler asks for one, {@link Interception intercepted}, with the
 *       payload decoded by the registration of the task;
 *   <li>{@link #outcome outcome}: what the handler returned or threw, as success, failure, snooze or return of the job;
 *   <li>encoded within the handler's time, so that nothing of the handler's is asked for anything later;
 *   <li>{@link #report told}, and for the {@code JobCompleter} to write: that is what the caller does with the outcome.
 * </ol>
 *
 * <p>Touches no table, but for the deletion of the job in a transactional handler's own transaction. Thread-safe.
 */
final class JobPipeline {

    private static final Logger log = WorkerLog.of(JobPipeline.class);

    private static final Duration LONGEST_WAIT = Duration.ofDays(36_500);

    private final WorkerContext context;
    private final HandlerCalls calls;
    private final AttemptSupervisor supervisor;
    private final OutcomeInbox inbox;

    JobPipeline(WorkerContext context, HandlerCalls calls, AttemptSupervisor supervisor, OutcomeInbox inbox) {
        this.context = context;
        this.calls = calls;
        this.supervisor = supervisor;
        this.inbox = inbox;
    }

    /**
     * Runs a job on the calling thread. Never throws.
     *
     * @return what is to be written; null if the attempt was abandoned meanwhile, and its outcome decided
     */
    @Nullable EncodedOutcome run(Attempt attempt) {
        JobOutcome outcome;
        Future<?> timeout = null;
        try {
            timeout = supervisor.begin(attempt, calls.options(attempt.claimed()).timeout());
            outcome = attempt.isCancelled() ? new JobOutcome.Cancelled(null) : runNamed(attempt);
        } catch (Throwable e) {
            // What goes wrong around the handler, memory for example that cannot be had, is an outcome, too.
            outcome = attempt.isCancelled() ? new JobOutcome.Cancelled(e) : JobOutcome.Failure.of(e);
        }
        EncodedOutcome encoded =
                inbox.encode(attempt.claimed(), outcome, attempt.trace()).withRun(attempt.ran());
        boolean mine = attempt.end();
        if (timeout != null) {
            timeout.cancel(false);
        }
        // An interrupt meant for this handler must not reach the next one.
        Thread.interrupted();
        if (!mine) {
            log.info("The handler of {} has ended {} s after it began", attempt, attempt.nanos() / 1_000_000_000);
        }
        return mine ? encoded : null;
    }

    private JobOutcome runNamed(Attempt attempt) {
        JobMdc.put(attempt.claimed(), attempt.workerId());
        try {
            context.publish(
                    () -> new WorkerEvent.JobStarted(attempt.workerId(), attempt.claimed(), waited(attempt.claimed())));
            return invoke(attempt);
        } finally {
            JobMdc.clear();
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

    /** Calls the handler; whatever it throws is an outcome. */
    private JobOutcome invoke(Attempt attempt) {
        TaskOptions options = calls.options(attempt.claimed());
        try {
            TaskRegistration task = calls.tasks().find(attempt.claimed().taskIdentifier());
            if (task == null) {
                throw new IllegalStateException(
                        "No handler for task \"" + attempt.claimed().taskIdentifier() + "\"");
            }
            if (options.transactional()) {
                return Objects.requireNonNull(calls.transactions())
                        .run(attempt.claimed(), () -> outcome(task, attempt), attempt::ran);
            }
            return outcome(task, attempt);
        } catch (HandlerTransactions.DatabaseException e) {
            return failure(attempt, options, e.failure(), null, false);
        } catch (Throwable e) {
            return failure(attempt, options, e, null);
        }
    }

    /** What is left of a run: the interceptors from a place on, and behind them decoding and handler. */
    private final class Interception implements JobInterceptor.Execution {

        private final int place;
        private final TaskRegistration task;
        private final Attempt attempt;

        Interception(int place, TaskRegistration task, Attempt attempt) {
            this.place = place;
            this.task = task;
            this.attempt = attempt;
        }

        @Override
        public @Nullable BatchResult proceed() throws Exception {
            return place == calls.interceptors().size()
                    ? handle()
                    : calls.interceptors().get(place).intercept(attempt, new Interception(place + 1, task, attempt));
        }

        /** The interceptor that began a trace ends it on the way out; only failures are logged with it. */
        private @Nullable BatchResult handle() throws Exception {
            try {
                BatchResult result = task.run(attempt, calls.codec());
                if (result != null || attempt.isRecorded()) {
                    attempt.noteTrace();
                }
                return result;
            } catch (Throwable e) {
                attempt.noteTrace();
                throw e;
            }
        }

        @Override
        public @Nullable BatchResult proceed(String payload) throws Exception {
            Arguments.requireNonNull("payload", payload);
            attempt.show(payload);
            return proceed();
        }
    }

    /** Runs interceptors and handler; a timeout that these swallowed is a failure all the same. */
    private JobOutcome outcome(TaskRegistration task, Attempt attempt) throws Exception {
        BatchResult result = new Interception(0, task, attempt).proceed();
        Instant waits = attempt.suspendedUntil();
        if (waits != null) {
            return suspended(attempt, waits, null);
        }
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
        String rest = calls.codec().failedItems(attempt.claimed(), result);
        if (first == null) {
            return JobOutcome.Success.INSTANCE;
        }
        boolean retry = result.errors().stream()
                .anyMatch(each -> each != null && task.options().retries(each));
        Throwable error = new PartialFailureException(failed, result.errors().size(), first);
        return failure(attempt, task.options(), error, rest, !retry);
    }

    /** Some items of a batch failed. */
    private static final class PartialFailureException extends RuntimeException {

        private static final long serialVersionUID = 1L;

        PartialFailureException(int failed, int items, Throwable first) {
            super(failed + " of " + items + " items failed, first with " + ErrorText.headline(first), first);
        }
    }

    private static JobOutcome failure(Attempt attempt, TaskOptions options, Throwable e, @Nullable String rest) {
        return failure(attempt, options, e, rest, !options.retries(e));
    }

    /**
     * Decides what a failure means.
     *
     * @param hopeless whether the exception is of a kind that is not retried
     */
    private static JobOutcome failure(
            Attempt attempt, TaskOptions options, Throwable e, @Nullable String rest, boolean hopeless) {
        Job job = attempt.claimed();
        if (attempt.isCancelled()) {
            return new JobOutcome.Cancelled(e);
        }
        Instant waits = attempt.suspendedUntil();
        if (waits != null) {
            return suspended(attempt, waits, e);
        }
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
                    return new JobOutcome.Failure(e, true, null, rest, null);
                }
                case SNOOZE -> {
                    return new JobOutcome.Snoozed(Objects.requireNonNull(when));
                }
                case RETRY -> {
                    return new JobOutcome.Failure(e, isLast(job, options), when, rest, options.maxAttempts());
                }
            }
        }
        return failure(
                job, options, error, isLast(job, options) || (error == e ? hopeless : !options.retries(error)), rest);
    }

    /** A job that waits does so whatever its handler has made of that. */
    private static JobOutcome suspended(Attempt attempt, Instant until, @Nullable Throwable thrown) {
        if (!(thrown instanceof JobSuspended)) {
            log.warn(
                    "The handler of {} has caught JobSuspended, and has continued although its job waits: the attempt ends as suspended"
                            + " all the same. Have it pass",
                    attempt,
                    thrown);
        }
        return new JobOutcome.Snoozed(new RetryTime(null, until));
    }

    /** Returns the outcome of an attempt that failed with this exception, which its handler has not thrown. */
    static JobOutcome judge(Job job, TaskOptions options, Throwable error) {
        return failure(job, options, error, isLast(job, options) || !options.retries(error), null);
    }

    private static JobOutcome failure(
            Job job, TaskOptions options, Throwable error, boolean last, @Nullable String rest) {
        Duration delay = last ? null : retryDelay(job, options, error);
        return RetryDelay.NEVER.equals(delay)
                ? new JobOutcome.Failure(error, true, null, rest, null)
                : new JobOutcome.Failure(
                        error, last, delay == null ? null : RetryTime.in(delay), rest, options.maxAttempts());
    }

    private static boolean isLast(Job job, TaskOptions options) {
        return options.maxAttempts() != null && job.attempts() >= options.maxAttempts();
    }

    /** Returns null for the usual delay. */
    private static @Nullable Duration retryDelay(Job job, TaskOptions options, Throwable error) {
        RetryDelay delays = options.retryDelay();
        if (delays == null) {
            return null;
        }
        try {
            Duration delay = delays.delay(job, error);
            if (delay == null || delay.isNegative()) {
                throw new IllegalArgumentException("It must be zero or more, or RetryDelay.NEVER, but is " + delay);
            }
            return delay.equals(RetryDelay.NEVER) ? delay : RetryTime.in(delay).delay();
        } catch (Throwable e) {
            log.error("The retry delay of task {} failed; the usual delay is used", job.taskIdentifier(), e);
            return null;
        }
    }

    /** Reports how an attempt ended whose outcome is decided. */
    void report(Attempt attempt, JobOutcome outcome) {
        context.publish(() -> {
            Duration took = Duration.ofNanos(attempt.nanos());
            if (outcome instanceof JobOutcome.Success || outcome instanceof JobOutcome.Committed) {
                return new WorkerEvent.JobSucceeded(attempt.workerId(), attempt.claimed(), took);
            } else if (outcome instanceof JobOutcome.Failure failure) {
                return new WorkerEvent.JobErrored(attempt.workerId(), attempt.claimed(), failure.error(), took);
            }
            return new WorkerEvent.JobEnded(attempt.workerId(), attempt.claimed(), took);
        });
    }
}
