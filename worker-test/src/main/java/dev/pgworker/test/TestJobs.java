package dev.pgworker.test;

import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.LinkedHashSet;
import java.util.concurrent.atomic.AtomicLong;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobRequest;
import dev.pgworker.task.PayloadCodec;

/** Makes jobs that no database has. */
final class TestJobs {

    private static final int DEFAULT_MAX_ATTEMPTS = 25;
    private static final AtomicLong ids = new AtomicLong();

    private TestJobs() {}

    static long nextId() {
        return ids.incrementAndGet();
    }

    /** Returns the job that adding a request would give, not yet attempted. */
    static Job of(long id, JobRequest request, PayloadCodec codec) {
        Instant now = Instant.now().truncatedTo(ChronoUnit.MICROS);
        Instant runAt = request.spec().runAt();
        Integer maxAttempts = request.spec().maxAttempts();
        Integer priority = request.spec().priority();
        return new Job(
                id,
                request.identifier(),
                codec.encode("payload", request.payload(), request.payloadType()),
                request.spec().queueName(),
                priority == null ? 0 : priority,
                runAt == null ? now : runAt.plusNanos(500).truncatedTo(ChronoUnit.MICROS),
                0,
                maxAttempts == null ? DEFAULT_MAX_ATTEMPTS : maxAttempts,
                null,
                now,
                now,
                request.spec().jobKey(),
                null,
                null,
                0,
                new LinkedHashSet<>(request.spec().flags()));
    }

    /** Returns a job as its worker has claimed it. */
    static Job claimed(Job job, int attempt, String workerId) {
        return new Job(
                job.id(),
                job.taskIdentifier(),
                job.payload(),
                job.queueName(),
                job.priority(),
                job.runAt(),
                attempt,
                job.maxAttempts(),
                null,
                job.createdAt(),
                job.updatedAt(),
                job.key(),
                Instant.now().truncatedTo(ChronoUnit.MICROS),
                workerId,
                job.revision(),
                job.flags());
    }
}
