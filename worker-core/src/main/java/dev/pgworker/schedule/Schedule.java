package dev.pgworker.schedule;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;

/**
 * A recurring job. Immutable.
 *
 * @since 0.1.0
 */
public final class Schedule {

    private final String name;
    private final Recurrence recurrence;
    private final JobRequest job;
    private final Overlap overlap;
    private final Misfire misfire;
    private final @Nullable Duration backfill;
    private final Duration jitter;
    private final @Nullable Instant startsAt;
    private final @Nullable Instant endsAt;

    private Schedule(Builder builder) {
        this.name = builder.name;
        this.recurrence = builder.recurrence;
        this.job = builder.job;
        this.overlap = builder.overlap;
        this.misfire = builder.misfire;
        this.backfill = builder.backfill;
        this.jitter = builder.jitter;
        this.startsAt = builder.startsAt;
        this.endsAt = builder.endsAt;
    }

    /**
     * Returns a builder.
     *
     * @param name 1 to 128 characters, unique in the schema
     * @param task the task's name, 1 to 128 characters
     * @param payload what Jackson writes as a JSON object, to which {@code _cron} is added; null for the empty object
     */
    public static Builder builder(String name, Recurrence recurrence, String task, @Nullable Object payload) {
        return new Builder(name, recurrence, JobRequest.of(task, payload));
    }

    /** Same as {@link #builder(String, Recurrence, String, Object)}, with a payload whose type is checked at compile time. */
    public static <P> Builder builder(String name, Recurrence recurrence, Task<P> task, P payload) {
        return new Builder(name, recurrence, JobRequest.of(task, payload));
    }

    /** Returns a builder with the values of this schedule. */
    public Builder toBuilder() {
        return new Builder(name, recurrence, job)
                .overlap(overlap)
                .misfire(misfire)
                .backfill(backfill)
                .jitter(jitter)
                .startsAt(startsAt)
                .endsAt(endsAt);
    }

    /** Returns the name, unique in the schema. */
    public String name() {
        return name;
    }

    /** Returns when it is due. */
    public Recurrence recurrence() {
        return recurrence;
    }

    /** Returns the job that each execution adds, without {@code _cron}; the {@code runAt} of its spec is null. */
    public JobRequest job() {
        return job;
    }

    /** Returns what happens while the previous job still waits or runs. */
    public Overlap overlap() {
        return overlap;
    }

    /** Returns what happens to executions that were missed. */
    public Misfire misfire() {
        return misfire;
    }

    /** Returns how far back missed executions are considered; null for without limit. */
    public @Nullable Duration backfill() {
        return backfill;
    }

    /** Returns by how much each job runs later than it is due at most; the time is chosen evenly. */
    public Duration jitter() {
        return jitter;
    }

    /** Returns before when it is not due; null for no limit. */
    public @Nullable Instant startsAt() {
        return startsAt;
    }

    /** Returns from when on it is not due any more; null for no limit. */
    public @Nullable Instant endsAt() {
        return endsAt;
    }

    /**
     * Returns the next due times, by the recurrence alone.
     *
     * @param after the first one is later than that
     * @param count how many, 1 to 1000; there may be fewer
     */
    public List<Instant> next(Instant after, int count) {
        List<Instant> due = new ArrayList<>();
        Instant next = recurrence.nextDue(after);
        while (next != null && due.size() < count) {
            due.add(next);
            next = recurrence.nextDue(next);
        }
        return due;
    }

    /**
     * Builds a {@link Schedule}.
     *
     * @since 0.1.0
     */
    public static final class Builder {

        private final String name;
        private Recurrence recurrence;
        private JobRequest job;
        private Overlap overlap = Overlap.ALLOW;
        private Misfire misfire = Misfire.SKIP;
        private @Nullable Duration backfill;
        private Duration jitter = Duration.ZERO;
        private @Nullable Instant startsAt;
        private @Nullable Instant endsAt;

        private Builder(String name, Recurrence recurrence, JobRequest job) {
            this.name = name;
            this.recurrence = recurrence;
            this.job = job;
        }

        /** Sets when it is due. */
        public Builder recurrence(Recurrence recurrence) {
            this.recurrence = recurrence;
            return this;
        }

        /** Sets queue, priority, maximum number of attempts, job key, mode and flags of each job; it must have no {@code runAt}. */
        public Builder spec(JobSpec spec) {
            this.job = new JobRequest(job.identifier(), job.payload(), job.payloadType(), spec);
            return this;
        }

        /** Sets the payload of each job. */
        public Builder payload(@Nullable Object payload) {
            this.job = new JobRequest(job.identifier(), payload, null, job.spec());
            return this;
        }

        /** Sets what happens while the previous job still waits or runs; {@link Overlap#ALLOW} by default. */
        public Builder overlap(Overlap overlap) {
            this.overlap = overlap;
            return this;
        }

        /** Sets what happens to executions that were missed; {@link Misfire#SKIP} by default. */
        public Builder misfire(Misfire misfire) {
            this.misfire = misfire;
            return this;
        }

        /** Sets how far back missed executions are considered; null, the default, for without limit. */
        public Builder backfill(@Nullable Duration backfill) {
            this.backfill = backfill;
            return this;
        }

        /** Sets by how much each job runs later than it is due at most; zero by default. */
        public Builder jitter(Duration jitter) {
            this.jitter = jitter;
            return this;
        }

        /** Sets before when it is not due; null, the default, for no limit. */
        public Builder startsAt(@Nullable Instant startsAt) {
            this.startsAt = startsAt;
            return this;
        }

        /** Sets from when on it is not due any more; null, the default, for no limit. */
        public Builder endsAt(@Nullable Instant endsAt) {
            this.endsAt = endsAt;
            return this;
        }

        /**
         * Returns the schedule.
         *
         * @throws IllegalArgumentException if a value is invalid; the message names it and says what is allowed
         */
        public Schedule build() {
            return new Schedule(this);
        }
    }
}
