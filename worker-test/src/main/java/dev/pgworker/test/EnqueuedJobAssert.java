package dev.pgworker.test;

import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Predicate;

import org.assertj.core.api.AbstractAssert;

import dev.pgworker.job.Job;
import dev.pgworker.job.Task;

/**
 * Assertions on a job of one task. As long as several jobs meet what has been asserted, one is enough; a failure names all that
 * was asserted and shows the jobs there are.
 *
 * @param <P> the Java type of the payload
 * @since 0.1.0
 */
public final class EnqueuedJobAssert<P> extends AbstractAssert<EnqueuedJobAssert<P>, EnqueuedJobs> {

    private static final int MOST_REASONS = 20;

    /** How far a time may be off that was reckoned from the time of the call that added the job. */
    private static final Duration TOLERANCE = Duration.ofSeconds(5);

    private final Task<P> task;
    private final List<String> asserted = new ArrayList<>();
    private List<Job> candidates;

    EnqueuedJobAssert(EnqueuedJobs actual, Task<P> task) {
        super(actual, EnqueuedJobAssert.class);
        this.task = task;
        this.candidates = actual.list();
        narrow(
                "of task \"" + task.identifier() + '"',
                job -> job.taskIdentifier().equals(task.identifier()));
    }

    /**
     * Verifies the payload: read as the task's type it equals the given one, or both are the same JSON. What traces and
     * crontabs add to payloads is not compared.
     */
    public EnqueuedJobAssert<P> withPayload(P expected) {
        Payloads payloads = new Payloads(actual.codec());
        return narrow("with payload " + payloads.json(expected, task), job -> payloads.isEqual(job, expected, task));
    }

    /**
     * Verifies the payload by assertions of the caller.
     *
     * @param requirements throws an {@code AssertionError} unless the payload is the expected one
     */
    public EnqueuedJobAssert<P> withPayloadSatisfying(Consumer<? super P> requirements) {
        List<String> reasons = new ArrayList<>();
        return narrow(
                "with a payload that satisfies the requirements",
                job -> {
                    try {
                        requirements.accept(actual.codec().decode(job, task));
                        return true;
                    } catch (AssertionError | RuntimeException e) {
                        if (reasons.size() < MOST_REASONS) {
                            reasons.add(job + ": " + (e.getMessage() == null ? e.toString() : e.getMessage()));
                        }
                        return false;
                    }
                },
                reasons);
    }

    /** Verifies the job key. */
    public EnqueuedJobAssert<P> withKey(String expected) {
        return narrow("with key \"" + expected + '"', job -> expected.equals(job.key()));
    }

    /** Verifies that the job has no key. */
    public EnqueuedJobAssert<P> withoutKey() {
        return narrow("without a key", job -> job.key() == null);
    }

    /** Verifies the named queue. */
    public EnqueuedJobAssert<P> inQueue(String expected) {
        return narrow("in queue \"" + expected + '"', job -> expected.equals(job.queueName()));
    }

    /** Verifies that the job is in no named queue. */
    public EnqueuedJobAssert<P> withoutQueue() {
        return narrow("in no queue", job -> job.queueName() == null);
    }

    /** Verifies the priority. */
    public EnqueuedJobAssert<P> withPriority(int expected) {
        return narrow("with priority " + expected, job -> job.priority() == expected);
    }

    /** Verifies how often the job may be attempted. */
    public EnqueuedJobAssert<P> withMaxAttempts(int expected) {
        return narrow("with max attempts " + expected, job -> job.maxAttempts() == expected);
    }

    /** Verifies how many attempts have been made. */
    public EnqueuedJobAssert<P> withAttempts(int expected) {
        return narrow("with " + expected + " attempts", job -> job.attempts() == expected);
    }

    /** Verifies that the job has these flags and no others, in any order; none for a job without flags. */
    public EnqueuedJobAssert<P> withFlags(String... expected) {
        Set<String> flags = Set.of(expected);
        return narrow("with flags " + flags, job -> job.flags().equals(flags));
    }

    /** Verifies that the job was due when the jobs were looked at. */
    public EnqueuedJobAssert<P> due() {
        return narrow("due", job -> !job.runAt().isAfter(actual.now()));
    }

    /** Verifies when the job is due, to the microsecond, which is what PostgreSQL stores. */
    public EnqueuedJobAssert<P> dueAt(Instant expected) {
        // Nearest, not truncated: so the driver sends it.
        Instant stored = expected.plusNanos(500).truncatedTo(ChronoUnit.MICROS);
        return narrow("due at " + expected, job -> job.runAt().equals(stored));
    }

    /** Verifies that the job is due so long after it was added or last changed, give or take five seconds. */
    public EnqueuedJobAssert<P> dueIn(Duration expected) {
        return narrow(
                "due in " + expected,
                job -> Duration.between(job.updatedAt(), job.runAt())
                                .minus(expected)
                                .abs()
                                .compareTo(TOLERANCE)
                        <= 0);
    }

    /** Verifies that exactly one job meets all that was asserted before. */
    public EnqueuedJobAssert<P> once() {
        return times(1);
    }

    /** Verifies how many jobs meet all that was asserted before. */
    public EnqueuedJobAssert<P> times(int expected) {
        if (candidates.size() != expected) {
            throw failure(
                    "Expecting %s jobs %s but there are %s, and in all %s",
                    expected, String.join(", ", asserted), candidates.size(), actual);
        }
        return this;
    }

    /** Returns the first job that meets all that was asserted before. */
    public Job job() {
        return candidates.get(0);
    }

    private EnqueuedJobAssert<P> narrow(String condition, Predicate<Job> test) {
        return narrow(condition, test, List.of());
    }

    private EnqueuedJobAssert<P> narrow(String condition, Predicate<Job> test, List<String> reasons) {
        asserted.add(condition);
        List<Job> left = candidates.stream().filter(test).toList();
        if (left.isEmpty()) {
            throw failure(
                    "Expecting a job %s but %s%s",
                    String.join(", ", asserted),
                    actual,
                    reasons.isEmpty() ? "" : "\nbecause of " + String.join("\n", reasons));
        }
        candidates = left;
        return this;
    }
}
