package dev.pgworker.crontab;

import java.lang.reflect.Type;
import java.time.DayOfWeek;
import java.time.Duration;
import java.time.Month;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.Arguments;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobSpec;

/**
 * Builds a {@link CronItem}. Each method that says when replaces what was said before. Not safe for use by several
 * threads.
 *
 * @param <P> the type of the payload
 */
public final class CronItemBuilder<P> {

    private static final Pattern FIELD = Pattern.compile("\\S+");

    private final String task;
    private final @Nullable Type payloadType;
    private final JobSpec.Builder spec = JobSpec.builder();
    private @Nullable String identifier;
    private @Nullable CronPattern pattern;
    private @Nullable ZoneId zone;
    private Duration fill = Duration.ZERO;
    private @Nullable P payload;

    CronItemBuilder(String task, @Nullable Type payloadType) {
        this.task = task;
        this.payloadType = payloadType;
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
        List<String> fields = new ArrayList<>();
        List<Integer> columns = new ArrayList<>();
        Matcher field = FIELD.matcher(Arguments.requireNonNull("pattern", pattern));
        while (field.find()) {
            fields.add(field.group());
            columns.add(field.start());
        }
        List<CrontabProblem> problems = new ArrayList<>();
        ProblemSink sink = (column, text, message) ->
                problems.add(new CrontabProblem("pattern of task " + task, 1, column + 1, text, message));
        if (fields.size() != 5) {
            sink.add(0, pattern, "must be minute, hour, day of month, month, day of week");
        } else {
            this.pattern = CronPattern.parse(
                    fields, columns.stream().mapToInt(Integer::intValue).toArray(), sink);
        }
        if (!problems.isEmpty()) {
            throw new CrontabException(problems);
        }
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
        spec.queueName(queueName);
        return this;
    }

    /** Sets how often each job may be attempted, 1 to 32767; 25 unless set. */
    public CronItemBuilder<P> maxAttempts(int maxAttempts) {
        spec.maxAttempts(maxAttempts);
        return this;
    }

    /** Sets the priority, -32768 to 32767, smaller first; 0 unless set. */
    public CronItemBuilder<P> priority(int priority) {
        spec.priority(priority);
        return this;
    }

    /** Sets the job key, 1 to 512 characters, by which a job replaces one that still waits. */
    public CronItemBuilder<P> jobKey(String jobKey) {
        return jobKey(jobKey, JobKeyMode.REPLACE);
    }

    /** Sets the job key, 1 to 512 characters, and what happens if a job has it already. */
    public CronItemBuilder<P> jobKey(String jobKey, JobKeyMode mode) {
        spec.jobKey(jobKey).jobKeyMode(mode);
        return this;
    }

    /** Sets the flags, replacing those set before. */
    public CronItemBuilder<P> flags(String... flags) {
        spec.flags(flags);
        return this;
    }

    /**
     * Returns the item.
     *
     * @throws IllegalArgumentException if it has not been said when to run, or if an attribute is out of its range
     */
    public CronItem build() {
        if (pattern == null) {
            throw new IllegalArgumentException("A cron item of task " + task
                    + " must say when to run: call everyMinute, dailyAt, pattern or the like before build");
        }
        return new CronItem(
                identifier == null ? task : identifier, task, pattern, zone, fill, spec.build(), payload, payloadType);
    }
}
