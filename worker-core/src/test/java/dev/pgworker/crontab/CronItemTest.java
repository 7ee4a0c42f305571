package dev.pgworker.crontab;

import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.ZonedDateTime;
import java.time.temporal.ChronoUnit;
import java.time.zone.ZoneOffsetTransition;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import static org.assertj.core.api.Assertions.assertThat;

/** When an item is due where clocks change. */
@Tag("any-postgres")
class CronItemTest {

    /** Each case lists the instants of one day of change, as the application's administrator would write them. */
    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
                    Europe/Berlin       | 30 2 * * *   | 2026-03-29T01:00Z
                    Europe/Berlin       | 0 2 * * *    | 2026-03-29T01:00Z
                    Europe/Berlin       | 0,30 2,3 * * * | 2026-03-29T01:00Z 2026-03-29T01:30Z
                    Europe/Berlin       | */15 2 * * * | 2026-03-29T01:00Z
                    Europe/Berlin       | 0 3 * * *    | 2026-03-29T01:00Z
                    Europe/Berlin       | 30 2 * * *   | 2026-10-25T00:30Z
                    Europe/Berlin       | 0 2,3 * * *  | 2026-10-25T00:00Z 2026-10-25T02:00Z
                    Australia/Lord_Howe | 15 2 * * *   | 2026-10-03T15:30Z
                    Australia/Lord_Howe | 30 2 * * *   | 2026-10-03T15:30Z
                    Australia/Lord_Howe | 45 1 * * *   | 2026-04-04T14:45Z
                    Australia/Lord_Howe | 15 1 * * *   | 2026-04-04T14:15Z
                    Africa/Cairo        | 0 0 * * *    | 2026-04-23T22:00Z
                    Asia/Kathmandu      | 0 0 * * *    | 2026-04-23T18:15Z
                    Pacific/Apia        | 0 12 30 12 * | 2011-12-30T10:00Z
                    """)
    void changesOfTheClock(String zone, String pattern, String instants) {
        CronItem item = item(pattern, zone);
        List<Instant> expected = new ArrayList<>();
        for (String instant : instants.split(" ")) {
            expected.add(Instant.parse(instant.replace("Z", ":00Z")));
        }
        Instant from = expected.get(0).minus(6, ChronoUnit.HOURS);

        assertThat(due(item, from, 12)).containsExactlyElementsOf(expected);
    }

    @Test
    void anOpenHourFollowsTheElapsedTime() {
        Instant spring = Instant.parse("2026-03-28T20:00:00Z");
        Instant autumn = Instant.parse("2026-10-24T20:00:00Z");

        assertThat(due(item("* * * * *", "Europe/Berlin"), autumn, 12)).hasSize(720);
        assertThat(due(item("30 * * * *", "Europe/Berlin"), autumn, 12)).hasSize(12);
        assertThat(due(item("* * * * *", "Europe/Berlin"), spring, 12)).hasSize(720);
        assertThat(due(item("30 * * * *", "Europe/Berlin"), spring, 12)).hasSize(12);
    }

    @Test
    void withoutAZoneThePatternMeansUtc() {
        Instant from = Instant.parse("2026-03-28T20:00:00Z");

        assertThat(due(Crontab.parse("t", "30 2 * * * a").items().get(0), from, 12))
                .containsExactly(Instant.parse("2026-03-29T02:30:00Z"));
    }

    /** Walks through local times instead of instants, and maps each of them. */
    @ParameterizedTest
    @CsvSource({
        "Europe/Berlin, 2021",
        "Australia/Lord_Howe, 2021",
        "America/New_York, 2021",
        "Africa/Cairo, 2021",
        "America/Santiago, 2021",
        "America/Sao_Paulo, 2018",
        "Pacific/Apia, 2011",
        "Asia/Tehran, 2021",
        "Africa/Casablanca, 2021",
        "UTC, 2021"
    })
    void everyLocalTimeOfAYearCountsOnce(String zone, int year) {
        Random random = new Random(zone.hashCode());
        for (int round = 0; round < 3; round++) {
            String pattern = random.nextInt(60) + "," + random.nextInt(60) + " 0," + (1 + random.nextInt(4)) + " * * *";
            CronItem item = item(pattern, zone);
            Instant from = Instant.parse(year + "-01-01T00:00:00Z");
            Set<Instant> expected = new TreeSet<>();
            LocalDateTime local = LocalDateTime.ofInstant(from, ZoneId.of(zone)).minusDays(1);
            for (int minute = 0; minute < 368 * 1440; minute++, local = local.plusMinutes(1)) {
                if (item.pattern().matches(local)) {
                    expected.add(instant(local, ZoneId.of(zone)));
                }
            }
            Instant to = from.plus(365, ChronoUnit.DAYS);
            expected.removeIf(instant -> instant.isBefore(from) || !instant.isBefore(to));

            assertThat(due(item, from, 365 * 24)).as(pattern).containsExactlyElementsOf(expected);
        }
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
                    UTC                 | * * * * *     | 2026-03-29T00:59:59.999
                    UTC                 | 0 0 1 1 *     | 2026-01-01T00:00:00.001
                    UTC                 | 59 23 31 12 * | 2026-12-31T23:58:30
                    Europe/Berlin       | 30 2 * * *    | 2026-03-28T01:30:00
                    Europe/Berlin       | 30 2 29 3 *   | 2026-03-29T00:59:00
                    Europe/Berlin       | 30 2 * * *    | 2026-10-25T00:30:00
                    Europe/Berlin       | 0 0 1 * 1     | 2026-03-30T22:00:00
                    Australia/Lord_Howe | 15 2 * 10 0   | 2026-10-03T15:29:00
                    Asia/Kathmandu      | 0 0 * * 5     | 2026-04-23T18:14:00
                    Pacific/Apia        | 0 12 30 12 *  | 2011-12-28T10:00:00
                    Pacific/Apia        | 0 12 30 12 *  | 2011-12-30T10:00:00
                    America/Santiago    | 0 0 * 9 6,0   | 2026-09-05T03:00:00
                    """)
    void theNextExecutionIsTheFirstMinuteInWhichItIsDue(String zone, String pattern, String after) {
        CronItem item = item(pattern, zone);
        Instant time = Instant.parse(after + "Z");
        Instant minute = time.truncatedTo(ChronoUnit.MINUTES).plus(1, ChronoUnit.MINUTES);
        while (!item.isDueAt(minute)) {
            minute = minute.plus(1, ChronoUnit.MINUTES);
        }

        assertThat(item.nextDue(time)).isEqualTo(minute);
    }

    @Test
    void theNextExecutionMayBeEightYearsOff() {
        Instant after = Instant.parse("2096-02-29T00:00:00Z");

        assertThat(item("0 0 29 2 *", "UTC").nextDue(after)).isEqualTo(Instant.parse("2104-02-29T00:00:00Z"));
    }

    private static Instant instant(LocalDateTime local, ZoneId zone) {
        ZoneOffsetTransition change = zone.getRules().getTransition(local);
        return change != null && change.isGap()
                ? change.getInstant()
                : ZonedDateTime.of(local, zone).withEarlierOffsetAtOverlap().toInstant();
    }

    private static CronItem item(String pattern, String zone) {
        return Crontab.parse("t", pattern + " a ?tz=" + zone).items().get(0);
    }

    private static List<Instant> due(CronItem item, Instant from, int hours) {
        List<Instant> due = new ArrayList<>();
        for (int minute = 0; minute < hours * 60; minute++) {
            Instant tick = from.plus(minute, ChronoUnit.MINUTES);
            if (item.isDueAt(tick)) {
                due.add(tick);
            }
        }
        return due;
    }
}
