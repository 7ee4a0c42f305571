package dev.pgworker.schedule;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * Which schedules to list, in the order of their names.
 *
 * @param prefix with which the names begin; null for any
 * @param task whose schedules to list; null for all
 * @param paused whether to list paused ones or others; null for both
 * @param problem whether to list those that are not executed because of a problem, or others; null for both
 * @param after the name after which the list begins; null for the first
 * @param limit how many to return at most, 1 to 1000
 * @since 0.1.0
 */
public record ScheduleQuery(
        @Nullable String prefix,
        @Nullable String task,
        @Nullable Boolean paused,
        @Nullable Boolean problem,
        @Nullable String after,
        int limit) {

    /**
     * Validates the arguments.
     *
     * @throws IllegalArgumentException if one is invalid; the message names it and says what is allowed
     */
    public ScheduleQuery {
        Arguments.requireOptionalText("prefix", prefix, Integer.MAX_VALUE);
        Arguments.requireOptionalText("task", task, Integer.MAX_VALUE);
        Arguments.requireOptionalText("after", after, Integer.MAX_VALUE);
        Arguments.requireRange("limit", limit, 1, 1000);
    }

    /** The first hundred of all. */
    public static final ScheduleQuery ALL = new ScheduleQuery(null, null, null, null, null, 100);

    /** Lists schedules whether or not they have a problem. */
    public ScheduleQuery(
            @Nullable String prefix,
            @Nullable String task,
            @Nullable Boolean paused,
            @Nullable String after,
            int limit) {
        this(prefix, task, paused, null, after, limit);
    }
}
