package dev.pgworker.internal.pattern;

import java.time.DayOfWeek;
import java.time.Month;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** One of the five fields of a pattern. */
public record CronField(String name, int min, int max) {

    public static final CronField MINUTE = new CronField("minute", 0, 59);
    public static final CronField HOUR = new CronField("hour", 0, 23);
    public static final CronField DAY_OF_MONTH = new CronField("day of month", 1, 31);
    public static final CronField MONTH = new CronField("month", 1, 12);
    public static final CronField DAY_OF_WEEK = new CronField("day of week", 0, 6);

    /** In the order of a pattern. */
    public static final List<CronField> ALL = List.of(MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK);

    /** Ends the message about another cron's grammar. */
    public static final String OTHER_GRAMMAR =
            "seconds, names, ? L W # and macros such as @daily are for schedules with Spring's grammar,"
                    + " @CronJob(cron = ...)";

    private static final Pattern PART = Pattern.compile("(?<a>[0-9]+)(-(?<b>[0-9]+))?|\\*(/(?<step>[0-9]+))?");
    private static final Pattern STEP_ELSEWHERE = Pattern.compile("[0-9]+(-[0-9]+)?/[0-9]+");
    private static final Pattern WORD = Pattern.compile("[a-zA-Z]+");

    /** Returns the values that the field allows, as bits; what is wrong goes to the sink. */
    public long parse(String text, int column, ProblemSink problems) {
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
            throw new IllegalArgumentException(reason(text));
        }
        if (text.startsWith("*")) {
            return steps(matcher.group("step") == null ? 1 : value(matcher.group("step")));
        }
        int from = value(matcher.group("a"));
        int to = matcher.group("b") == null ? from : value(matcher.group("b"));
        if (matcher.group("b") != null && to <= from) {
            throw new IllegalArgumentException("range must end above its start");
        }
        return range(from, to);
    }

    private String reason(String text) {
        Matcher word = WORD.matcher(text);
        if (word.find()) {
            String number = number(word.group())
                    .map(value -> ": " + word.group() + " is " + value)
                    .orElse(", not letters");
            return "must be " + min + " to " + last() + number + "; " + OTHER_GRAMMAR;
        }
        if (text.contains("?")) {
            return "must be * for any value, not ?; " + OTHER_GRAMMAR;
        }
        if (text.contains("#")) {
            return "must not contain #; " + OTHER_GRAMMAR;
        }
        if (STEP_ELSEWHERE.matcher(text).matches()) {
            return "must have a step after * only, as in */5; list the values instead";
        }
        return "must be " + min + " to " + last() + ", a range a-b, * or */n, several joined by commas";
    }

    /** Returns the number that a name means elsewhere. */
    private Optional<Integer> number(String word) {
        String upper = word.toUpperCase(Locale.ROOT);
        if (equals(MONTH)) {
            return Stream.of(Month.values())
                    .filter(month -> isNamed(upper, month.name()))
                    .map(Month::getValue)
                    .findFirst();
        }
        if (equals(DAY_OF_WEEK)) {
            return Stream.of(DayOfWeek.values())
                    .filter(day -> isNamed(upper, day.name()))
                    .map(day -> day.getValue() % 7)
                    .findFirst();
        }
        return Optional.empty();
    }

    private static boolean isNamed(String upper, String name) {
        return upper.equals(name) || upper.equals(name.substring(0, 3));
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
        if (from < min || to > last()) {
            throw new IllegalArgumentException("must be " + min + " to " + last());
        }
        long set = 0;
        for (int i = from; i <= to; i++) {
            set |= 1L << (i > max ? min : i);
        }
        return set;
    }

    /** Sunday is 0 and also 7. */
    private int last() {
        return max == 6 ? 7 : max;
    }

    /** Reads digits of any number; one out of every field's range stays so. */
    public static int value(String digits) {
        String significant = digits.replaceFirst("^0+(?=.)", "");
        return significant.length() > 9 ? Integer.MAX_VALUE : Integer.parseInt(significant);
    }
}
