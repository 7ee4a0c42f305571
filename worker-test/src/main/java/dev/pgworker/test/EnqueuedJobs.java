package dev.pgworker.test;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.stream.Collectors;

import org.assertj.core.api.AssertProvider;

import dev.pgworker.job.Job;
import dev.pgworker.job.Task;
import dev.pgworker.task.PayloadCodec;

/**
 * The jobs that there were at one moment: those that wait, run or have failed, but not the completed ones, which are
 * deleted. Immutable. {@code assertThat(jobs)} gives an {@link EnqueuedJobsAssert}.
 *
 * @since 0.1.0
 */
public final class EnqueuedJobs implements AssertProvider<EnqueuedJobsAssert> {

    private static final int LONGEST_PAYLOAD = 500;
    private static final int MOST_SHOWN = 50;

    private final List<Job> jobs;
    private final PayloadCodec codec;
    private final Instant now;
    private final JobRuns runs;

    /**
     * Creates a list.
     *
     * @param now the time at which it was taken, by the clock that decides which jobs are due
     * @param runs what has run before, for messages
     */
    EnqueuedJobs(List<Job> jobs, PayloadCodec codec, Instant now, JobRuns runs) {
        this.jobs = List.copyOf(jobs);
        this.codec = codec;
        this.now = now;
        this.runs = runs;
    }

    /** Returns the jobs in the order of their ids, which is the one in which they were added; unmodifiable. */
    public List<Job> list() {
        return jobs;
    }

    /** Returns how many jobs there are. */
    public int size() {
        return jobs.size();
    }

    /** Returns the jobs of one task. */
    public EnqueuedJobs of(Task<?> task) {
        return of(task.identifier());
    }

    /** Returns the jobs of the task with this identifier. */
    public EnqueuedJobs of(String identifier) {
        return new EnqueuedJobs(
                jobs.stream()
                        .filter(job -> job.taskIdentifier().equals(identifier))
                        .toList(),
                codec,
                now,
                runs.of(identifier));
    }

    /**
     * Returns the payloads of a task's jobs in the order of their ids.
     *
     * @throws dev.pgworker.task.PayloadException if one does not fit the type
     */
    public <P> List<P> payloads(Task<P> task) {
        return of(task).jobs.stream().map(job -> codec.decode(job, task)).toList();
    }

    /** Returns the assertions on these jobs; called by AssertJ. */
    @Override
    public EnqueuedJobsAssert assertThat() {
        return new EnqueuedJobsAssert(this);
    }

    PayloadCodec codec() {
        return codec;
    }

    Instant now() {
        return now;
    }

    /** Returns the jobs with all that assertions look at, each on a line of its own. */
    @Override
    public String toString() {
        String text = jobs.isEmpty()
                ? "there is no job"
                : jobs.stream()
                        .limit(MOST_SHOWN)
                        .map(job -> "  " + describe(job))
                        .collect(Collectors.joining(
                                "\n",
                                jobs.size() + (jobs.size() == 1 ? " job" : " jobs") + ":\n",
                                jobs.size() > MOST_SHOWN ? "\n  and " + (jobs.size() - MOST_SHOWN) + " more" : ""));
        return runs.size() == 0 ? text : text + "\nand before, " + runs;
    }

    private String describe(Job job) {
        String payload = job.payload();
        return job
                + " " + (payload.length() <= LONGEST_PAYLOAD ? payload : payload.substring(0, LONGEST_PAYLOAD) + "...")
                + ", " + state(job)
                + ", priority " + job.priority()
                + (job.queueName() == null ? "" : ", queue \"" + job.queueName() + '"')
                + (job.key() == null ? "" : ", key \"" + job.key() + '"')
                + (job.flags().isEmpty() ? "" : ", flags " + job.flags());
    }

    private String state(Job job) {
        if (job.lockedBy() != null) {
            return "running in " + job.lockedBy();
        } else if (job.attempts() >= job.maxAttempts()) {
            return "failed permanently";
        } else if (!job.runAt().isAfter(now)) {
            return "due";
        }
        return "due in " + Duration.between(now, job.runAt()) + " at " + job.runAt();
    }
}
