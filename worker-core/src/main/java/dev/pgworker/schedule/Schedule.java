package dev.pgworker.schedule;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;

/**
 * A recurring job. Immutable. Instants and durations are kept to the microsecond.
 *
 * @since 0.1.0
 */
public final class Schedule {

    private static final Duration SHORTEST_BACKFILL = Duration.ofSeconds(1);
    private static final Duration LONGEST_BACKFILL = Duration.ofDays(3_650);
    private static final Duration LONGEST_JITTER = Duration.ofDays(7);

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
        this.name = Arguments.requireGivenText("name", builder.name, 128);
        this.recurrence = Arguments.requireNonNull("recurrence", builder.recurrence);
        this.job = builder.job;
        this.misfire = Arguments.requireNonNull("misfire", builder.misfire);
        Overlap usual = misfire == Misfire.RUN_ALL ? Overlap.QUEUE : Overlap.SKIP;
        this.overlap = builder.overlap == null ? usual : builder.overlap;
        this.backfill = builder.backfill == null
                ? null
                : Arguments.requireSpan("backfill", builder.backfill, SHORTEST_BACKFILL, LONGEST_BACKFILL);
        this.jitter = Arguments.requireSpan("jitter", builder.jitter, Duration.ZERO, LONGEST_JITTER);
        this.startsAt = Arguments.requireStored("startsAt", builder.startsAt);
        this.endsAt = Arguments.requireStored("endsAt", builder.endsAt);
        requireFit();
    }

    private void requireFit() {
        if (job.spec().runAt() != null) {
            throw new IllegalArgumentException(
                    "spec.runAt must be null, because the recurrence says when jobs run, but is "
                            + job.spec().runAt());
        }
        if (startsAt != null && endsAt != null && !endsAt.isAfter(startsAt)) {
            throw new IllegalArgumentException("endsAt must be after startsAt, " + startsAt + ", but is " + endsAt);
        }
        if (startsAt != null && endsAt != null && firstDue(justBefore(startsAt)) == null) {
            // The message is also for those who have put it by SQL, where the two have other names.
            throw new IllegalArgumentException("recurrence must be due between start and end, but " + recurrence
                    + " is not between " + startsAt + " and " + endsAt);
        }
        Duration every = recurrence.every();
        if (recurrence.kind() == Recurrence.Kind.FIXED_RATE && every != null && jitter.compareTo(every) >= 0) {
            throw new IllegalArgumentException(
                    "jitter must be less than the period of the fixed rate, " + every + ", but is " + jitter);
        }
    }

    /**
     * Returns a builder.
     *
     * @param name 1 to 128 characters, unique in the schema
     * @param identifier the task's name, 1 to 128 characters
     * @param payload what Jackson writes as a JSON object of at most 100,000 characters, to which {@code _cron} is added; null
     *     for the empty object
     */
    public static Builder builder(String name, Recurrence recurrence, String identifier, @Nullable Object payload) {
        return new Builder(name, recurrence, JobRequest.of(identifier, payload));
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

    /**
     * Returns the job that each execution adds, without {@code _cron}; the {@code runAt} of its spec is null. The payload of a
     * schedule that was read from the database is a Jackson {@code ObjectNode}.
     */
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

    /** Returns the largest random delay of each job, which is evenly distributed. */
    public Duration jitter() {
        return jitter;
    }

    /** Returns before when it is not due; null for no limit. */
    public @Nullable Instant startsAt() {
        return startsAt;
    }

    /** Returns the end from which on it is no longer due; null for no limit. */
    public @Nullable Instant endsAt() {
        return endsAt;
    }

    /**
     * Returns when this is due first if it is created, changed or resumed at the given time; null if never. A fixed delay is
     * due at once, as soon as it has started.
     */
    public @Nullable Instant firstDue(Instant from) {
        Arguments.requireInstant("from", Arguments.requireNonNull("from", from));
        Instant begin = startsAt != null && startsAt.isAfter(from) ? startsAt : from;
        return recurrence.kind() == Recurrence.Kind.FIXED_DELAY ? beforeEnd(begin) : nextDue(from);
    }

    /**
     * Returns the first due time after the given instant, from the start on and before the end, or null if there is none for
     * years. For a fixed delay, that is the delay after the given instant, at which the previous job has ended, or the start if
     * that is later.
     */
    public @Nullable Instant nextDue(Instant after) {
        if (startsAt == null) {
            return beforeEnd(recurrence.nextDue(after));
        }
        if (recurrence.kind() == Recurrence.Kind.FIXED_DELAY) {
            Instant next = recurrence.nextDue(after);
            return beforeEnd(next != null && next.isBefore(startsAt) ? startsAt : next);
        }
        return beforeEnd(recurrence.nextDue(startsAt.isAfter(after) ? justBefore(startsAt) : after));
    }

    private static Instant justBefore(Instant start) {
        Instant before = start.minusNanos(1_000);
        return Arguments.isStorable(before) ? before : start;
    }

    private @Nullable Instant beforeEnd(@Nullable Instant due) {
        return due == null || endsAt == null || due.isBefore(endsAt) ? due : null;
    }

    /**
     * Returns the next due times, from the start on and before the end. Those of a fixed delay are what they are if jobs
     * take no time.
     *
     * @param after the first one is later than that
     * @param count how many, 1 to 1000; there may be fewer
     * @throws IllegalArgumentException if an argument is out of range
     */
    public List<Instant> next(Instant after, int count) {
        Arguments.requireRange("count", count, 1, 1000);
        List<Instant> due = new ArrayList<>();
        Instant next = nextDue(Arguments.requireNonNull("after", after));
        while (next != null && due.size() < count) {
            due.add(next);
            next = nextDue(next);
        }
        return due;
    }

    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof Schedule that
                && name.equals(that.name)
                && recurrence.equals(that.recurrence)
                && job.equals(that.job)
                && overlap == that.overlap
                && misfire == that.misfire
                && Objects.equals(backfill, that.backfill)
                && jitter.equals(that.jitter)
                && Objects.equals(startsAt, that.startsAt)
                && Objects.equals(endsAt, that.endsAt);
    }

    @Override
    public int hashCode() {
        return Objects.hash(name, recurrence, job, overlap, misfire, backfill, jitter, startsAt, endsAt);
    }

    /** Returns the name, the task and when it is due, but not the payload. */
    @Override
    public String toString() {
        return "Schedule[" + name + ", task " + job.identifier() + ", " + recurrence + "]";
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
        private @Nullable Overlap overlap;
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

        /**
         * Sets what happens while the previous job still waits or runs. The default, null, is {@link Overlap#SKIP}, and {@link
         * Overlap#QUEUE} with {@link Misfire#RUN_ALL}; {@link Overlap#ALLOW} lets several jobs run at the same time.
         */
        public Builder overlap(@Nullable Overlap overlap) {
            this.overlap = overlap;
            return this;
        }

        /** Sets what happens to executions that were missed; {@link Misfire#SKIP} by default. */
        public Builder misfire(Misfire misfire) {
            this.misfire = misfire;
            return this;
        }

        /** Sets how far back missed executions are considered, 1 second to 3650 days; null, the default, for without limit. */
        public Builder backfill(@Nullable Duration backfill) {
            this.backfill = backfill;
            return this;
        }

        /**
         * Sets the largest random delay of each job, up to 7 days and less than the period of a fixed
         * rate; zero by default.
         */
        public Builder jitter(Duration jitter) {
            this.jitter = jitter;
            return this;
        }

        /** Sets before when it is not due; null, the default, for no limit. */
        public Builder startsAt(@Nullable Instant startsAt) {
            this.startsAt = startsAt;
            return this;
        }

        /** Sets the end from which on it is no longer due; null, the default, for no limit. */
        public Builder endsAt(@Nullable Instant endsAt) {
            this.endsAt = endsAt;
            return this;
        }

        /**
         * Returns the schedule.
         *
         * @throws IllegalArgumentException if a value is invalid; the message names it and what is allowed
         */
        public Schedule build() {
            return new Schedule(this);
        }
    }
}
