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
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;

/**
 * One recurring job. Immutable.
 *
 * <p>A pattern means local time in the item's zone. Where clocks change, an execution whose time does not exist happens
 * once, at the change; one whose time exists twice happens the first time only. An item that runs in every hour follows
 * the elapsed time instead.
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

    /** Returns a builder of an item that runs the given task with any payload that is written as a JSON object. */
    public static Builder<Object> of(String task) {
        return new Builder<>(Arguments.requireIdentifier(task), null);
    }

    /** Returns a builder of an item that runs the given task. */
    public static <P> Builder<P> of(Task<P> task) {
        return new Builder<>(task.identifier(), task.payloadType());
    }

    /** Returns the name by which all workers know the item; unique in a crontab. */
    public String identifier() {
        return identifier;
    }

    /** Returns the identifier of the task to run. */
    public String task() {
        return job.identifier();
    }

    /** Returns how each job is scheduled; its {@code runAt} is null, because the minute of the execution counts. */
    public JobSpec spec() {
        return job.spec();
    }

    /**
     * Returns the job that each execution adds, as the item says it: without the time of the execution, and with a payload
     * that is as it was given, without {@code _cron}. The payload of an item from a text or an annotation is a Jackson
     * {@code ObjectNode}, which must not be changed, or null for none.
     */
    public JobRequest job() {
        return job;
    }

    /** Returns how far back missed executions are made up for; zero for not at all. */
    public Duration fill() {
        return fill;
    }

    /** Returns whose local time the pattern means; null for the worker's crontab zone. */
    public @Nullable ZoneId zone() {
        return schedule.zone();
    }

    /** Returns when the item is due: minute, hour, day of month, month and day of week, one space between. */
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

    /** Returns this item with the given zone, unless it has one of its own. */
    CronItem withDefaultZone(ZoneId zone) {
        return new CronItem(location, identifier, schedule.withDefaultZone(zone), fill, job);
    }

    /**
     * Tells whether the item is due in the minute that begins at the given instant; without a zone by UTC.
     *
     * <p>Where clocks change, a local time that does not exist counts as the moment of the change, once however many
     * such times the pattern has, and of a local time that exists twice only the first counts. A pattern that is open
     * in its hours follows the elapsed time instead: it is due whenever the local time matches.
     */
    public boolean isDueAt(Instant tick) {
        return schedule.isDueAt(tick);
    }

    /**
     * Returns the first minute after the given instant in which the item is due, or null if there is none in the next
     * nine years, which have a 29 February whatever the century. Without a zone by UTC.
     */
    public @Nullable Instant nextDue(Instant after) {
        return schedule.nextDue(after);
    }

    /**
     * Builds a {@link CronItem}. Each method that says when replaces what was said before, and each throws an
     * {@code IllegalArgumentException} if its argument is out of its range. Not thread-safe.
     *
     * @param <P> the type of the payload
     * @since 0.1.0
     */
    public static final class Builder<P> {

        private final String task;
        private final @Nullable Type payloadType;
        private final JobSpec.Builder spec = JobSpec.builder();
        private SourceLocation location;
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

        /** Runs in the minutes of each hour that the number divides, 1 to 59. */
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
         * @throws CrontabException if the pattern is wrong
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

        /** Sets what messages call the item. */
        Builder<P> location(SourceLocation location) {
            this.location = location;
            return this;
        }

        /** Sets the name by which all workers know the item, at most 128 characters; the task's unless set. */
        public Builder<P> id(String identifier) {
            this.identifier = Arguments.requireIdentifier(identifier);
            return this;
        }

        /** Sets how far back missed executions are made up for, whole seconds; zero, not at all, unless set. */
        public Builder<P> fill(Duration fill) {
            Arguments.requireNotNegative("fill", fill);
            this.fill = fill;
            return this;
        }

        /** Sets whose local time the pattern means; the worker's crontab zone unless set. */
        public Builder<P> zone(ZoneId zone) {
            this.zone = Arguments.requireNonNull("zone", zone);
            return this;
        }

        /** Sets what each job's payload holds besides {@code _cron}; written as a JSON object. */
        public Builder<P> payload(P payload) {
            this.payload = payload;
            return this;
        }

        /** Sets the named queue, 1 to 128 characters. */
        public Builder<P> queueName(String queueName) {
            return specify(attributes -> attributes.queueName(queueName));
        }

        /** Sets how often each job may be attempted, 1 to 32767; 25 unless set. */
        public Builder<P> maxAttempts(int maxAttempts) {
            return specify(attributes -> attributes.maxAttempts(maxAttempts));
        }

        /** Sets the priority, -32768 to 32767, smaller first; 0 unless set. */
        public Builder<P> priority(int priority) {
            return specify(attributes -> attributes.priority(priority));
        }

        /** Sets the job key, 1 to 512 characters, by which a job replaces one that still waits. */
        public Builder<P> jobKey(String jobKey) {
            return jobKey(jobKey, JobKeyMode.REPLACE);
        }

        /** Sets the job key, 1 to 512 characters, and what happens if a job has it already. */
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
         * @throws IllegalArgumentException if it has not been said when to run
         */
        public CronItem build() {
            if (pattern == null) {
                throw new IllegalArgumentException("A cron item of task " + task
                        + " must say when to run: call everyMinute, dailyAt, pattern or the like before build");
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
