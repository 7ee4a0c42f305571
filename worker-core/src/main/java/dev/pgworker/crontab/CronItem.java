package dev.pgworker.crontab;

import java.lang.reflect.Type;
import java.time.DayOfWeek;
import java.time.Duration;
import java.time.Instant;
import java.time.Month;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.pattern.CronPattern;
import dev.pgworker.internal.pattern.CronSchedule;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;

/**
 * One recurring job. Immutable.
 *
 * <p>A pattern refers to local time in the item's time zone. When clocks change, an execution at a local time that does
 * not exist takes place once, at the moment of the change; an execution at a local time that exists twice takes place
 * the first time only. An item that runs in every hour follows elapsed time instead.
 *
 * @since 0.1.0
 */
public final class CronItem {

    private final SourceLocation location;
    private final String identifier;
    private final CronSchedule schedule;
    private final Duration fill;
    private final JobRequest job;

    /**
     * Makes an item whose parts have been checked.
     *
     * @param location where it is declared, for messages
     * @param job what each execution adds; its {@code runAt} is null
     */
    CronItem(SourceLocation location, String identifier, CronSchedule schedule, Duration fill, JobRequest job) {
        this.location = location;
        this.identifier = identifier;
        this.schedule = schedule;
        this.fill = fill;
        this.job = job;
    }

    /** Returns a builder of an item that runs the given task, with any payload that serializes to a JSON object. */
    public static Builder<Object> of(String identifier) {
        return new Builder<>(Arguments.requireIdentifier(identifier), null);
    }

    /** Returns a builder of an item that runs the given task. */
    public static <P> Builder<P> of(Task<P> task) {
        return new Builder<>(Arguments.requireNonNull("task", task).identifier(), task.payloadType());
    }

    /** Returns the name by which all workers know the item; unique in a crontab. */
    public String identifier() {
        return identifier;
    }

    /** Returns the identifier of the task to run. */
    public String task() {
        return job.identifier();
    }

    /**
     * Returns the specification of each job; its {@code runAt} is null, because jobs run in the minute of the
     * execution.
     */
    public JobSpec spec() {
        return job.spec();
    }

    /**
     * Returns the job that each execution adds, as the item defines it. It has no time of an execution, and the
     * payload as given, without {@code _cron}. The payload of an item from a text or an annotation is a Jackson {@code
     * ObjectNode}, which must not be modified, or null for none.
     */
    public JobRequest job() {
        return job;
    }

    /** Returns how far back missed executions are backfilled; zero for no backfill. */
    public Duration fill() {
        return fill;
    }

    /** Returns the time zone of the pattern; null for the worker's crontab zone. */
    public @Nullable ZoneId zone() {
        return schedule.zone();
    }

    /** Returns the pattern of the item: minute, hour, day of month, month and day of week, separated by one space. */
    public String schedule() {
        return schedule.pattern().text();
    }

    SourceLocation location() {
        return location;
    }

    CronPattern pattern() {
        return schedule.pattern();
    }

    @Override
    public String toString() {
        return "CronItem[" + identifier + ", task " + task() + "]";
    }

    /** Returns a copy of this item with the given time zone, unless the item specifies one. */
    CronItem withDefaultZone(ZoneId zone) {
        return new CronItem(location, identifier, schedule.withDefaultZone(zone), fill, job);
    }

    /**
     * Returns whether the item is due in the minute that begins at the given instant. An item without a time zone is
     * evaluated in UTC.
     *
     * <p>When clocks change, a local time that does not exist is replaced by the moment of the change, once however
     * many such times the pattern has, and of a local time that exists twice only the first counts. A pattern that does
     * not restrict the hour follows elapsed time instead: it is due whenever the local time matches.
     */
    public boolean isDueAt(Instant tick) {
        Arguments.requireInstant("tick", Arguments.requireNonNull("tick", tick));
        return schedule.isDueAt(tick);
    }

    /**
     * Returns the first minute after the given instant in which the item is due. Null if there is none in the next
     * nine years, which always include a 29 February. An item without a time zone is evaluated in UTC.
     */
    public @Nullable Instant nextDue(Instant after) {
        Arguments.requireInstant("after", Arguments.requireNonNull("after", after));
        return schedule.nextDue(after);
    }

    /**
     * Builds a {@link CronItem}. Each method that sets the schedule replaces the schedule set before, and every method
     * throws an {@code IllegalArgumentException} if its argument is out of range. Not thread-safe.
     *
     * @param <P> the type of the payload
     * @since 0.1.0
     */
    public static final class Builder<P> {

        private final String task;
        private final @Nullable Type payloadType;
        private final JobSpec.Builder spec = JobSpec.builder();
        private final SourceLocation location;
        private @Nullable String identifier;
        private @Nullable CronPattern pattern;
        private @Nullable ZoneId zone;
        private Duration fill = Duration.ZERO;
        private @Nullable P payload;

        private Builder(String task, @Nullable Type payloadType) {
            this.task = task;
            this.payloadType = payloadType;
            this.location = new SourceLocation("a CronItem of task " + task, 0, 0);
        }

        /** Runs every minute. */
        public Builder<P> everyMinute() {
            return pattern("* * * * *");
        }

        /** Runs in those minutes of each hour that are multiples of the given number, 1 to 59. */
        public Builder<P> everyMinutes(int minutes) {
            Arguments.requireRange("minutes", minutes, 1, 59);
            return pattern("*/" + minutes + " * * * *");
        }

