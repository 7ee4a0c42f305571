package dev.pgworker.crontab;

import java.lang.reflect.Type;
import java.time.DayOfWeek;
import java.time.Duration;
import java.time.Month;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobSpec;

/**
 * Builds a {@link CronItem}. Each method that says when replaces what was said before, and each throws an
 * {@code IllegalArgumentException} if its argument is out of its range. Not safe for use by several threads.
 *
 * @param <P> the type of the payload
 */
public final class CronItemBuilder<P> {

    private final String task;
    private final @Nullable Type payloadType;
    private final JobSpec.Builder spec = JobSpec.builder();
    private SourceLocation place;
    private @Nullable String identifier;
    private @Nullable CronPattern pattern;
    private @Nullable ZoneId zone;
    private Duration fill = Duration.ZERO;
    private @Nullable P payload;

    CronItemBuilder(String task, @Nullable Type payloadType) {
        this.task = task;
        this.payloadType = payloadType;
        this.place = new SourceLocation("a CronItem of task " + task, 0, 0);
    }

    /** Runs every minute. */
    public CronItemBuilder<P> everyMinute() {
        return pattern("* * * * *");
    }

    /** Runs in the minutes of each hour that the number divides, 1 to 59. */
    public CronItemBuilder<P> everyMinutes(int minutes) {
        Arguments.requireRange("minutes", minutes, 1, 59);
        return pattern("*/" + minutes + " * * * *");
    }

    /** Runs every hour at the given minute, 0 to 59. */
    public CronItemBuilder<P> hourlyAt(int minute) {
        return at(minute, null, "* * *");
    }

    /** Runs every day at the given hour, 0 to 23, and minute, 0 to 59. */
    public CronItemBuilder<P> dailyAt(int hour, int minute) {
        return at(minute, hour, "* * *");
    }

    /** Runs every week on the given day at the given hour, 0 to 23, and minute, 0 to 59. */
    public CronItemBuilder<P> weeklyOn(DayOfWeek day, int hour, int minute) {
        return at(minute, hour, "* * " + Arguments.requireNonNull("day", day).getValue() % 7);
    }

    /** Runs in each month that has the given day, 1 to 31, at the given hour, 0 to 23, and minute, 0 to 59. */
    public CronItemBuilder<P> monthlyOn(int dayOfMonth, int hour, int minute) {
        Arguments.requireRange("dayOfMonth", dayOfMonth, 1, 31);
        return at(minute, hour, dayOfMonth + " * *");
    }

    /**
     * Runs in each year that has the given day at the given hour, 0 to 23, and minute, 0 to 59.
     *
     * @param dayOfMonth 1 to the length of the month in a leap year
     */
    public CronItemBuilder<P> yearlyOn(Month month, int dayOfMonth, int hour, int minute) {
        Arguments.requireRange(
                "dayOfMonth",
                dayOfMonth,
                1,
                Arguments.requireNonNull("month", month).maxLength());
        return at(minute, hour, dayOfMonth + " " + month.getValue() + " *");
    }

    private CronItemBuilder<P> at(int minute, @Nullable Integer hour, String days) {
        Arguments.requireRange("minute", minute, 0, 59);
        Arguments.requireRange("hour", hour, 0, 23);
        return pattern(minute + " " + (hour == null ? "*" : hour) + " " + days);
    }

    /**
     * Runs in the minutes that match the pattern: minute, hour, day of month, month and day of week, as in a crontab.
     *
     * @throws CrontabException if the pattern is wrong
     */
    public CronItemBuilder<P> pattern(String pattern) {
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

    CronItemBuilder<P> pattern(CronPattern pattern) {
        this.pattern = pattern;
        return this;
    }

    /** Sets what messages call the item. */
    CronItemBuilder<P> place(SourceLocation place) {
        this.place = place;
        return this;
    }

    /** Sets the name by which all workers know the item, at most 128 characters; the task's unless set. */
    public CronItemBuilder<P> id(String identifier) {
        this.identifier = Arguments.requireIdentifier(identifier);
        return this;
    }

    /** Sets how far back missed executions are made up for, whole seconds; zero, not at all, unless set. */
    public CronItemBuilder<P> fill(Duration fill) {
        Arguments.requireNotNegative("fill", fill);
        this.fill = fill;
        return this;
    }

    /** Sets whose local time the pattern means; the worker's crontab zone unless set. */
    public CronItemBuilder<P> zone(ZoneId zone) {
        this.zone = Arguments.requireNonNull("zone", zone);
        return this;
    }

    /** Sets what each job's payload holds besides {@code _cron}; written as a JSON object. */
    public CronItemBuilder<P> payload(P payload) {
        this.payload = payload;
        return this;
    }

    /** Sets the named queue, 1 to 128 characters. */
    public CronItemBuilder<P> queueName(String queueName) {
        return specify(attributes -> attributes.queueName(queueName));
    }

    /** Sets how often each job may be attempted, 1 to 32767; 25 unless set. */
    public CronItemBuilder<P> maxAttempts(int maxAttempts) {
        return specify(attributes -> attributes.maxAttempts(maxAttempts));
    }

    /** Sets the priority, -32768 to 32767, smaller first; 0 unless set. */
    public CronItemBuilder<P> priority(int priority) {
        return specify(attributes -> attributes.priority(priority));
    }

    /** Sets the job key, 1 to 512 characters, by which a job replaces one that still waits. */
    public CronItemBuilder<P> jobKey(String jobKey) {
        return jobKey(jobKey, JobKeyMode.REPLACE);
    }

    /** Sets the job key, 1 to 512 characters, and what happens if a job has it already. */
    public CronItemBuilder<P> jobKey(String jobKey, JobKeyMode mode) {
        return specify(attributes -> attributes.jobKey(jobKey).jobKeyMode(mode));
    }

    /** Sets the flags, replacing those set before. */
    public CronItemBuilder<P> flags(String... flags) {
        return specify(attributes -> attributes.flags(flags));
    }

    /** Sets an attribute after trying it alone, so that a wrong one is refused where it is given. */
    private CronItemBuilder<P> specify(Consumer<JobSpec.Builder> attribute) {
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
                place,
                identifier == null ? task : identifier,
                task,
                pattern,
                zone,
                fill,
                spec.build(),
                payload,
                payloadType);
    }
}
