package dev.pgworker.testing;

import java.time.Instant;
import java.util.Set;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Job;

/** Builds a job that exists in memory only: unless set otherwise the first attempt of a plain one, claimed by worker "w". */
public final class TestJob {

    /** When everything about the job has happened that no time is set for. */
    public static final Instant TIME = Instant.parse("2026-01-01T00:00:00Z");

    private final long id;
    private String task = "task";
    private String payload = "{}";
    private @Nullable String queueName;
    private int priority;
    private Instant runAt = TIME;
    private int attempts = 1;
    private Instant lockedAt = TIME;
    private String lockedBy = "w";

    private TestJob(long id) {
        this.id = id;
    }

    public static TestJob withId(long id) {
        return new TestJob(id);
    }

    public TestJob task(String task) {
        this.task = task;
        return this;
    }

    public TestJob payload(String payload) {
        this.payload = payload;
        return this;
    }

    public TestJob queueName(@Nullable String queueName) {
        this.queueName = queueName;
        return this;
    }

    public TestJob priority(int priority) {
        this.priority = priority;
        return this;
    }

    public TestJob runAt(Instant runAt) {
        this.runAt = runAt;
        return this;
    }

    public TestJob attempts(int attempts) {
        this.attempts = attempts;
        return this;
    }

    public TestJob lockedAt(Instant lockedAt) {
        this.lockedAt = lockedAt;
        return this;
    }

    public TestJob lockedBy(String lockedBy) {
        this.lockedBy = lockedBy;
        return this;
    }

    public Job build() {
        return new Job(
                id, task, payload, queueName, priority, runAt, attempts, 25, null, TIME, TIME, null, lockedAt, lockedBy,
                0, Set.of());
    }
}
