package dev.pgworker.dashboard;

import java.time.Duration;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Objects;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.schedule.Recurrence;

/** When a schedule is due, in words, such as "Every 90 minutes". */
final class RecurrenceWords {

    private static final Logger log = WorkerLog.of(RecurrenceWords.class);

    /** A larger number says little; 2 hours 1 minute says more than 121 minutes. */
    private static final int MOST_OF_A_UNIT = 120;

    private static final long[] SECONDS = {86_400, 3_600, 60, 1};
    private static final String[] UNITS = {"day", "hour", "minute", "second"};

    private RecurrenceWords() {}

    /** Returns the words; null where an expression has none. */
    static @Nullable String describe(Recurrence recurrence) {
        return switch (recurrence.kind()) {
            case CRONTAB, CRON -> pattern(recurrence);
            case FIXED_RATE -> "Every " + span(every(recurrence));
            case FIXED_DELAY -> span(every(recurrence)) + " after the end of the previous job";
        };
    }

    private static Duration every(Recurrence recurrence) {
        return Objects.requireNonNull(recurrence.every());
    }

    /** Whatever Spring accepts besides what its documentation says must not hide a list. */
    private static @Nullable String pattern(Recurrence recurrence) {
        String expression = Objects.requireNonNull(recurrence.expression());
        ZoneId zone = recurrence.zone();
        try {
            return recurrence.kind() == Recurrence.Kind.CRONTAB
                    ? CronWords.describe(expression, zone)
                    : CronWords.describeSpring(expression, zone);
        } catch (RuntimeException e) {
            log.debug("There are no words for the expression {}", expression, e);
            return null;
        }
    }

    /** Returns a length of time, such as "90 minutes" or "2 hours 1 second". */
    static String span(Duration duration) {
        long seconds = duration.toSeconds();
        if (duration.toNanosPart() != 0) {
            return seconds < MOST_OF_A_UNIT
                    ? decimal(duration) + " seconds"
                    : "about " + span(Duration.ofSeconds(seconds));
        }
        for (int i = 0; i < SECONDS.length; i++) {
            long count = seconds / SECONDS[i];
            if (seconds % SECONDS[i] == 0 && count > 0 && (i == 0 || count <= MOST_OF_A_UNIT)) {
                return count(count, UNITS[i]);
            }
        }
        List<String> parts = new ArrayList<>();
        long rest = seconds;
        for (int i = 0; i < SECONDS.length; i++) {
            if (rest >= SECONDS[i]) {
                parts.add(count(rest / SECONDS[i], UNITS[i]));
                rest %= SECONDS[i];
            }
        }
        return parts.isEmpty() ? "0 seconds" : String.join(" ", parts);
    }

    private static String decimal(Duration duration) {
        String millis = String.format(Locale.ROOT, "%d.%03d", duration.toSeconds(), duration.toMillisPart());
        return millis.replaceFirst("\\.?0+$", "");
    }

    private static String count(long number, String unit) {
        return number == 1 ? "1 " + unit : number + " " + unit + "s";
    }
}
