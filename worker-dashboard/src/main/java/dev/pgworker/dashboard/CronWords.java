package dev.pgworker.dashboard;

import java.time.ZoneId;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;

import org.jspecify.annotations.Nullable;

/** A pattern in words, such as "At 04:00 every day (Europe/Berlin)". */
final class CronWords {

    private static final int MOST_TIMES = 6;

    private static final Map<String, String> MACROS = Map.of(
            "@YEARLY", "0 0 0 1 1 *",
            "@ANNUALLY", "0 0 0 1 1 *",
            "@MONTHLY", "0 0 0 1 * *",
            "@WEEKLY", "0 0 0 * * 0",
            "@DAILY", "0 0 0 * * *",
            "@MIDNIGHT", "0 0 0 * * *",
            "@HOURLY", "0 0 * * * *");

    private final CronField seconds;
    private final CronField minutes;
    private final CronField hours;
    private final CronDays days;

    private CronWords(CronField seconds, CronField minutes, CronField hours, CronDays days) {
        this.seconds = seconds;
        this.minutes = minutes;
        this.hours = hours;
        this.days = days;
    }

    /**
     * Describes a pattern of a crontab.
     *
     * @param pattern minute, hour, day of month, month and day of week, as a {@code CronItem} has it
     */
    static String describe(String pattern, @Nullable ZoneId zone) {
        String[] fields = pattern.strip().split("\\s+");
        return new CronWords(
                        CronField.ofCrontab("0", 0, 59),
                        CronField.ofCrontab(fields[0], 0, 59),
                        CronField.ofCrontab(fields[1], 0, 23),
                        CronDays.ofCrontab(fields[2], fields[3], fields[4]))
                .words(zone);
    }

    /**
     * Describes an expression of Spring's.
     *
     * @param expression second, minute, hour, day of month, month and day of week, or a macro
     */
    static String describeSpring(String expression, @Nullable ZoneId zone) {
        String stripped = expression.strip();
        String[] fields =
                MACROS.getOrDefault(stripped.toUpperCase(Locale.ROOT), stripped).split("\\s+");
        return new CronWords(
                        CronField.ofSpring(fields[0], 0, 59),
                        CronField.ofSpring(fields[1], 0, 59),
                        CronField.ofSpring(fields[2], 0, 23),
                        CronDays.ofSpring(fields[3], fields[4], fields[5]))
                .words(zone);
    }

    private String words(@Nullable ZoneId zone) {
        boolean often = hours.isAll() || minutes.isAll() || seconds.values().size() > 1;
        return time() + days.words(often) + (zone == null ? "" : " (" + zone.getId() + ")");
    }

    private String time() {
        if (seconds.isAll() || seconds.step() > 1) {
            return (seconds.isAll() ? "Every second" : "Every " + seconds.step() + " seconds") + within();
        }
        boolean fewTimes = !hours.isAll()
                && !minutes.isAll()
                && seconds.values().size() == 1
                && minutes.values().size() * hours.values().size() <= MOST_TIMES;
        if (fewTimes) {
            return "At " + CronField.joined(times());
        }
        return minutesWords()
                + (seconds.isOnly(0) ? "" : ", at " + seconds.join("second ", "seconds ", Integer::toString));
    }

    private List<String> times() {
        List<String> times = new ArrayList<>();
        String second =
                seconds.isOnly(0) ? "" : ":" + twoDigits(seconds.values().first());
        for (int hour : hours.values()) {
            for (int minute : minutes.values()) {
                times.add(twoDigits(hour) + ":" + twoDigits(minute) + second);
            }
        }
        return times;
    }

    /** Returns in which minutes of which hours what happens every few seconds. */
    private String within() {
        if (minutes.isAll()) {
            return hours.isAll() ? "" : " of " + hoursWords();
        }
        String some = " of " + minutes.join("minute ", "minutes ", Integer::toString);
        return some + (hours.isAll() ? " of every hour" : " of " + hoursWords());
    }

    private String hoursWords() {
        return hours.join("the hour ", "the hours ", CronWords::twoDigits);
    }

    private String minutesWords() {
        if (hours.isAll()) {
            return everyHour();
        }
        if (minutes.isAll()) {
            return "Every minute of " + hoursWords();
        }
        if (hours.step() > 1 && minutes.values().size() == 1) {
            return "Every " + hours.step() + " hours at minute "
                    + minutes.values().first();
        }
        String often = minutes.step() > 1
                ? "Every " + minutes.step() + " minutes"
                : "At " + minutes.join("minute ", "minutes ", Integer::toString);
        return often + " of " + hoursWords();
    }

    private String everyHour() {
        if (minutes.isAll()) {
            return "Every minute";
        }
        if (minutes.step() > 1) {
            return "Every " + minutes.step() + " minutes";
        }
        return "Every hour at " + minutes.join("minute ", "minutes ", Integer::toString);
    }

    private static String twoDigits(int number) {
        return number < 10 ? "0" + number : Integer.toString(number);
    }
}
