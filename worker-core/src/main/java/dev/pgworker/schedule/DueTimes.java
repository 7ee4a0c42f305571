package dev.pgworker.schedule;

import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.List;

import org.jspecify.annotations.Nullable;
import org.springframework.scheduling.support.CronExpression;
import org.springframework.util.ConcurrentLruCache;

import dev.pgworker.internal.pattern.CronPattern;
import dev.pgworker.internal.pattern.CronSchedule;

/** The times at which a recurrence is due. */
@FunctionalInterface
interface DueTimes {

    /** What is not due for nine years from then on is never due. Fixed, so that the answer does not depend on a clock. */
    Instant SOME_TIME = Instant.parse("2024-01-01T00:00:00Z");

    /** A pattern or expression of a zone. */
    record Text(boolean crontab, String text, ZoneId zone) {}

    /** Schedules are read again and again, and those of many tenants have the same few expressions. */
    ConcurrentLruCache<Text, DueTimes> KNOWN = new ConcurrentLruCache<>(
            1_000, key -> key.crontab() ? readCrontab(key.text(), key.zone()) : readCron(key.text(), key.zone()));

    /** Returns the first time after the given one; null if there is none for years. */
    @Nullable Instant next(Instant after);

    /** Returns the times of a crontab's pattern. */
    static DueTimes ofCrontab(String pattern, ZoneId zone) {
        return KNOWN.get(new Text(true, pattern, zone));
    }

    /** Returns the times of an expression of Spring's. */
    static DueTimes ofCron(String expression, ZoneId zone) {
        return KNOWN.get(new Text(false, expression, zone));
    }

    private static DueTimes readCrontab(String pattern, ZoneId zone) {
        List<String> problems = new ArrayList<>();
        CronPattern fields =
                CronPattern.parse(pattern, (column, text, message) -> problems.add("\"" + text + "\": " + message));
        if (!problems.isEmpty()) {
            throw new IllegalArgumentException(
                    "pattern \"" + pattern + "\" is invalid: " + String.join("; ", problems));
        }
        return due("pattern", pattern, new CronSchedule(fields, zone)::nextDue);
    }

    private static DueTimes readCron(String text, ZoneId zone) {
        CronExpression expression;
        try {
            expression = CronExpression.parse(text);
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException("expression \"" + text + "\" is invalid: " + e.getMessage(), e);
        }
        return due("expression", text, new LocalTimes(expression, zone)::next);
    }

    private static DueTimes due(String name, String text, DueTimes times) {
        if (times.next(SOME_TIME) == null) {
            throw new IllegalArgumentException(name + " \"" + text + "\" must be due at some time, but never is");
        }
        return times;
    }

    /** Returns the origin and all times that lie whole periods before and after it. */
    static DueTimes ofRate(Duration every, Instant origin) {
        return after -> {
            Duration since = Duration.between(origin, after);
            long periods = since.dividedBy(every);
            if (since.isNegative() && !every.multipliedBy(periods).equals(since)) {
                periods--;
            }
            return origin.plus(every.multipliedBy(periods + 1));
        };
    }
}
