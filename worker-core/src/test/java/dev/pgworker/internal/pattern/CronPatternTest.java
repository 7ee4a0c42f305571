package dev.pgworker.internal.pattern;

import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import static org.assertj.core.api.Assertions.assertThat;

/** Which minutes a pattern names, against a second and slower reading of the same rules. */
@Tag("any-postgres")
class CronPatternTest {

    private static final int[] MIN = {0, 0, 1, 1, 0};
    private static final int[] MAX = {59, 23, 31, 12, 6};

    @Test
    @Tag("thorough")
    void matchesLikeTheReferenceThroughALeapYear() {
        Random random = new Random(20240229);
        for (int i = 0; i < 40; i++) {
            List<String> fields = new ArrayList<>();
            for (int field = 0; field < 5; field++) {
                fields.add(randomField(random, MIN[field], field == 4 ? 7 : MAX[field]));
            }
            CronPattern pattern = parse(fields, new ArrayList<>());
            List<Set<Integer>> sets = new ArrayList<>();
            for (int field = 0; field < 5; field++) {
                sets.add(values(fields.get(field), field));
            }
            LocalDateTime end = LocalDateTime.of(2025, 1, 1, 0, 0);
            for (LocalDateTime t = LocalDateTime.of(2024, 1, 1, 0, 0); t.isBefore(end); t = t.plusMinutes(1)) {
                if (pattern.matches(t) != expected(sets, t)) {
                    throw new AssertionError(fields + " at " + t);
                }
            }
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "60 * * * *",
                "* 24 * * *",
                "* * 0 * *",
                "* * * 13 *",
                "* * * * 8",
                "5-5 * * * *",
                "9-3 * * * *",
                "*/0 * * * *",
                ", * * * *",
                "1-2/3 * * * *",
                "99999999999 * * * *",
                "-1 * * * *"
            })
    void rejects(String pattern) {
        List<String> problems = new ArrayList<>();
        parse(List.of(pattern.split(" ")), problems);
        assertThat(problems).isNotEmpty();
    }

    @Test
    void tellsEveryMistakeWithItsColumn() {
        List<String> problems = new ArrayList<>();
        CronPattern.parse(
                List.of("1,60", "*", "*", "0", "*"),
                new int[] {0, 5, 7, 9, 11},
                (column, text, message) -> problems.add(column + " " + text + " " + message));
        assertThat(problems).containsExactly("2 60 minute must be 0 to 59", "9 0 month must be 1 to 12");
    }

    private static CronPattern parse(List<String> fields, List<String> problems) {
        return CronPattern.parse(fields, new int[5], (column, text, message) -> problems.add(message));
    }

    private static boolean expected(List<Set<Integer>> sets, LocalDateTime t) {
        boolean day = sets.get(2).contains(t.getDayOfMonth());
        boolean weekday = sets.get(4).contains(t.getDayOfWeek().getValue() % 7);
        boolean anyDay = sets.get(2).size() == 31;
        boolean anyWeekday = sets.get(4).size() == 7;
        boolean dayFits = anyDay ? weekday : anyWeekday ? day : day || weekday;
        return dayFits
                && sets.get(0).contains(t.getMinute())
                && sets.get(1).contains(t.getHour())
                && sets.get(3).contains(t.getMonthValue());
    }

    private static Set<Integer> values(String text, int field) {
        Set<Integer> values = new TreeSet<>();
        for (String part : text.split(",")) {
            if (part.startsWith("*")) {
                int step = part.length() > 1 ? Integer.parseInt(part.substring(2)) : 1;
                for (int v = MIN[field]; v <= MAX[field]; v++) {
                    if ((v - MIN[field]) % step == 0) {
                        values.add(v);
                    }
                }
                continue;
            }
            String[] ends = part.split("-");
            for (int v = Integer.parseInt(ends[0]); v <= Integer.parseInt(ends[ends.length - 1]); v++) {
                values.add(field == 4 && v == 7 ? 0 : v);
            }
        }
        return values;
    }

    private static String randomField(Random random, int min, int max) {
        List<String> parts = new ArrayList<>();
        for (int i = random.nextInt(2); i >= 0; i--) {
            int a = min + random.nextInt(max - min);
            parts.add(
                    switch (random.nextInt(4)) {
                        case 0 -> "*";
                        case 1 -> "*/" + (1 + random.nextInt(max));
                        case 2 -> Integer.toString(a);
                        default -> a + "-" + (a + 1 + random.nextInt(max - a));
                    });
        }
        return String.join(",", parts);
    }
}
