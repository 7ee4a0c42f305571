package dev.pgworker.dashboard;

import java.util.List;
import java.util.Locale;
import java.util.TreeSet;
import java.util.function.IntFunction;

/**
 * The numbers that one field of a pattern allows.
 *
 * @param min the smallest number that there could be
 * @param range how many numbers there could be
 */
record CronField(TreeSet<Integer> values, int min, int range) {

    private static final String[] MONTHS = {
        "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"
    };
    private static final String[] DAYS = {"MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"};

    private static final int SUNDAY = 7;

    /** Reads a field of a crontab. */
    static CronField ofCrontab(String text, int min, int max) {
        TreeSet<Integer> values = new TreeSet<>();
        for (String part : text.split(",", -1)) {
            if (part.startsWith("*")) {
                add(values, min, max, part.length() == 1 ? 1 : clamped(part.substring(2), max + 1));
            } else {
                String[] ends = part.split("-", 2);
                int from = clamped(ends[0], max + 1);
                int to = clamped(ends[ends.length - 1], max + 1);
                for (int i = from; i <= to; i++) {
                    // Sunday is 0 and also 7.
                    values.add(i > max ? min : i);
                }
            }
        }
        return new CronField(values, min, max - min + 1);
    }

    /** Reads a field of an expression of Spring's that has only numbers. */
    static CronField ofSpring(String text, int min, int max) {
        TreeSet<Integer> values = new TreeSet<>();
        for (String part : text.split(",", -1)) {
            addPart(values, part, min, max);
        }
        return new CronField(values, min, max - min + 1);
    }

    /** Reads the months of an expression of Spring's. */
    static CronField monthsOfSpring(String text) {
        return ofSpring(ordinals(text, MONTHS), 1, 12);
    }

    /** Reads the days of the week of an expression of Spring's; Sunday is 0 here. */
    static CronField weekdaysOfSpring(String text) {
        TreeSet<Integer> values = new TreeSet<>();
        for (String part : weekdayOrdinals(text).split(",", -1)) {
            addPart(values, part, 1, SUNDAY);
        }
        if (values.remove(SUNDAY)) {
            values.add(0);
        }
        return new CronField(values, 0, SUNDAY);
    }

    /** Returns a field of days of the week with numbers in the place of names. */
    static String weekdayOrdinals(String text) {
        return ordinals(text, DAYS);
    }

    private static String ordinals(String text, String[] names) {
        String replaced = text.toUpperCase(Locale.ROOT);
        for (int i = 0; i < names.length; i++) {
            replaced = replaced.replace(names[i], Integer.toString(i + 1));
        }
        return replaced;
    }

    private static void addPart(TreeSet<Integer> values, String part, int min, int max) {
        int slash = part.indexOf('/');
        String range = slash < 0 ? part : part.substring(0, slash);
        int step = slash < 0 ? 1 : Integer.parseInt(part.substring(slash + 1));
        int hyphen = range.indexOf('-');
        if (range.equals("*") || range.equals("?")) {
            add(values, min, max, step);
        } else if (hyphen >= 0) {
            int from = Integer.parseInt(range.substring(0, hyphen));
            // A range may begin with Sunday, as 7, too.
            add(
                    values,
                    from == SUNDAY && max == SUNDAY ? 0 : from,
                    Integer.parseInt(range.substring(hyphen + 1)),
                    step);
        } else {
            int from = Integer.parseInt(range);
            add(values, from, slash < 0 ? from : max, step);
        }
    }

    private static void add(TreeSet<Integer> values, int from, int to, int step) {
        for (int i = from; i <= to; i += step) {
            values.add(i);
        }
    }

    private static int clamped(String digits, int most) {
        String significant = digits.replaceFirst("^0+(?=.)", "");
        return significant.length() > 4 ? most : Math.min(Integer.parseInt(significant), most);
    }

    boolean isAll() {
        return values.size() == range;
    }

    boolean isOnly(int value) {
        return values.size() == 1 && values.first() == value;
    }

    /** Returns n if the field is every n-th number; 0 if it is not, or if the last step is another one. */
    int step() {
        if (values.size() < 2 || values.first() != min) {
            return 0;
        }
        int step = values.higher(min) - min;
        for (int i = min; i < min + range; i++) {
            if (values.contains(i) != ((i - min) % step == 0)) {
                return 0;
            }
        }
        return range % step == 0 ? step : 0;
    }

    List<String> names(IntFunction<String> name) {
        return values.stream().map(name::apply).toList();
    }

    /** Says several numbers that follow each other as a range. */
    String join(String one, String many, IntFunction<String> name) {
        int first = values.first();
        int last = values.last();
        if (values.size() > 2 && last - first + 1 == values.size()) {
            return many + name.apply(first) + " to " + name.apply(last);
        }
        return (values.size() == 1 ? one : many) + joined(names(name));
    }

    static String joined(List<String> words) {
        return words.size() == 1
                ? words.get(0)
                : String.join(", ", words.subList(0, words.size() - 1)) + " and " + words.get(words.size() - 1);
    }
}
