package dev.pgworker.dashboard;

import java.time.DayOfWeek;
import java.time.Month;
import java.time.ZoneId;
import java.time.format.TextStyle;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.TreeSet;
import java.util.function.IntFunction;

import org.jspecify.annotations.Nullable;

/** A schedule in words, such as "At 04:00 every day (Europe/Berlin)". */
final class CronWords {

    private static final int MOST_TIMES = 6;

    private final Field minutes;
    private final Field hours;
    private final Field days;
    private final Field months;
    private final Field weekdays;

    private CronWords(String[] fields) {
        minutes = Field.of(fields[0], 0, 59);
        hours = Field.of(fields[1], 0, 23);
        days = Field.of(fields[2], 1, 31);
        months = Field.of(fields[3], 1, 12);
        weekdays = Field.of(fields[4], 0, 6);
    }

    /**
     * Describes a schedule.
     *
     * @param pattern minute, hour, day of month, month and day of week, as a {@code CronItem} has it
     */
    static String describe(String pattern, @Nullable ZoneId zone) {
        CronWords words = new CronWords(pattern.strip().split("\\s+"));
        String text = words.time() + words.day() + words.month();
        return text + (zone == null ? "" : " (" + zone.getId() + ")");
    }

    private String time() {
        if (hours.isAll()) {
            return everyHour();
        }
        if (minutes.isAll()) {
            return "Every minute " + hours.join("of the hour ", "of the hours ", CronWords::twoDigits);
        }
        if (minutes.values.size() * hours.values.size() <= MOST_TIMES) {
            List<String> times = new ArrayList<>();
            for (int hour : hours.values) {
                for (int minute : minutes.values) {
                    times.add(twoDigits(hour) + ":" + twoDigits(minute));
                }
            }
            return "At " + joined(times);
        }
        if (hours.step() > 1 && minutes.values.size() == 1) {
            return "Every " + hours.step() + " hours at minute " + minutes.values.first();
        }
        String often = minutes.step() > 1
                ? "Every " + minutes.step() + " minutes"
                : "At " + minutes.join("minute ", "minutes ", Integer::toString);
        return often + " " + hours.join("of the hour ", "of the hours ", CronWords::twoDigits);
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

    /** Where both are restricted, either of them suffices. */
    private String day() {
        String ofWeek = weekday();
        if (days.isAll()) {
            boolean often = hours.isAll() || minutes.isAll();
            return weekdays.isAll() ? (often ? "" : " every day") : ofWeek;
        }
        String ofMonth = " on " + days.join("day ", "days ", Integer::toString) + " of the month";
        return weekdays.isAll() ? ofMonth : ofMonth + " and" + ofWeek;
    }

    private String weekday() {
        if (weekdays.values.equals(new TreeSet<>(List.of(1, 2, 3, 4, 5)))) {
            return " Monday to Friday";
        }
        return " on "
                + joined(weekdays.names(
                        day -> DayOfWeek.of(day == 0 ? 7 : day).getDisplayName(TextStyle.FULL, Locale.ENGLISH)));
    }

    private String month() {
        return months.isAll()
                ? ""
                : " in "
                        + joined(months.names(month -> Month.of(month).getDisplayName(TextStyle.FULL, Locale.ENGLISH)));
    }

    private static String twoDigits(int number) {
        return number < 10 ? "0" + number : Integer.toString(number);
    }

    private static String joined(List<String> words) {
        return words.size() == 1
                ? words.get(0)
                : String.join(", ", words.subList(0, words.size() - 1)) + " and " + words.get(words.size() - 1);
    }

    /**
     * The numbers that a field allows.
     *
     * @param range how many there could be
     */
    private record Field(TreeSet<Integer> values, int min, int range) {

        static Field of(String text, int min, int max) {
            TreeSet<Integer> values = new TreeSet<>();
            for (String part : text.split(",", -1)) {
                if (part.startsWith("*")) {
                    int step = part.length() == 1 ? 1 : clamped(part.substring(2), max + 1);
                    for (int i = min; i <= max; i += step) {
                        values.add(i);
                    }
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
            return new Field(values, min, max - min + 1);
        }

        private static int clamped(String digits, int most) {
            String significant = digits.replaceFirst("^0+(?=.)", "");
            return significant.length() > 4 ? most : Math.min(Integer.parseInt(significant), most);
        }

        boolean isAll() {
            return values.size() == range;
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
    }
}
