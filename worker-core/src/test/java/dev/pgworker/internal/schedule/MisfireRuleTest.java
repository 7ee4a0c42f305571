package dev.pgworker.internal.schedule;

import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import dev.pgworker.internal.schedule.MisfireRule.Execution;
import dev.pgworker.schedule.Misfire;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.Schedule;

import static org.assertj.core.api.Assertions.assertThat;

/** Which of the executions that are due take place, compared with a list of all of them. */
@Tag("any-postgres")
class MisfireRuleTest {

    private static final Instant START = Instant.parse("2026-03-28T22:00:00Z");

    private static final List<Recurrence> RECURRENCES = List.of(
            Recurrence.fixedRate(Duration.ofSeconds(1), START.plusMillis(250)),
            Recurrence.fixedRate(Duration.ofSeconds(90), START),
            Recurrence.fixedRate(Duration.ofMinutes(45), START.minusSeconds(7)),
            Recurrence.crontab("*/7 1-4 * * *", ZoneId.of("Europe/Berlin")),
            Recurrence.cron("*/10 30 2 * * *", ZoneId.of("Europe/Berlin")),
            Recurrence.cron("0 0 0 1 * *", ZoneId.of("UTC")));

    @ParameterizedTest
    @EnumSource
    void agreesWithAListOfAllExecutions(Misfire misfire) {
        Random random = new Random(misfire.name().length());
        for (int i = 0; i < 200; i++) {
            Recurrence recurrence = RECURRENCES.get(random.nextInt(RECURRENCES.size()));
            Instant endsAt = random.nextInt(4) == 0 ? START.plusSeconds(random.nextInt(8_000)) : null;
            Schedule schedule =
                    Schedule.builder("s", recurrence, "t", null).endsAt(endsAt).build();
            Instant first = schedule.nextDue(START.plusMillis(random.nextInt(60_000)));
            if (first == null) {
                continue;
            }
            Instant now =
                    first.plusMillis(random.nextInt(3) == 0 ? random.nextInt(120_000) : random.nextInt(30_000_000));
            Duration backfill = random.nextBoolean() ? null : Duration.ofSeconds(1 + random.nextInt(20_000));
            int most = 1 + random.nextInt(60);

            MisfireRule.Due due = MisfireRule.of(misfire).choose(new Timeline(schedule), first, now, backfill, most);

            assertThat(due)
                    .as("%s from %s, now %s, backfill %s, most %s", schedule, first, now, backfill, most)
                    .isEqualTo(expected(schedule, misfire, first, now, backfill, most));
        }
    }

    private static MisfireRule.Due expected(
            Schedule schedule, Misfire misfire, Instant first, Instant now, @Nullable Duration backfill, int most) {
        List<Instant> all = new ArrayList<>();
        Instant next = first;
        while (next != null && !next.isAfter(now)) {
            all.add(next);
            next = schedule.nextDue(next);
        }
        Instant last = all.get(all.size() - 1);
        boolean late = last.isBefore(now.minusSeconds(60));
        List<Execution> executions = new ArrayList<>();
        int skipped = 0;
        for (Instant time : all) {
            boolean isLast = time.equals(last);
            boolean missed = !isLast || late;
            boolean isOld = backfill != null && time.isBefore(now.minus(backfill));
            boolean takesPlace = !missed
                    || switch (misfire) {
                        case SKIP -> false;
                        case RUN_ONCE -> isLast && !isOld;
                        case RUN_ALL -> !isOld;
                    };
            if (!takesPlace) {
                skipped++;
            } else if (executions.size() < most) {
                executions.add(new Execution(time, missed));
            } else {
                next = time;
                break;
            }
        }
        return new MisfireRule.Due(executions, first, Math.min(skipped, MisfireRule.MOST_COUNTED), next);
    }

    @Test
    void yearsOfSecondsTakeNoTime() {
        Schedule schedule = Schedule.builder("s", Recurrence.cron("* * * * * *", ZoneId.of("UTC")), "t", null)
                .build();
        Instant first = Instant.parse("1990-01-01T00:00:00Z");
        Instant now = Instant.parse("2026-03-28T22:00:00.5Z");
        long begin = System.nanoTime();

        for (Misfire misfire : Misfire.values()) {
            MisfireRule.Due due = MisfireRule.of(misfire).choose(new Timeline(schedule), first, now, null, 100);

            assertThat(due.next()).isEqualTo(misfire == Misfire.RUN_ALL ? first.plusSeconds(100) : now.plusMillis(500));
        }
        assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(20));
    }
}
