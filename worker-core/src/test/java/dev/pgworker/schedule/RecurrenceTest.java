package dev.pgworker.schedule;

import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.time.zone.ZoneOffsetTransition;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import dev.pgworker.crontab.CronItem;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

@Tag("any-postgres")
class RecurrenceTest {

    private static final ZoneId UTC = ZoneOffset.UTC;
    private static final ZoneId BERLIN = ZoneId.of("Europe/Berlin");
    private static final Instant SOME = Instant.parse("2026-05-01T00:00:00Z");

    private static List<String> due(Recurrence recurrence, ZoneId zone, String after, int count) {
        List<String> due = new ArrayList<>();
        Instant next = Instant.parse(after);
        for (int i = 0; i < count; i++) {
            next = recurrence.nextDue(next);
            due.add(OffsetDateTime.ofInstant(next, zone).toString());
        }
        return due;
    }

    @Test
    void whatDoesNotExistIsTheMomentOfTheChangeAndWhatExistsTwiceIsTheFirst() {
        Recurrence daily = Recurrence.cron("0 30 2 * * *", BERLIN);
        assertThat(due(daily, BERLIN, "2026-03-27T12:00:00Z", 3))
                .containsExactly("2026-03-28T02:30+01:00", "2026-03-29T03:00+02:00", "2026-03-30T02:30+02:00");
        assertThat(due(daily, BERLIN, "2026-10-24T12:00:00Z", 2))
                .containsExactly("2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00");
        ZoneId saoPaulo = ZoneId.of("America/Sao_Paulo");
        assertThat(due(Recurrence.cron("@daily", saoPaulo), saoPaulo, "2018-11-03T12:00:00Z", 2))
                .containsExactly("2018-11-04T01:00-02:00", "2018-11-05T00:00-02:00");
        ZoneId apia = ZoneId.of("Pacific/Apia");
        assertThat(due(Recurrence.cron("0 0 12 * * *", apia), apia, "2011-12-29T12:00:00Z", 3))
                .containsExactly("2011-12-29T12:00-10:00", "2011-12-31T00:00+14:00", "2011-12-31T12:00+14:00");
    }

    @Test
    void whatIsDueInEveryHourFollowsTheElapsedTime() {
        assertThat(due(Recurrence.cron("@hourly", BERLIN), BERLIN, "2026-10-24T23:30:00Z", 3))
                .containsExactly("2026-10-25T02:00+02:00", "2026-10-25T02:00+01:00", "2026-10-25T03:00+01:00");
        ZoneId lordHowe = ZoneId.of("Australia/Lord_Howe");
        assertThat(due(Recurrence.cron("0 */15 0-23 * * *", lordHowe), lordHowe, "2026-04-04T14:30:00Z", 4))
                .containsExactly(
                        "2026-04-05T01:45+11:00",
                        "2026-04-05T01:30+10:30",
                        "2026-04-05T01:45+10:30",
                        "2026-04-05T02:00+10:30");
    }

