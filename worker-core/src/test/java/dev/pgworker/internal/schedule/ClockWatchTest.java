package dev.pgworker.internal.schedule;

import java.time.Instant;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import static org.assertj.core.api.Assertions.assertThat;

@Tag("any-postgres")
class ClockWatchTest {

    private static final Instant NOON = Instant.parse("2026-03-01T12:00:00Z");

    @Test
    void tellsOnceThatAClockWasSetBackUntilItHasCaughtUp() {
        ClockWatch watch = new ClockWatch();

        assertThat(watch.isSetBack(NOON)).isFalse();
        assertThat(watch.isSetBack(NOON.minusSeconds(5)))
                .as("within the tolerance")
                .isFalse();
        assertThat(watch.isSetBack(NOON.minusSeconds(6))).isTrue();
        assertThat(watch.isSetBack(NOON.minusSeconds(900))).isFalse();
        assertThat(watch.isSetBack(NOON.minusSeconds(1))).isFalse();
        assertThat(watch.latest()).isEqualTo(NOON);
        assertThat(watch.isSetBack(NOON.plusSeconds(1))).isFalse();
        assertThat(watch.isSetBack(NOON.minusSeconds(10))).isTrue();
    }
}
