package dev.pgworker.schedule;

import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

@Tag("any-postgres")
class ScheduleTest {

    private static final Instant NOON = Instant.parse("2026-05-01T12:00:00Z");
    private static final Instant NIGHT = Instant.parse("2026-05-02T00:00:00Z");
    private static final Recurrence DAILY = Recurrence.cron("@daily", ZoneOffset.UTC);
    private static final Recurrence HOURLY = Recurrence.fixedRate(Duration.ofHours(1), NOON);
    private static final Recurrence DELAY = Recurrence.fixedDelay(Duration.ofHours(1));

    private static Schedule.Builder schedule(Recurrence recurrence) {
        return Schedule.builder("s", recurrence, "t", Map.of("secret", 1));
    }

    @Test
    void isDueFromItsStartOnAndBeforeItsEnd() {
        Instant start = NOON.plus(2, ChronoUnit.HOURS);
        Schedule limited = schedule(HOURLY)
                .startsAt(start)
                .endsAt(start.plus(2, ChronoUnit.HOURS))
                .build();

        assertThat(limited.next(NOON, 10)).containsExactly(start, start.plusSeconds(3_600));
        assertThat(limited.firstDue(NOON)).isEqualTo(start);
        assertThat(limited.firstDue(start)).isEqualTo(start.plusSeconds(3_600));
        assertThat(limited.nextDue(start.plusSeconds(3_600))).isNull();
        assertThat(schedule(DAILY).build().next(NOON, 2)).containsExactly(NIGHT, NIGHT.plus(1, ChronoUnit.DAYS));
    }

    @Test
    void mayStartAndEndWhereTheTimesOfTheDatabaseDo() {
        Schedule always = schedule(DAILY)
                .startsAt(Instant.parse("-4712-01-01T00:00:00Z"))
                .endsAt(Instant.parse("+294276-12-31T23:59:59Z"))
                .build();

        assertThat(always.firstDue(NOON)).isEqualTo(NIGHT);
        assertThat(always.nextDue(Instant.parse("+294276-12-31T12:00:00Z"))).isNull();
    }

    @Test
    void aDelayIsDueAtOnceAndThenAfterEachEnd() {
        Schedule delayed = schedule(DELAY).endsAt(NIGHT).build();

        assertThat(delayed.firstDue(NOON)).isEqualTo(NOON);
        assertThat(delayed.toBuilder().startsAt(NIGHT.minusSeconds(9)).build().firstDue(NOON))
                .isEqualTo(NIGHT.minusSeconds(9));
        assertThat(delayed.firstDue(NIGHT)).as("has ended").isNull();
        assertThat(delayed.nextDue(NOON)).isEqualTo(NOON.plusSeconds(3_600));
        assertThat(delayed.nextDue(NIGHT.minusSeconds(3_600))).isNull();
        assertThat(delayed.next(NOON, 2)).containsExactly(NOON.plusSeconds(3_600), NOON.plusSeconds(7_200));
    }

    @Test
    void aDelayIsDueAtItsStartIfThatIsLaterThanTheDelay() {
        Instant start = NOON.plusSeconds(5_000);
        Schedule delayed = schedule(DELAY).startsAt(start).build();

        assertThat(delayed.next(NOON, 2)).containsExactly(start, start.plusSeconds(3_600));
        assertThat(delayed.nextDue(start.minusSeconds(9)))
                .as("the previous job has ended before the start")
                .isEqualTo(start.plusSeconds(3_591));
        assertThat(delayed.toBuilder().endsAt(start.plusSeconds(1)).build().next(NOON, 2))
                .containsExactly(start);
    }

