package dev.pgworker.internal.pattern;

import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The minutes at which an item is due: five sets of numbers, each a bit mask. Where both day of month and day of week
 * are restricted, either of them suffices.
 *
 * @param text the fields as they were written
 */
public record CronPattern(String text, long minutes, long hours, long days, long months, long weekdays) {

    private static final List<Field> FIELDS = List.of(
            new Field("minute", 0, 59),
            new Field("hour", 0, 23),
            new Field("day of month", 1, 31),
            new Field("month", 1, 12),
            new Field("day of week", 0, 6));

    private static final Pattern WORD = Pattern.compile("\\S+");

    /** Reads a pattern: five fields with space between; what is wrong goes to the sink. */
    public static CronPattern parse(String text, ProblemSink problems) {
        List<MatchResult> fields = WORD.matcher(text).results().toList();
        if (fields.size() != FIELDS.size()) {
            problems.add(0, text, "must be minute, hour, day of month, month, day of week");
            return new CronPattern(text, 0, 0, 0, 0, 0);
        }
        return parse(
                fields.stream().map(MatchResult::group).toList(),
                fields.stream().mapToInt(MatchResult::start).toArray(),
                problems);
    }

    /** Reads five fields, of which each starts at the given column; what is wrong goes to the sink. */
    public static CronPattern parse(List<String> fields, int[] columns, ProblemSink problems) {
        long[] sets = new long[FIELDS.size()];
        for (int i = 0; i < sets.length; i++) {
            sets[i] = FIELDS.get(i).parse(fields.get(i), columns[i], problems);
        }
        return new CronPattern(String.join(" ", fields), sets[0], sets[1], sets[2], sets[3], sets[4]);
    }

    /** Tells whether an item is due in the minute of the given local time. */
    public boolean matches(LocalDateTime time) {
        return has(minutes, time.getMinute()) && has(hours, time.getHour()) && matchesDate(time.toLocalDate());
    }

    /** Tells whether the pattern leaves the hour open. */
    boolean isOpenInHours() {
        return Long.bitCount(hours) == 24;
    }

    /** Tells whether an item may be due on the given day. */
    boolean matchesDate(LocalDate date) {
        boolean day = has(days, date.getDayOfMonth());
        boolean weekday = has(weekdays, date.getDayOfWeek().getValue() % 7);
        boolean both = Long.bitCount(days) < 31 && Long.bitCount(weekdays) < 7;
        return has(months, date.getMonthValue()) && (both ? day || weekday : day && weekday);
    }

    private static boolean has(long set, int value) {
        return (set >>> value & 1) == 1;
    }

    private record Field(String name, int min, int max) {

        private static final Pattern PART = Pattern.compile("(?<a>[0-9]+)(-(?<b>[0-9]+))?|\\*(/(?<step>[0-9]+))?");

        long parse(String text, int column, ProblemSink problems) {
            long set = 0;
            int at = column;
            for (String part : text.split(",", -1)) {
                try {
                    set |= part(part);
                } catch (IllegalArgumentException e) {
                    problems.add(at, part, name + " " + e.getMessage());
                }
                at += part.length() + 1;
            }
            return set;
        }

        private long part(String text) {
            Matcher matcher = PART.matcher(text);
            if (!matcher.matches()) {
                throw new IllegalArgumentException("must be a number, a range a-b, * or */n, several joined by commas");
            }
            if (text.startsWith("*")) {
                return steps(matcher.group("step") == null ? 1 : number(matcher.group("step")));
            }
            int from = number(matcher.group("a"));
            int to = matcher.group("b") == null ? from : number(matcher.group("b"));
            if (matcher.group("b") != null && to <= from) {
                throw new IllegalArgumentException("range must end above its start");
            }
            return range(from, to);
        }

        private long steps(int step) {
            if (step == 0) {
                throw new IllegalArgumentException("step must be 1 or greater");
            }
            long set = 0;
            for (long i = min; i <= max; i += step) {
                set |= 1L << i;
            }
            return set;
        }

        private long range(int from, int to) {
            // Sunday is 0 and also 7.
            int last = max == 6 ? 7 : max;
            if (from < min || to > last) {
                throw new IllegalArgumentException("must be " + min + " to " + last);
            }
            long set = 0;
            for (int i = from; i <= to; i++) {
                set |= 1L << (i > max ? min : i);
            }
            return set;
        }

        /** Reads digits of any number; one out of every field's range stays so. */
        private static int number(String digits) {
            String significant = digits.replaceFirst("^0+(?=.)", "");
            return significant.length() > 9 ? Integer.MAX_VALUE : Integer.parseInt(significant);
        }
    }
}
