package dev.pgworker.job;

import java.time.Duration;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.EnumSet;
import java.util.Set;

import org.jspecify.annotations.Nullable;
import org.springframework.scheduling.support.CronExpression;

import dev.pgworker.internal.argument.Arguments;

/**
 * When a worker removes data that is no longer used by itself, and which. Each time is that of one worker of a schema,
 * whichever is first.
 *
 * @param schedule a cron expression of Spring with six fields, such as {@code 0 0 3 * * *}, or a macro such as {@code
 *     @daily}; null, the default, for never
 * @param zone the time zone of the schedule; the default is UTC
 * @param tasks what to remove, as an unmodifiable set; the default is unused queues and ended schedules
 * @param failedJobsOlderThan how long ago the last attempt of a permanently failed job must have ended for it to be removed
 *     by {@link CleanupTask#DELETE_PERMAFAILED_JOBS}; 0 to 3650 days, the default is 30 days
 * @since 0.1.0
 */
public record CleanupSettings(
        @Nullable String schedule, ZoneId zone, Set<CleanupTask> tasks, Duration failedJobsOlderThan) {

    private static final Duration LONGEST = Duration.ofDays(3650);

    /** The default settings: nothing is removed. */
    public static final CleanupSettings DEFAULT = new CleanupSettings(
            null,
            ZoneId.of("UTC"),
            EnumSet.of(CleanupTask.GC_JOB_QUEUES, CleanupTask.DELETE_ENDED_SCHEDULES),
            Duration.ofDays(30));

    /**
     * Validates the settings.
     *
     * @throws IllegalArgumentException if a setting is not allowed; the message begins with its name and states what is
     */
    public CleanupSettings {
        Arguments.requireNonNull("zone", zone);
        tasks = Set.copyOf(Arguments.requireElements("tasks", tasks));
        Arguments.requireNonNull("failedJobsOlderThan", failedJobsOlderThan);
        if (schedule != null) {
            requireDueSometimes(schedule);
        }
        if (tasks.isEmpty()) {
            throw new IllegalArgumentException(
                    "tasks must contain at least one of " + EnumSet.allOf(CleanupTask.class));
        }
        if (failedJobsOlderThan.isNegative() || failedJobsOlderThan.compareTo(LONGEST) > 0) {
            throw new IllegalArgumentException(
                    "failedJobsOlderThan must be between 0 and 3650 days, but is " + failedJobsOlderThan);
        }
    }

    private static void requireDueSometimes(String schedule) {
        CronExpression expression;
        try {
            expression = CronExpression.parse(schedule);
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException(
                    "schedule must be a cron expression of six fields, such as \"0 0 3 * * *\", or a macro such as"
                            + " \"@daily\", but is \"" + schedule + "\": " + e.getMessage(),
                    e);
        }
        if (expression.next(ZonedDateTime.of(2000, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC)) == null) {
            throw new IllegalArgumentException("schedule must be due sometimes, but is \"" + schedule + "\"");
        }
    }
}
