package dev.pgworker.internal.pattern;

import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.Month;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.LongStream;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;

/**
 * The minutes at which an item is due: five sets of numbers, each a bit mask. Where both day of month and day of week
 * are restricted, either of them suffices.
 *
 * @param text the fields as they were written
 */
public record CronPattern(String text, long minutes, long hours, long days, long months, long weekdays) {

    private static final Pattern WORD = Pattern.compile("\\S+");

    /** Reads a pattern: five fields with space between; what is wrong goes to the sink. */
    public static CronPattern parse(String text, ProblemSink problems) {
        List<MatchResult> fields = WORD.matcher(text).results().toList();
        if (fields.size() != CronField.ALL.size()) {
            problems.add(0, text, wrongCount(fields.size(), text.stripLeading().startsWith("@")));
            return new CronPattern(text, 0, 0, 0, 0, 0);
        }
        return parse(
                fields.stream().map(MatchResult::group).toList(),
                fields.stream().mapToInt(MatchResult::start).toArray(),
                problems);
    }

    /**
     * Returns what is wrong with a pattern that has not five fields.
     *
     * @param macro whether it begins with {@code @}
     */
    public static String wrongCount(int fields, boolean macro) {
        String required = "must be minute, hour, day of month, month, day of week";
        if (macro) {
            return required + ", not a macro; " + CronField.OTHER_GRAMMAR;
        }
        return fields > CronField.ALL.size()
                ? required + ": five fields, no seconds and no years, not " + fields + "; " + CronField.OTHER_GRAMMAR
                : required + ", but has " + fields + (fields == 1 ? " field" : " fields");
    }

    /** Reads five fields, of which each starts at the given column; what is wrong goes to the sink. */
    public static CronPattern parse(List<String> fields, int[] columns, ProblemSink problems) {
        long[] sets = new long[fields.size()];
        for (int i = 0; i < sets.length; i++) {
            sets[i] = CronField.ALL.get(i).parse(fields.get(i), columns[i], problems);
        }
        CronPattern pattern = new CronPattern(String.join(" ", fields), sets[0], sets[1], sets[2], sets[3], sets[4]);
        if (LongStream.of(sets).noneMatch(set -> set == 0) && pattern.isNeverDue()) {
            problems.add(
                    columns[2],
                    fields.get(2),
                    "day of month must occur in month " + fields.get(3) + ", which has none of these days: the item"
                            + " would never be due");
        }
        return pattern;
    }

    private boolean isNeverDue() {
        return Long.bitCount(weekdays) == 7
                && Stream.of(Month.values())
                        .filter(month -> has(months, month.getValue()))
                        .allMatch(month -> Long.numberOfTrailingZeros(days) > month.maxLength());
    }

    /** Returns whether days of the month and days of the week are both restricted, so that either of them suffices. */
    public boolean hasBothDays() {
        return Long.bitCount(days) < 31 && Long.bitCount(weekdays) < 7;
    }

    /** Returns whether an item is due in the minute of the given local time. */
    public boolean matches(LocalDateTime time) {
        return has(minutes, time.getMinute()) && has(hours, time.getHour()) && matchesDate(time.toLocalDate());
    }

    /** Returns the first of these local times, a minute apart, that matches; null if there is none before the end. */
    @Nullable LocalDateTime next(LocalDateTime from, LocalDateTime end) {
        LocalDateTime time = from;
        while (time.isBefore(end)) {
            if (!has(months, time.getMonthValue())) {
                time = time.plusMonths(1).withDayOfMonth(1).withHour(0).withMinute(0);
            } else if (!matchesDate(time.toLocalDate())) {
                time = time.plusDays(1).withHour(0).withMinute(0);
            } else if (!has(hours, time.getHour())) {
                time = time.plusHours(1).withMinute(0);
            } else if (!has(minutes, time.getMinute())) {
                time = time.plusMinutes(1);
            } else {
                return time;
            }
        }
        return null;
    }

    /** Returns whether the pattern leaves the hour open. */
    boolean isOpenInHours() {
        return Long.bitCount(hours) == 24;
    }

    /** Returns whether an item may be due on the given day. */
    boolean matchesDate(LocalDate date) {
        boolean day = has(days, date.getDayOfMonth());
        boolean weekday = has(weekdays, date.getDayOfWeek().getValue() % 7);
        return has(months, date.getMonthValue()) && (hasBothDays() ? day || weekday : day && weekday);
    }

    private static boolean has(long set, int value) {
        return (set >>> value & 1) == 1;
    }
}