        /** Runs every hour at the given minute, 0 to 59. */
        public Builder<P> hourlyAt(int minute) {
            return at(minute, null, "* * *");
        }

        /** Runs every day at the given hour, 0 to 23, and minute, 0 to 59. */
        public Builder<P> dailyAt(int hour, int minute) {
            return at(minute, hour, "* * *");
        }

        /** Runs every week on the given day at the given hour, 0 to 23, and minute, 0 to 59. */
        public Builder<P> weeklyOn(DayOfWeek day, int hour, int minute) {
            return at(
                    minute, hour, "* * " + Arguments.requireNonNull("day", day).getValue() % 7);
        }

        /** Runs in each month that has the given day, 1 to 31, at the given hour, 0 to 23, and minute, 0 to 59. */
        public Builder<P> monthlyOn(int dayOfMonth, int hour, int minute) {
            Arguments.requireRange("dayOfMonth", dayOfMonth, 1, 31);
            return at(minute, hour, dayOfMonth + " * *");
        }

        /**
         * Runs in each year that has the given day at the given hour, 0 to 23, and minute, 0 to 59.
         *
         * @param dayOfMonth 1 to the length of the month in a leap year
         */
        public Builder<P> yearlyOn(Month month, int dayOfMonth, int hour, int minute) {
            Arguments.requireRange(
                    "dayOfMonth",
                    dayOfMonth,
                    1,
                    Arguments.requireNonNull("month", month).maxLength());
            return at(minute, hour, dayOfMonth + " " + month.getValue() + " *");
        }

        private Builder<P> at(int minute, @Nullable Integer hour, String days) {
            Arguments.requireRange("minute", minute, 0, 59);
            Arguments.requireRange("hour", hour, 0, 23);
            return pattern(minute + " " + (hour == null ? "*" : hour) + " " + days);
        }

        /**
         * Runs in the minutes that match the pattern: minute, hour, day of month, month and day of week, as in a crontab.
         *
         * @throws CrontabException if the pattern is invalid
         */
        public Builder<P> pattern(String pattern) {
            List<CrontabProblem> problems = new ArrayList<>();
            CronPattern parsed = CronPattern.parse(
                    Arguments.requireNonNull("pattern", pattern),
                    (column, text, message) ->
                            problems.add(new CrontabProblem("pattern of task " + task, 1, column + 1, text, message)));
            if (!problems.isEmpty()) {
                throw new CrontabException(problems);
            }
            return pattern(parsed);
        }

        Builder<P> pattern(CronPattern pattern) {
            this.pattern = pattern;
            return this;
        }

        /**
         * Sets the identifier by which all workers know the item, at most 128 characters. The default is the task
         * identifier.
         */
        public Builder<P> id(String identifier) {
            this.identifier = Arguments.requireIdentifier(identifier);
            return this;
        }

        /**
         * Sets how far back missed executions are backfilled, in whole seconds. The default is zero, for no backfill.
         */
        public Builder<P> fill(Duration fill) {
            Arguments.requireNotNegative("fill", fill);
            this.fill = fill;
            return this;
        }

        /** Sets the time zone of the pattern. The default is the worker's crontab zone. */
        public Builder<P> zone(ZoneId zone) {
            this.zone = Arguments.requireNonNull("zone", zone);
            return this;
        }

        /** Sets the payload of each job, to which {@code _cron} is added; it must serialize to a JSON object. */
        public Builder<P> payload(P payload) {
            this.payload = payload;
            return this;
        }

        /** Sets the named queue, 1 to 128 characters. */
        public Builder<P> queueName(String queueName) {
            return specify(attributes -> attributes.queueName(queueName));
        }

        /** Sets the maximum number of attempts of each job, 1 to 32767. The default is 25. */
        public Builder<P> maxAttempts(int maxAttempts) {
            return specify(attributes -> attributes.maxAttempts(maxAttempts));
        }

        /** Sets the priority, -32768 to 32767; jobs with a numerically smaller priority run first. The default is 0. */
        public Builder<P> priority(int priority) {
            return specify(attributes -> attributes.priority(priority));
        }

        /** Sets the job key, 1 to 512 characters, under which a job replaces one that is still waiting. */
        public Builder<P> jobKey(String jobKey) {
            return jobKey(jobKey, JobKeyMode.REPLACE);
        }

        /** Sets the job key, 1 to 512 characters, and what happens if another job already has it. */
        public Builder<P> jobKey(String jobKey, JobKeyMode mode) {
            return specify(attributes -> attributes.jobKey(jobKey).jobKeyMode(mode));
        }

        /** Sets the flags, replacing those set before. */
        public Builder<P> flags(String... flags) {
            return specify(attributes -> attributes.flags(flags));
        }

        /** Sets an attribute after trying it alone, so that a wrong one is refused where it is given. */
        private Builder<P> specify(Consumer<JobSpec.Builder> attribute) {
            JobSpec.Builder alone = JobSpec.builder();
            attribute.accept(alone);
            JobSpec unused = alone.build();
            attribute.accept(spec);
            return this;
        }

        /**
         * Returns the item.
         *
         * @throws IllegalArgumentException if no schedule has been set
         */
        public CronItem build() {
            if (pattern == null) {
                throw new IllegalArgumentException("A cron item of task " + task
                        + " must have a schedule: call everyMinute, dailyAt, pattern or the like before build");
            }
            return new CronItem(
                    location,
                    identifier == null ? task : identifier,
                    new CronSchedule(pattern, zone),
                    fill,
                    new JobRequest(task, payload, payloadType, spec.build()));
        }
    }
}