    @Test
    void saysWhatIsWrongAndWhatIsAllowed() {
        Map<Consumer<Schedule.Builder>, String> wrong = new LinkedHashMap<>();
        wrong.put(it -> it.recurrence(null), "recurrence must not be null");
        wrong.put(it -> it.misfire(null), "misfire must not be null");
        wrong.put(it -> it.spec(null), "spec must not be null");
        wrong.put(
                it -> it.spec(JobSpec.builder().runAt(NOON).build()),
                "spec.runAt must be null, because the recurrence says when jobs run, but is 2026-05-01T12:00:00Z");
        wrong.put(it -> it.jitter(null), "jitter must not be null");
        wrong.put(
                it -> it.jitter(Duration.ofNanos(-1)), "jitter must be between 0 s and 7 days, but is PT-0.000000001S");
        wrong.put(it -> it.jitter(Duration.ofHours(169)), "jitter must be between 0 s and 7 days, but is PT169H");
        wrong.put(
                it -> it.jitter(ChronoUnit.FOREVER.getDuration()),
                "jitter must be between 0 s and 7 days, but is " + ChronoUnit.FOREVER.getDuration());
        wrong.put(
                it -> it.recurrence(HOURLY).jitter(Duration.ofHours(1)),
                "jitter must be less than the period of the fixed rate, PT1H, but is PT1H");
        wrong.put(it -> it.backfill(Duration.ZERO), "backfill must be between 1 s and 3650 days, but is PT0S");
        wrong.put(
                it -> it.backfill(ChronoUnit.FOREVER.getDuration()),
                "backfill must be between 1 s and 3650 days, but is " + ChronoUnit.FOREVER.getDuration());
        wrong.put(it -> it.startsAt(Instant.MIN), "startsAt must lie between ");
        wrong.put(it -> it.endsAt(Instant.MAX), "endsAt must lie between ");
        wrong.put(
                it -> it.startsAt(NIGHT).endsAt(NIGHT),
                "endsAt must be after startsAt, 2026-05-02T00:00:00Z, but is 2026-05-02T00:00:00Z");
        wrong.put(
                it -> it.startsAt(NOON).endsAt(NOON.plusSeconds(60)),
                "recurrence must be due between start and end, but cron \"@daily\" in Z is not between"
                        + " 2026-05-01T12:00:00Z and 2026-05-01T12:01:00Z");
        wrong.forEach((change, message) -> assertThatIllegalArgumentException()
                .as(message)
                .isThrownBy(() -> {
                    Schedule.Builder builder = schedule(DAILY);
                    change.accept(builder);
                    builder.build();
                })
                .withMessageStartingWith(message));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Schedule.builder("s", DAILY, (String) null, null))
                .withMessage("identifier must not be null");
        for (int count : new int[] {0, 1_001}) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> schedule(DAILY).build().next(NOON, count))
                    .withMessage("count must be between 1 and 1000, but is " + count);
        }
    }

    @Test
    void aQueryIsChecked() {
        for (int limit : new int[] {0, 1_001}) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> new RecurringQuery(null, null, null, null, limit))
                    .withMessage("limit must be between 1 and 1000, but is " + limit);
        }
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new RecurringQuery("a\0", null, null, null, 1))
                .withMessageStartingWith("prefix must not contain the NUL character");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new RecurringQuery(null, "\udc00", null, null, 1))
                .withMessageStartingWith("task must not contain a lone surrogate");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new RecurringQuery(null, null, null, "\0", 1))
                .withMessageStartingWith("after must not contain the NUL character");
    }

    @Test
    void isEqualByItsValuesAndKeepsItsPayloadToItself() {
        Schedule all = schedule(DAILY)
                .spec(JobSpec.builder().priority(3).build())
                .overlap(Overlap.SKIP)
                .misfire(Misfire.RUN_ALL)
                .backfill(Duration.ofDays(1))
                .jitter(Duration.ofMinutes(1))
                .startsAt(NOON.plusNanos(1))
                .endsAt(NOON.plus(7, ChronoUnit.DAYS))
                .build();

        assertThat(all.toBuilder().build()).isEqualTo(all).hasSameHashCodeAs(all);
        assertThat(all.startsAt()).as("to the microsecond").isEqualTo(NOON);
        assertThat(all).hasToString("Schedule[s, task t, cron \"@daily\" in Z]");
        List<Schedule> others = Arrays.asList(
                all.toBuilder().recurrence(HOURLY).build(),
                all.toBuilder().payload(null).build(),
                all.toBuilder().spec(JobSpec.DEFAULT).build(),
                all.toBuilder().overlap(Overlap.QUEUE).build(),
                all.toBuilder().misfire(Misfire.SKIP).build(),
                all.toBuilder().backfill(null).build(),
                all.toBuilder().jitter(Duration.ZERO).build(),
                all.toBuilder().startsAt(null).build(),
                all.toBuilder().endsAt(null).build(),
                Schedule.builder("other", DAILY, "t", Map.of()).build());
        assertThat(others).doesNotContain(all).doesNotHaveDuplicates();
        assertThat(Schedule.builder("s", DAILY, Task.of("t", String.class), "x")
                        .build()
                        .job()
                        .payloadType())
                .isEqualTo(String.class);
    }
}