    /** The crontab's own word on each minute is the model. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "UTC",
                "Europe/Berlin",
                "America/New_York",
                "Australia/Lord_Howe",
                "America/Sao_Paulo",
                "Pacific/Apia",
                "Asia/Kathmandu",
                "Africa/Casablanca",
                "Europe/Dublin",
                "Antarctica/Troll",
                "America/Nuuk"
            })
    void bothGrammarsAgreeWithEachMinuteAroundEveryChangeOfTheClocks(String id) {
        ZoneId zone = ZoneId.of(id);
        Random random = new Random(id.hashCode());
        for (Instant around : changes(zone)) {
            String fields = someFields(random);
            CronItem model = CronItem.of("t").pattern(fields).zone(zone).build();
            Recurrence crontab = Recurrence.crontab(fields, zone);
            Recurrence cron = Recurrence.cron("0 " + fields, zone);
            Instant begin = around.minus(random.nextInt(26), ChronoUnit.HOURS).plusSeconds(random.nextInt(7));
            Instant expected = firstDueMinute(model, begin, around.plus(2, ChronoUnit.DAYS));
            if (expected != null) {
                assertThat(crontab.nextDue(begin))
                        .as("crontab %s in %s after %s", fields, id, begin)
                        .isEqualTo(expected);
                assertThat(cron.nextDue(begin))
                        .as("cron %s in %s after %s", fields, id, begin)
                        .isEqualTo(expected);
            }
        }
    }

    private static List<Instant> changes(ZoneId zone) {
        List<Instant> changes = new ArrayList<>(List.of(SOME));
        ZoneOffsetTransition change = zone.getRules().nextTransition(Instant.parse("1995-01-01T00:00:00Z"));
        while (change != null && changes.size() < 100) {
            changes.add(change.getInstant());
            change = zone.getRules().nextTransition(change.getInstant());
        }
        return changes;
    }

    private static String someFields(Random random) {
        String minute = List.of("*", "*/7", "0", "30", "15,45", "59").get(random.nextInt(6));
        String hour = List.of("*", "0-23", "2", "0", "1-3", "*/2", "23", "12").get(random.nextInt(8));
        return minute + " " + hour + " "
                + List.of("* * *", "* * 0", "28-31 * *", "* 3,10 *", "* * 6").get(random.nextInt(5));
    }

    private static Instant firstDueMinute(CronItem model, Instant after, Instant end) {
        Instant minute = after.truncatedTo(ChronoUnit.MINUTES).plusSeconds(60);
        while (minute.isBefore(end)) {
            if (model.isDueAt(minute)) {
                return minute;
            }
            minute = minute.plusSeconds(60);
        }
        return null;
    }

    @Test
    void followsItsTimesThroughYearsWithoutALoopOrAStepBack() {
        for (String zone : List.of("Europe/Berlin", "America/Sao_Paulo", "Pacific/Apia", "Africa/Casablanca")) {
            for (String expression : List.of("0 30 2 * * *", "0 0 * * * *", "*/30 15 1-3 ? * SUN", "0 0 0 L * *")) {
                Recurrence recurrence = Recurrence.cron(expression, ZoneId.of(zone));
                Instant last = Instant.parse("2009-01-01T00:00:00Z");
                for (int i = 0; i < 3_000 && last.isBefore(Instant.parse("2020-01-01T00:00:00Z")); i++) {
                    Instant next = recurrence.nextDue(last);
                    assertThat(next).as("%s in %s", expression, zone).isAfter(last);
                    last = next;
                }
            }
        }
    }

    @Test
    void takesSpringsGrammar() {
        assertThat(due(Recurrence.cron("0 0 8 ? * MON#1", UTC), UTC, "2026-05-01T00:00:00Z", 2))
                .containsExactly("2026-05-04T08:00Z", "2026-06-01T08:00Z");
        assertThat(due(Recurrence.cron("15  0 0 LW * ?", UTC), UTC, "2026-05-01T00:00:00Z", 1))
                .containsExactly("2026-05-29T00:00:15Z");
        assertThat(due(Recurrence.cron("@weekly", UTC), UTC, "2026-05-01T00:00:00Z", 1))
                .containsExactly("2026-05-03T00:00Z");
        assertThat(due(Recurrence.cron("0 0 0 29 2 MON", UTC), UTC, "2026-05-01T00:00:00Z", 1))
                .containsExactly("2044-02-29T00:00Z");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "0 0 0 30 2 *",
                "0 0 0 31 4,6,9,11 ?",
                "0 0 0 ? * MON#6",
                "0 0 0 30W 2 *",
                "0 0 0 31 2 MON",
                "0 0 0 31W 4 *"
            })
    void refusesExpressionsThatAreNeverDue(String expression) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Recurrence.cron(expression, UTC))
                .withMessage("expression \"" + expression + "\" must be due at some time, but never is");
    }

    @Test
    void refusesWhatIsNoRecurrence() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Recurrence.crontab("0 0 30 2 *", UTC))
                .withMessageStartingWith(
                        "pattern \"0 0 30 2 *\" is invalid: \"30\": day of month must occur in month 2");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Recurrence.crontab("61 0 * x *", UTC))
                .withMessageMatching(
                        "pattern \"61 0 \\* x \\*\" is invalid: \"61\": minute must be 0 to 59; \"x\": month must be"
                                + " 1 to 12.*");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Recurrence.cron("61 0 0 * * *", UTC))
                .withMessageStartingWith("expression \"61 0 0 * * *\" is invalid: ");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Recurrence.cron("* ".repeat(600), UTC))
                .withMessage("expression must have at most 1000 characters, but has 1200");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Recurrence.cron(null, UTC))
                .withMessage("expression must not be null");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Recurrence.cron("@daily", null))
                .withMessage("zone must not be null");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Recurrence.fixedRate(Duration.ofMillis(999), SOME))
                .withMessage("every must be between 1 s and 3650 days, but is PT0.999S");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Recurrence.fixedRate(ChronoUnit.FOREVER.getDuration(), SOME))
                .withMessageStartingWith("every must be between 1 s and 3650 days, but is ");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Recurrence.fixedRate(Duration.ofHours(1), Instant.MAX))
                .withMessageStartingWith("origin must lie between ");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Recurrence.fixedRate(Duration.ofHours(1), null))
                .withMessage("origin must not be null");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Recurrence.fixedDelay(Duration.ofDays(3_651)))
                .withMessage("delay must be between 1 s and 3650 days, but is PT87624H");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Recurrence.cron("@daily", UTC).nextDue(Instant.MIN))
                .withMessageStartingWith("after must lie between ");
    }

    @ParameterizedTest
    @CsvSource({
        "PT90M, 2026-05-01T00:00:00Z, 2026-05-01T00:00:00Z, 2026-05-01T01:30:00Z",
        "PT90M, 2026-05-01T00:00:00Z, 2026-05-01T01:29:59.999999Z, 2026-05-01T01:30:00Z",
        "PT90M, 2026-05-01T00:00:00Z, 2026-04-30T23:59:59Z, 2026-05-01T00:00:00Z",
        "PT90M, 2026-05-01T00:00:00Z, 2026-04-30T22:30:00Z, 2026-05-01T00:00:00Z",
        "PT90M, 2026-05-01T00:00:00Z, 2026-04-30T22:29:59Z, 2026-04-30T22:30:00Z",
        "PT1S, 2026-05-01T00:00:00.5Z, 2026-05-01T00:00:07Z, 2026-05-01T00:00:07.5Z",
        "PT1.000001S, 1970-01-01T00:00:00Z, 2026-05-01T00:00:00Z, 2026-05-01T00:00:00.591823Z",
        "PT1S, -4712-01-01T00:00:00Z, +294276-12-31T23:59:58Z, +294276-12-31T23:59:59Z",
        "PT24H, 2026-05-01T12:00:00Z, -4712-01-01T00:00:00Z, -4712-01-01T12:00:00Z",
    })
    void aFixedRateIsExactFromItsOrigin(Duration every, Instant origin, Instant after, Instant expected) {
        assertThat(Recurrence.fixedRate(every, origin).nextDue(after)).isEqualTo(expected);
    }

    @Test
    void thereIsNothingBeyondTheTimesOfTheDatabase() {
        Instant last = Instant.parse("+294276-12-31T23:59:59Z");
        for (Recurrence recurrence : List.of(
                Recurrence.fixedRate(Duration.ofHours(1), SOME),
                Recurrence.fixedDelay(Duration.ofHours(1)),
                Recurrence.crontab("* * * * *", BERLIN),
                Recurrence.cron("* * * * * *", BERLIN))) {
            assertThat(recurrence.nextDue(last)).as("%s", recurrence).isNull();
        }
    }

    @Test
    void isEqualByItsValuesAndSaysWhatItIs() {
        assertThat(Recurrence.crontab(" 0\t8 * *  1 ", BERLIN))
                .isEqualTo(Recurrence.crontab("0 8 * * 1", BERLIN))
                .hasSameHashCodeAs(Recurrence.crontab("0 8 * * 1", BERLIN))
                .isNotEqualTo(Recurrence.crontab("0 8 * * 1", UTC))
                .hasToString("crontab \"0 8 * * 1\" in Europe/Berlin");
        assertThat(Recurrence.cron("@daily", UTC)).hasToString("cron \"@daily\" in Z");
        assertThat(Recurrence.fixedRate(Duration.ofSeconds(90, 1_999), SOME))
                .isEqualTo(Recurrence.fixedRate(Duration.ofSeconds(90, 1_000), SOME))
                .hasToString("every PT1M30.000001S from 2026-05-01T00:00:00Z");
        assertThat(Recurrence.fixedDelay(Duration.ofMinutes(5)))
                .isNotEqualTo(Recurrence.fixedDelay(Duration.ofMinutes(6)))
                .hasToString("PT5M after the end of the previous job");
    }

    @Test
    void whatIsDueIsFoundInMicroseconds() {
        List<Recurrence> recurrences = List.of(
                Recurrence.crontab("30 4 * * *", BERLIN),
                Recurrence.crontab("0 8 1 1 *", BERLIN),
                Recurrence.cron("0 30 4 * * *", BERLIN),
                Recurrence.fixedRate(Duration.ofMinutes(90), SOME));
        long begin = System.nanoTime();
        for (int i = 0; i < 25_000; i++) {
            for (Recurrence recurrence : recurrences) {
                assertThat(recurrence.nextDue(SOME.plusSeconds(i * 61L)) != null)
                        .isTrue();
            }
        }
        assertThat(Duration.ofNanos(System.nanoTime() - begin))
                .as("100,000 times")
                .isLessThan(Duration.ofSeconds(20));
    }
}
