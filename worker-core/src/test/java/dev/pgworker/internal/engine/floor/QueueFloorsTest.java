package dev.pgworker.internal.engine.floor;

import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;

import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import dev.pgworker.internal.store.IndexPosition;
import dev.pgworker.internal.store.QueueStart;
import dev.pgworker.internal.store.QueueStart.Floor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

@Tag("any-postgres")
class QueueFloorsTest {

    private static final Instant NOW = Instant.parse("2026-01-01T00:00:00Z");

    private final QueueFloors floors = new QueueFloors(() -> {}, Duration.ZERO);
    private final List<@Nullable QueueStart> scannedFrom = new ArrayList<>();

    @Test
    void areNotInUseWhileALookIsQuick() throws SQLException {
        QueueFloors usual = new QueueFloors(() -> {});
        usual.ofClaim();

        usual.scan(from -> new QueueStart(List.of(new Floor(0, null, 0, IndexPosition.FIRST))));

        assertThat(usual.ofClaim()).isNull();
    }

    @Test
    void areNotInUseBeforeALookHasToldThem() throws SQLException {
        assertThat(floors.ofClaim()).isNull();
        assertThat(floors.levels()).isNull();
        assertThat(floors.of(List.of("a"))).isNull();

        scan(all(0, 0));

        assertThat(current()).containsExactly(all(0, 0));
        assertThat(floors.levels()).containsExactly(0);
    }

    @Test
    void aQueueWithAFloorOfItsOwnHasOneForEachPriority() throws SQLException {
        floors.ofClaim();
        scan(all(0, -1), all(3, -2), of(7, "a", 3, -500));

        assertThat(current()).containsExactlyInAnyOrder(all(0, -1), of(7, "a", 0, -1), all(3, -2), of(7, "a", 3, -500));
        assertThat(Objects.requireNonNull(floors.of(List.of("b"))).floors()).containsExactly(all(0, -1), all(3, -2));
    }

    @Test
    void whatIsAnnouncedBelowLowersThoseOfItsPriority() throws SQLException {
        floors.ofClaim();
        scan(all(0, 0), all(3, 0), of(7, "a", 3, -50));

        floors.announced(NOW.plusSeconds(1), List.of(0));
        floors.announced(NOW.minusSeconds(10), List.of(3));
        floors.announced(NOW.minusSeconds(20), List.of(5));
        floors.announced(null, List.of());

        assertThat(current())
                .contains(all(0, 0), all(3, -10), of(7, "a", 3, -50), all(5, -20), of(7, "a", 5, -20))
                .hasSize(6);
    }

    @Test
    void whatIsAnnouncedDuringALookIsNotLost() throws SQLException {
        floors.ofClaim();
        awaitTurn();
        assertThat(floors.scan(from -> {
                    floors.announced(NOW.minusSeconds(10), List.of(0, 1));
                    return start(all(0, 0));
                }))
                .isFalse();

        assertThat(current()).containsExactly(all(0, -10), all(1, -10));
    }

    @Test
    void whatIsBeingGivenBackKeepsThemLow() throws SQLException {
        floors.ofClaim();
        scan(all(0, 0));
        Map<Integer, Instant> places = Map.of(0, NOW.minusSeconds(10));

        floors.givingBack(places, () -> {
            assertThat(current()).containsExactly(all(0, -10));
            due();
            scan(all(0, 0));
            assertThat(current()).containsExactly(all(0, -10));
            return 1;
        });
        assertThat(current()).containsExactly(all(0, -10));

        due();
        scan(all(0, 0));
        assertThat(current()).containsExactly(all(0, 0));
    }

    @Test
    void aLookThatBeganBeforeTheWriteEndedDoesNotRaiseThem() throws SQLException {
        floors.ofClaim();
        scan(all(0, 0));
        due();
        awaitTurn();

        floors.scan(from -> {
            floors.givingBack(Map.of(0, NOW.minusSeconds(10)), () -> 1);
            return start(all(0, 0));
        });

        assertThat(current()).containsExactly(all(0, -10));
    }

    @Test
    void looksBeginAtTheFloorsUntilThereIsAReason() throws SQLException {
        floors.ofClaim();
        scan(all(0, 0));
        due();
        scan(all(0, 5));
        floors.announced(null, null);
        scan(all(0, 5));

        assertThat(scannedFrom).containsExactly(null, start(all(0, 0)), null);
    }

