package dev.pgworker.test;

import java.time.Duration;
import java.time.Instant;
import java.util.Comparator;
import java.util.Objects;
import java.util.Optional;

import org.jspecify.annotations.Nullable;

import dev.pgworker.Worker;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobQueries;

/** Says in what state a job is, and why it does not run. */
final class JobDiagnosis {

    private final JobQueries queries;
    private final TestSchemaTables tables;
    private final Worker worker;

    JobDiagnosis(JobQueries queries, TestSchemaTables tables, Worker worker) {
        this.queries = queries;
        this.tables = tables;
        this.worker = worker;
    }

    /** Returns a clause to stand after "because". */
    String of(long id, EnqueuedJobs jobs) {
        Optional<Job> found = queries.find(id);
        if (found.isEmpty()) {
            return "there is no such job: it was completed or removed, or the transaction that added it has not been committed";
        }
        Job job = found.get();
        Instant now = tables.now();
        if (job.lockedBy() != null) {
            return "it has been running for " + Duration.between(Objects.requireNonNullElse(job.lockedAt(), now), now)
                    + " in the worker " + job.lockedBy();
        }
        if (job.attempts() >= job.maxAttempts()) {
            return "it has failed permanently" + lastError(job);
        }
        if (!worker.tasks().contains(job.taskIdentifier())) {
            return "this worker has no handler for the task \"" + job.taskIdentifier() + "\", only for "
                    + worker.tasks();
        }
        if (job.runAt().isAfter(now)) {
            return "it is due in " + Duration.between(now, job.runAt()) + ", at " + job.runAt()
                    + ": advance(Duration) makes it due" + lastError(job);
        }
        String queue = job.queueName() == null ? null : queue(job, job.queueName(), jobs);
        if (queue != null) {
            return queue;
        }
        return job.flags().isEmpty()
                ? "it is due and free, but no worker has claimed it"
                : "it is due and free, but no worker has claimed it; its flags " + job.flags()
                        + " may be forbidden ones";
    }

    private static String lastError(Job job) {
        String error = job.lastError();
        return error == null
                ? ""
                : "; its last error is: " + error.lines().findFirst().orElse("");
    }

    /** The queue is taken by another job, or others of it come first. */
    private static @Nullable String queue(Job job, String queue, EnqueuedJobs jobs) {
        return jobs.list().stream()
                .filter(other -> queue.equals(other.queueName()) && other.id() != job.id())
                .filter(other -> other.lockedBy() != null
                        || (other.attempts() < other.maxAttempts() && order.compare(other, job) < 0))
                .min(Comparator.comparing((Job other) -> other.lockedBy() == null)
                        .thenComparing(order))
                .map(other -> "its queue \"" + queue + "\" has another job first: " + other)
                .orElse(null);
    }

    private static final Comparator<Job> order =
            Comparator.comparingInt(Job::priority).thenComparing(Job::runAt).thenComparingLong(Job::id);
}
