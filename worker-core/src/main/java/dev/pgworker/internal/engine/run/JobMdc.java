package dev.pgworker.internal.engine.run;

import org.slf4j.MDC;

import dev.pgworker.internal.failure.LogText;
import dev.pgworker.job.Job;

/** Names the job in the logging context of the calling thread. */
public final class JobMdc {

    private static final String ID = "job.id";
    private static final String TASK = "job.task";
    private static final String ATTEMPT = "job.attempt";
    private static final String QUEUE = "job.queue";
    private static final String WORKER = "job.worker";

    private JobMdc() {}

    public static void put(Job job, String workerId) {
        MDC.put(ID, Long.toString(job.id()));
        MDC.put(TASK, LogText.of(job.taskIdentifier()));
        MDC.put(ATTEMPT, Integer.toString(job.attempts()));
        if (job.queueName() != null) {
            MDC.put(QUEUE, LogText.of(job.queueName()));
        }
        MDC.put(WORKER, LogText.of(workerId));
    }

    public static void clear() {
        MDC.remove(ID);
        MDC.remove(TASK);
        MDC.remove(ATTEMPT);
        MDC.remove(QUEUE);
        MDC.remove(WORKER);
    }
}
