package dev.pgworker.dashboard;

import java.time.Duration;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.TreeSet;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.scheduling.support.CronExpression;

import dev.pgworker.crontab.CronItem;
import dev.pgworker.schedule.Recurrence;

import static org.assertj.core.api.Assertions.assertThat;

class CronWordsTest {

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "* * * * *|Every minute",
                "*/5 * * * *|Every 5 minutes",
                "*/7 * * * *|Every hour at minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56",
                "0 * * * *|Every hour at minute 0",
                "15,45 * * * *|Every hour at minutes 15 and 45",
                "0 4 * * *|At 04:00 every day",
                "30 8,20 * * *|At 08:30 and 20:30 every day",
                "0 */6 * * *|At 00:00, 06:00, 12:00 and 18:00 every day",
                "5 */2 * * *|Every 2 hours at minute 5 every day",
                "*/15 9-17 * * 1-5|Every 15 minutes of the hours 09 to 17 Monday to Friday",
                "* 4 * * *|Every minute of the hour 04",
                "0 9 * * 1|At 09:00 on Monday",
                "0 9 * * 0|At 09:00 on Sunday",
                "0 9 * * 7|At 09:00 on Sunday",
                "0 9 * * 6,7|At 09:00 on Sunday and Saturday",
                "0 0 1 * *|At 00:00 on day 1 of the month",
                "0 0 1,15 * *|At 00:00 on days 1 and 15 of the month",
                "0 0 13 * 5|At 00:00 on day 13 of the month and on Friday",
                "0 0 29 2 *|At 00:00 on day 29 of the month in February",
                "0 12 * 6-8 *|At 12:00 every day in June, July and August",
                "00 004 * * *|At 04:00 every day",
                "*/99999999999 5 * * *|At 05:00 every day",
                "* * * * 1-5|Every minute Monday to Friday",
            })
    void describes(String pattern, String words) {
        assertThat(CronItem.of("t").pattern(pattern).build().schedule()).isEqualTo(pattern);
        assertThat(CronWords.describe(pattern, null)).isEqualTo(words);
    }

    @ParameterizedTest
    @CsvSource({"Europe/Berlin", "UTC", "+02:00"})
    void namesTheZone(String zone) {
        assertThat(CronWords.describe("0 4 * * *", ZoneId.of(zone))).isEqualTo("At 04:00 every day (" + zone + ")");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "* * * * * *|Every second",
                "*/10 * * * * *|Every 10 seconds",
                "*/10 0-5 4 * * *|Every 10 seconds of minutes 0 to 5 of the hour 04",
                "* 30 * * * MON|Every second of minute 30 of every hour on Monday",
                "0 * * * * *|Every minute",
                "15 * * * * ?|Every minute, at second 15",
                "0,20 */5 * * * *|Every 5 minutes, at seconds 0 and 20",
                "0 5/15 * * * *|Every hour at minutes 5, 20, 35 and 50",
                "0 0 4 * * *|At 04:00 every day",
                "30 0 4 * * *|At 04:00:30 every day",
                "0 0 8-18/2 * * MON-FRI|At 08:00, 10:00, 12:00, 14:00, 16:00 and 18:00 Monday to Friday",
                "0 0 9 * * SUN|At 09:00 on Sunday",
                "0 0 9 * * 0|At 09:00 on Sunday",
                "0 0 9 * * 7|At 09:00 on Sunday",
                "0 0 9 * * 6-7|At 09:00 on Sunday and Saturday",
                "0 0 9 * jan,JUL mon#1|At 09:00 on the first Monday of the month in January and July",
                "0 0 9 * * 5L|At 09:00 on the last Friday of the month",
                "0 0 9 ? * TUEL|At 09:00 on the last Tuesday of the month",
                "0 0 9 * * MON,FRI#2|At 09:00 on Monday and the second Friday of the month",
                "0 0 0 L * *|At 00:00 on the last day of the month",
                "0 0 0 L-1 * *|At 00:00 on the last day but one of the month",
                "0 0 0 L-3 * *|At 00:00 on the day 3 days before the last one of the month",
                "0 0 0 LW * ?|At 00:00 on the last weekday of the month",
                "0 0 0 15W * ?|At 00:00 on the weekday nearest to day 15 of the month",
                "0 0 0 1,L * *|At 00:00 on day 1 and the last day of the month",
                "0 0 0 13 * FRI|At 00:00 on Friday, only on day 13 of the month",
                "0 0 0 1-7 * 2|At 00:00 on Tuesday, only on days 1 to 7 of the month",
                "0 0 0 29 2 *|At 00:00 on day 29 of the month in February",
                "@yearly|At 00:00 on day 1 of the month in January",
                "@Monthly|At 00:00 on day 1 of the month",
                "@weekly|At 00:00 on Sunday",
                "@midnight|At 00:00 every day",
                "@hourly|Every hour at minute 0",
            })
    void describesWhatSpringReads(String expression, String words) {
        assertThat(CronExpression.isValidExpression(expression)).isTrue();
        assertThat(CronWords.describeSpring(expression, null)).isEqualTo(words);
    }

    /** Read as Spring does, or the words would be those of other times. */
    @Test
    void readsNumbersAsSpringDoes() {
        Random random = new Random(19);
        for (int i = 0; i < 300; i++) {
            String field = field(random, 59);
            CronExpression expression = CronExpression.parse(field + " * * * * *");
            LocalDateTime time = LocalDateTime.of(2026, 1, 1, 0, 0).minusSeconds(1);
            TreeSet<Integer> due = new TreeSet<>();
            for (int run = 0; run < 60; run++) {
                time = expression.next(time);
                due.add(time.getSecond());
            }
            assertThat(CronField.ofSpring(field, 0, 59).values()).as(field).isEqualTo(due);
        }
        for (int i = 0; i < 100; i++) {
            String field = field(random, 7);
            CronExpression expression = CronExpression.parse("0 0 0 * * " + field);
            LocalDateTime time = LocalDateTime.of(2026, 1, 1, 0, 0);
            TreeSet<Integer> due = new TreeSet<>();
            for (int run = 0; run < 7; run++) {
                time = expression.next(time);
                due.add(time.getDayOfWeek().getValue() % 7);
            }
            assertThat(CronField.weekdaysOfSpring(field).values()).as(field).isEqualTo(due);
        }
    }

    private static String field(Random random, int max) {
        List<String> parts = new ArrayList<>();
        for (int part = random.nextInt(1, 4); part > 0; part--) {
            int from = random.nextInt(max + 1);
            int to = random.nextInt(from, max + 1);
            String step = random.nextBoolean() ? "/" + random.nextInt(1, 9) : "";
            parts.add(
                    switch (random.nextInt(4)) {
                        case 0 -> "*" + step;
                        case 1 -> from + "-" + to + step;
                        default -> from + step;
                    });
        }
        return String.join(",", parts);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "PT1S|1 second",
                "PT10S|10 seconds",
                "PT90M|90 minutes",
                "PT2H1S|2 hours 1 second",
                "PT72H|3 days",
                "PT25H1M|1 day 1 hour 1 minute",
                "PT1.5S|1.5 seconds",
                "PT1H0.000001S|about 1 hour",
                "PT87600H|3650 days",
            })
    void saysHowOften(String every, String words) {
        Duration duration = Duration.parse(every);
        assertThat(RecurrenceWords.describe(Recurrence.fixedRate(duration, Instant.EPOCH)))
                .isEqualTo("Every " + words);
        assertThat(RecurrenceWords.describe(Recurrence.fixedDelay(duration)))
                .isEqualTo(words + " after the end of the previous job");
    }

    @Test
    void tellsTheGrammarsApart() {
        ZoneId zone = ZoneId.of("Europe/Berlin");
        assertThat(RecurrenceWords.describe(Recurrence.crontab("0 0 13 * 5", zone)))
                .isEqualTo("At 00:00 on day 13 of the month and on Friday (Europe/Berlin)");
        assertThat(RecurrenceWords.describe(Recurrence.cron("0 0 0 13 * 5", zone)))
                .isEqualTo("At 00:00 on Friday, only on day 13 of the month (Europe/Berlin)");
    }
}
