package dev.pgworker.dashboard;

import java.time.DayOfWeek;
import java.time.Month;
import java.time.format.TextStyle;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.TreeSet;

/**
 * The days that a pattern allows, in words.
 *
 * @param ofMonth such as "day 13 of the month"; empty for every day
 * @param ofWeek such as " on Friday"; empty for every day
 * @param months such as " in May"; empty for every month
 * @param both whether a day has to be both of that month and of that week; it has to be either otherwise
 */
record CronDays(String ofMonth, String ofWeek, String months, boolean both) {

    private static final TreeSet<Integer> WORKING = new TreeSet<>(List.of(1, 2, 3, 4, 5));
    private static final String[] ORDINALS = {"first", "second", "third", "fourth", "fifth"};

    /** Reads the last three fields of a crontab: where both kinds of days are restricted, either of them suffices. */
    static CronDays ofCrontab(String days, String months, String weekdays) {
        CronField ofMonth = CronField.ofCrontab(days, 1, 31);
        CronField ofWeek = CronField.ofCrontab(weekdays, 0, 6);
        return new CronDays(
                ofMonth.isAll() ? "" : numbers(ofMonth) + " of the month",
                ofWeek.isAll() ? "" : weekdays(ofWeek),
                months(CronField.ofCrontab(months, 1, 12)),
                false);
    }

    /** Reads the last three fields of an expression of Spring's: a day must be of both kinds. */
    static CronDays ofSpring(String days, String months, String weekdays) {
        return new CronDays(
                daysOfSpring(days.toUpperCase(Locale.ROOT)),
                weekdaysOfSpring(CronField.weekdayOrdinals(weekdays)),
                months(CronField.monthsOfSpring(months)),
                true);
    }

    /**
     * Returns the words that follow those of the time.
     *
     * @param often whether the time is so often that it goes without saying that it is every day
     */
    String words(boolean often) {
        if (ofMonth.isEmpty()) {
            return (ofWeek.isEmpty() && !often ? " every day" : ofWeek) + months;
        }
        if (ofWeek.isEmpty()) {
            return " on " + ofMonth + months;
        }
        return (both ? ofWeek + ", only on " + ofMonth : " on " + ofMonth + " and" + ofWeek) + months;
    }

    private static String daysOfSpring(String text) {
        List<String> special = new ArrayList<>();
        List<String> plain = new ArrayList<>();
        for (String part : text.split(",", -1)) {
            if (part.indexOf('L') >= 0 || part.indexOf('W') >= 0) {
                special.add(specialDay(part));
            } else {
                plain.add(part);
            }
        }
        if (!plain.isEmpty()) {
            CronField numbers = CronField.ofSpring(String.join(",", plain), 1, 31);
            if (numbers.isAll()) {
                return "";
            }
            special.add(0, numbers(numbers));
        }
        return CronField.joined(special) + " of the month";
    }

    private static String specialDay(String part) {
        if (part.equals("LW")) {
            return "the last weekday";
        }
        if (part.endsWith("W")) {
            return "the weekday nearest to day " + Integer.parseInt(part.substring(0, part.length() - 1));
        }
        int before = part.equals("L") ? 0 : Integer.parseInt(part.substring(2));
        return switch (before) {
            case 0 -> "the last day";
            case 1 -> "the last day but one";
            default -> "the day " + before + " days before the last one";
        };
    }

    private static String weekdaysOfSpring(String text) {
        List<String> special = new ArrayList<>();
        List<String> plain = new ArrayList<>();
        for (String part : text.split(",", -1)) {
            int hash = part.indexOf('#');
            if (hash >= 0) {
                int ordinal = Integer.parseInt(part.substring(hash + 1));
                special.add("the " + ORDINALS[ordinal - 1] + " " + weekday(Integer.parseInt(part.substring(0, hash))));
            } else if (part.endsWith("L")) {
                special.add("the last " + weekday(Integer.parseInt(part.substring(0, part.length() - 1))));
            } else {
                plain.add(part);
            }
        }
        CronField numbers = plain.isEmpty() ? null : CronField.weekdaysOfSpring(String.join(",", plain));
        if (numbers != null && numbers.isAll()) {
            return "";
        }
        if (special.isEmpty() && numbers != null) {
            return weekdays(numbers);
        }
        List<String> all = new ArrayList<>(numbers == null ? List.of() : numbers.names(CronDays::weekday));
        all.addAll(special);
        return " on " + CronField.joined(all) + " of the month";
    }

    private static String numbers(CronField days) {
        return days.join("day ", "days ", Integer::toString);
    }

    private static String weekdays(CronField days) {
        return days.values().equals(WORKING)
                ? " Monday to Friday"
                : " on " + CronField.joined(days.names(CronDays::weekday));
    }

    private static String weekday(int day) {
        return DayOfWeek.of(day == 0 ? 7 : day).getDisplayName(TextStyle.FULL, Locale.ENGLISH);
    }

    private static String months(CronField months) {
        return months.isAll()
                ? ""
                : " in "
                        + CronField.joined(
                                months.names(month -> Month.of(month).getDisplayName(TextStyle.FULL, Locale.ENGLISH)));
    }
}
