package dev.pgworker.schedule;

import java.util.EnumSet;
import java.util.Set;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.schedule.RecurringJob.Origin;

/**
 * Which recurring jobs to list, in the order of their ids.
 *
 * @param prefix with which the ids begin; null for any
 * @param task whose recurring jobs to list; null for all
 * @param paused whether to list paused ones or others; null for both
 * @param problem whether to list those that are not executed because of a problem, or others; null for both
 * @param origins where those are defined that are listed; empty for anywhere
 * @param after the id after which the list begins; null for the first
 * @param limit how many to return, 1 to 1000; one more if two share the last id
 * @since 0.1.0
 */
public record RecurringQuery(
        @Nullable String prefix,
        @Nullable String task,
        @Nullable Boolean paused,
        @Nullable Boolean problem,
        Set<Origin> origins,
        @Nullable String after,
        int limit) {

    /** The origins of what is a schedule, and not a crontab's item. */
    public static final Set<Origin> SCHEDULES = Set.of(Origin.DECLARED, Origin.DATABASE);

    /** The first hundred of all. */
    public static final RecurringQuery ALL = new RecurringQuery(null, null, null, null, 100);

    /**
     * Validates the arguments.
     *
     * @throws IllegalArgumentException if one is invalid; the message names it and what is allowed
     */
    public RecurringQuery {
        Arguments.requireOptionalText("prefix", prefix, Integer.MAX_VALUE);
        Arguments.requireOptionalText("task", task, Integer.MAX_VALUE);
        Arguments.requireOptionalText("after", after, Integer.MAX_VALUE);
        Arguments.requireRange("limit", limit, 1, 1000);
        Set<Origin> given = Arguments.requireElements("origins", origins);
        origins = Set.copyOf(given.isEmpty() ? EnumSet.allOf(Origin.class) : given);
    }

    /** Lists recurring jobs of any origin, whether or not they have a problem. */
    public RecurringQuery(
            @Nullable String prefix,
            @Nullable String task,
            @Nullable Boolean paused,
            @Nullable String after,
            int limit) {
        this(prefix, task, paused, null, Set.of(), after, limit);
    }
}