    @Test
    void aLookFromTheFirstEntryTellsWhetherAnyWerePassedOver() throws SQLException {
        floors.ofClaim();
        assertThat(scan(all(0, 0))).isFalse();

        floors.announced(null, null);
        assertThat(scan(all(0, 5))).isFalse();
        floors.announced(null, null);
        assertThat(scan(all(0, 5), of(7, "a", 0, -50))).isTrue();
        floors.announced(null, null);
        assertThat(scan(all(0, 5), all(2, 5))).isTrue();
    }

    @Test
    void withTooManyPrioritiesTheyAreNotInUse() throws SQLException {
        floors.ofClaim();
        scan(IntStream.range(0, QueueFloors.MOST_LEVELS)
                .mapToObj(level -> all(level, 0))
                .toArray(Floor[]::new));
        assertThat(floors.ofClaim()).isNotNull();

        floors.announced(NOW, List.of(100));

        assertThat(floors.ofClaim()).isNull();
        floors.announced(null, null);
        awaitTurn();
        assertThat(floors.scan(from -> null)).isFalse();
        assertThat(floors.ofClaim()).isNull();
    }

    @Test
    void aLookThatFailsOrBeganBeforeEverythingWasForgottenRaisesNothing() throws SQLException {
        floors.ofClaim();
        scan(all(0, 0));
        floors.announced(null, null);
        awaitTurn();
        assertThatThrownBy(() -> floors.scan(from -> {
                    throw new SQLException("no");
                }))
                .hasMessage("no");
        assertThat(floors.ofClaim()).isNull();

        floors.announced(null, null);
        awaitTurn();
        floors.scan(from -> {
            floors.forget();
            return start(all(0, 0));
        });
        assertThat(floors.ofClaim()).isNull();
    }

    @Test
    void nobodyLooksWhileNobodyClaims() {
        assertThat(floors.nanosUntilScan()).isEqualTo(Long.MAX_VALUE);
        floors.ofClaim();
        assertThat(floors.nanosUntilScan()).isLessThan(Duration.ofSeconds(1).toNanos());
    }

    @Test
    void theClaimOfAPollSaysItselfWhetherALookTakesLong() throws SQLException {
        QueueFloors usual = new QueueFloors(() -> {});
        assertThat(usual.ofClaim(true)).isNull();
        assertThat(usual.nanosUntilScan())
                .as("the first one")
                .isLessThan(Duration.ofSeconds(1).toNanos());
        usual.scan(from -> new QueueStart(List.of()));

        assertThat(usual.ofClaim(true)).isNull();
        usual.took(Duration.ofMillis(49));
        assertThat(usual.nanosUntilScan()).isEqualTo(Long.MAX_VALUE);
        usual.took(Duration.ofMillis(50));
        assertThat(usual.nanosUntilScan())
                .isLessThanOrEqualTo(Duration.ofSeconds(5).toNanos());
    }

    @Test
    void theClaimOfAPollIsLikeOthersWhileTheyAreInUse() throws SQLException {
        floors.ofClaim();
        scan(all(0, 0));

        assertThat(floors.ofClaim(true)).isNotNull();
        assertThat(floors.nanosUntilScan()).isLessThan(Duration.ofSeconds(6).toNanos());
    }

    /** Makes a look from the floors due. */
    private void due() {
        for (int i = 0; i < 8; i++) {
            floors.ofClaim();
        }
    }

    private boolean scan(Floor... found) throws SQLException {
        awaitTurn();
        return floors.scan(from -> {
            scannedFrom.add(from);
            return start(found);
        });
    }

    private void awaitTurn() {
        for (long wait = floors.nanosUntilScan(); wait > 0; wait = floors.nanosUntilScan()) {
            LockSupport.parkNanos(wait);
        }
    }

    private List<Floor> current() {
        return Objects.requireNonNull(floors.ofClaim()).floors();
    }

    private static QueueStart start(Floor... floors) {
        return new QueueStart(Arrays.asList(floors));
    }

    private static Floor all(int priority, int second) {
        return new Floor(0, null, priority, new IndexPosition(NOW.plusSeconds(second), Long.MIN_VALUE));
    }

    private static Floor of(int queue, String name, int priority, int second) {
        return new Floor(queue, name, priority, new IndexPosition(NOW.plusSeconds(second), Long.MIN_VALUE));
    }
}
