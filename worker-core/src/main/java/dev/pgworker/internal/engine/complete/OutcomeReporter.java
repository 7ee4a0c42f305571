package dev.pgworker.internal.engine.complete;

import java.util.EnumSet;
import java.util.Set;
import java.util.function.Supplier;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.event.Level;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.engine.run.EncodedOutcome;
import dev.pgworker.internal.engine.run.JobMdc;
import dev.pgworker.internal.engine.run.JobOutcome;
import dev.pgworker.internal.engine.run.JobTrace;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.store.WriteResult;
import dev.pgworker.job.Job;

/** Logs and publishes what the database has made of outcomes. Owned by {@code worker-complete}. */
final class OutcomeReporter {

    private static final Logger log = WorkerLog.of(OutcomeReporter.class);

    private static final Set<WriteResult> NOT_WRITTEN =
            EnumSet.of(WriteResult.BUSY, WriteResult.LOST, WriteResult.GONE);

    private final WorkerContext context;
    private final Runnable onTold;

    /**
     * Creates a reporter for one worker.
     *
     * @param onTold called when the listeners, which may take their time, have received an outcome
     */
    OutcomeReporter(WorkerContext context, Runnable onTold) {
        this.context = context;
        this.onTold = onTold;
    }

    /**
     * Reports what the database has made of an outcome.
     *
     * @param written null for a job that was deleted
     */
    void report(Ending ending, @Nullable WriteResult written) {
        Job job = ending.job();
        JobOutcome outcome = ending.ended.outcome();
        if (written != null && NOT_WRITTEN.contains(written) && !mayBeWritten(ending, written)) {
            named(
                    ending.ended,
                    () -> log.warn("{} is no longer held by this worker; its outcome is not recorded", job));
            publish(() -> new WorkerEvent.JobLost(context.workerId(), job));
        } else if (written == WriteResult.CANCELLED || outcome instanceof JobOutcome.Cancelled) {
            named(ending.ended, () -> log.info("{} was cancelled while it ran, and is deleted", job));
            publish(() -> new WorkerEvent.JobCancelled(context.workerId(), job));
        } else if (written == WriteResult.SUPERSEDED) {
            named(
                    ending.ended,
                    () -> log.info(
                            "{} was superseded or removed by its key while it ran, and does not run again",
                            job,
                            ending.ended.error()));
            publish(() -> new WorkerEvent.JobSuperseded(context.workerId(), job));
        } else if (outcome instanceof JobOutcome.Failure failure) {
            reportFailure(ending.ended, failure, written);
        } else if (outcome instanceof JobOutcome.Snoozed) {
            log.debug("{} is snoozed", job);
            publish(() -> new WorkerEvent.JobSnoozed(context.workerId(), job));
        } else if (outcome instanceof JobOutcome.Returned returned) {
            // Of those that have not started there may be a thousand; a part that gives many back logs how many.
            log.atLevel(returned.started() ? Level.INFO : Level.DEBUG)
                    .log("{} is released without counting its attempt", job);
            publish(() -> new WorkerEvent.JobReturned(context.workerId(), job, returned.started()));
        } else {
            log.debug("{} succeeded", job);
            publish(() -> new WorkerEvent.JobCompleted(context.workerId(), job));
        }
    }

    /** A statement that is repeated may find what it did before: a job that succeeded is gone then. */
    private static boolean mayBeWritten(Ending ending, WriteResult written) {
        return ending.tried && (written == WriteResult.GONE || !ending.isSuccess());
    }

    private void reportFailure(EncodedOutcome ended, JobOutcome.Failure failure, @Nullable WriteResult written) {
        Job job = ended.job();
        Throwable error = ended.error();
        // An answer that was lost told what this would have told again.
        boolean permanently = written == WriteResult.FAILED
                || (written != WriteResult.RETRIED && (failure.permanently() || job.attempts() >= job.maxAttempts()));
        Integer most = failure.permanently() ? Integer.valueOf(job.attempts()) : failure.maxAttempts();
        String text = (most == null || most > job.maxAttempts() ? job : job.withMaxAttempts(most)).toString();
        named(ended, () -> {
            if (permanently) {
                log.error("{} failed permanently", text, error);
            } else {
                log.warn("{} failed and will be retried", text, error);
            }
        });
        publish(() -> new WorkerEvent.JobFailed(context.workerId(), job, failure.error(), permanently));
    }

    /** Logs with the job and its trace in the logging context, as while its handler ran. */
    void named(EncodedOutcome ended, Runnable logging) {
        JobMdc.put(ended.job(), context.workerId());
        JobTrace trace = ended.trace();
        if (trace != null) {
            trace.put();
        }
        try {
            logging.run();
        } catch (Throwable e) {
            // An exception of the application that a logger cannot read.
            log.warn("The outcome of {} could not be logged", ended.job());
        } finally {
            JobMdc.clear();
            if (trace != null) {
                JobTrace.clear();
            }
        }
    }

    private void publish(Supplier<WorkerEvent> event) {
        context.publish(event);
        onTold.run();
    }
}
