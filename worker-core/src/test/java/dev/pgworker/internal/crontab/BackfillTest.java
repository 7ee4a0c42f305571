package dev.pgworker.internal.crontab;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Set;

import org.junit.jupiter.api.Test;

import dev.pgworker.crontab.CronItem;
import dev.pgworker.crontab.Crontab;
import dev.pgworker.internal.crontab.CronExecutor.Due;
import dev.pgworker.internal.crontab.CronExecutor.Missed;
import dev.pgworker.internal.store.CrontabStore.Known;

import static org.assertj.core.api.Assertions.assertThat;

/** How items that are behind catch up, however much they missed. */
class BackfillTest {

    private static final Instant NOW = Instant.parse("2026-03-01T12:00:00Z");

    private final Backfill backfill = new Backfill(Duration.ofHours(1));

    @Test
    void aYearOfMinutesIsTakenInOrderAndInBoundedChunks() {
        List<CronItem> items = Crontab.parse(
                        "t", "* * * * * a ?fill=366d\n* * * * * b ?fill=366d\n0 0 1 1 * c ?fill=366d")
                .items();
        Instant begin = NOW.minus(Duration.ofDays(365));
        items.forEach(item -> backfill.add(item, begin));
        long taken = 0;
        Instant previous = Instant.MIN;
        int caughtUp = 0;
        while (caughtUp < 3) {
            Backfill.Chunk chunk = backfill.take(NOW);
            assertThat(chunk.due().size()).isLessThan(Backfill.CHUNK + items.size());
            for (Due due : chunk.due()) {
                assertThat(due.tick()).isAfterOrEqualTo(previous);
                previous = due.tick();
            }
            taken += chunk.due().size();
            caughtUp += backfill.settle(chunk, Missed.NONE, NOW).size();
        }
        assertThat(taken).isEqualTo(2 * 365 * 1440 + 1);
        assertThat(backfill.isWaiting(NOW)).isFalse();
    }

    @Test
    void aRareItemIsSoughtABoundedNumberOfMinutesAtATime() {
        CronItem rare = CronItem.of("r").pattern("0 0 29 2 *").build();
        backfill.add(rare, NOW.minus(Duration.ofDays(3650)));

        Backfill.Chunk chunk = backfill.take(NOW);

        assertThat(chunk.due()).isEmpty();
        assertThat(chunk.end()).isEqualTo(NOW.minus(Duration.ofDays(3650)).plus(Duration.ofMinutes(Backfill.MINUTES)));
    }

    @Test
    void anItemThatFailsStaysWhereItIsAndTheOthersGoOn() {
        CronItem bad = CronItem.of("bad").everyMinute().build();
        CronItem good = CronItem.of("good").everyMinute().build();
        backfill.add(bad, NOW.minusSeconds(600));
        backfill.add(good, NOW.minusSeconds(300));

        assertThat(backfill.settle(backfill.take(NOW), new Missed(Set.of("bad"), Set.of()), NOW))
                .containsExactly(good);

        assertThat(backfill.isWaiting(NOW))
                .as("tried again before the next minute")
                .isFalse();
        Instant later = NOW.plusSeconds(60);
        Backfill.Chunk again = backfill.take(later);
        assertThat(again.due()).hasSize(11).first().isEqualTo(new Due(bad, NOW.minusSeconds(600)));
        assertThat(backfill.settle(again, Missed.NONE, later)).containsExactly(bad);
    }

    @Test
    void anItemThatWaitsForATransactionIsTriedAgainBeforeTheNextMinute() {
        CronItem held = CronItem.of("held").everyMinute().build();
        backfill.addFailed(held, NOW.minusSeconds(60), true);
        backfill.addFailed(CronItem.of("bad").everyMinute().build(), NOW.minusSeconds(60), false);
        assertThat(backfill.isWaiting(NOW)).isFalse();

        backfill.releaseHeld();

        assertThat(backfill.take(NOW).due()).containsExactly(new Due(held, NOW.minusSeconds(60)));
    }

    @Test
    void whatAFailingItemMissedIsGivenUpOnlyBeyondItsFillAndAnHour() {
        CronItem plain = CronItem.of("plain").everyMinute().build();
        CronItem filled =
                CronItem.of("filled").everyMinute().fill(Duration.ofHours(2)).build();
        Missed both = new Missed(Set.of("plain", "filled"), Set.of());
        backfill.add(plain, NOW.minus(Duration.ofHours(3)));
        backfill.add(filled, NOW.minus(Duration.ofHours(3)));

        assertThat(backfill.settle(backfill.take(NOW), both, NOW)).isEmpty();

        List<Due> due = backfill.take(NOW.plusSeconds(60)).due();
        assertThat(due.stream()
                        .filter(one -> one.item() == plain)
                        .map(Due::tick)
                        .findFirst())
                .contains(NOW.minus(Duration.ofHours(1)));
        assertThat(due.stream()
                        .filter(one -> one.item() == filled)
                        .map(Due::tick)
                        .findFirst())
                .contains(NOW.minus(Duration.ofHours(2)));
    }

    @Test
    void onlyKnownItemsWithAFillMissAnything() {
        CronItem item =
                CronItem.of("a").everyMinute().fill(Duration.ofMinutes(10)).build();
        Known known = new Known(NOW.minus(Duration.ofDays(1)), null);

        assertThat(Backfill.firstMissed(item, null, NOW)).isNull();
        assertThat(Backfill.firstMissed(CronItem.of("b").everyMinute().build(), known, NOW))
                .isNull();
        assertThat(Backfill.firstMissed(item, known, NOW)).isEqualTo(NOW.minusSeconds(600));
        assertThat(Backfill.firstMissed(item, new Known(known.since(), NOW.minusSeconds(120)), NOW))
                .isEqualTo(NOW.minusSeconds(60));
        assertThat(Backfill.firstMissed(item, new Known(known.since(), NOW.minusSeconds(60)), NOW))
                .isNull();
    }
}
