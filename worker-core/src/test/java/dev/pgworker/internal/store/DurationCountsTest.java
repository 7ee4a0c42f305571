package dev.pgworker.internal.store;

import java.time.Duration;
import java.util.Arrays;
import java.util.Random;
import java.util.stream.LongStream;

import org.junit.jupiter.api.Test;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

class DurationCountsTest {

    @Test
    void whatStandsForADurationIsNoFurtherFromItThanAFifth() {
        LongStream random = new Random(1).longs(100_000, 0, 63).map(bits -> new Random(bits).nextLong() >>> 1 >>> bits);
        LongStream.concat(random, LongStream.of(8_192, 12_287, 12_288, 16_383, 16_384, Long.MAX_VALUE))
                .filter(nanos -> nanos >= 8_192)
                .forEach(nanos -> {
                    Duration stands = DurationCounts.middle(DurationCounts.bucket(nanos));
                    assertThat(Math.abs((double) stands.toNanos() - nanos) / nanos)
                            .as("%s for %s ns", stands, nanos)
                            .isLessThan(0.2001);
                });
        assertThat(DurationCounts.bucket(8_191)).isZero();
        assertThat(DurationCounts.bucket(Long.MIN_VALUE)).isZero();
        assertThat(DurationCounts.bucket(Long.MAX_VALUE)).isEqualTo(DurationCounts.BUCKETS - 1);
    }

    @Test
    void quantilesAreThoseOfTheDurations() {
        long[] nanos = new Random(2)
                .longs(10_001, 1_000_000, 100_000_000_000L)
                .sorted()
                .toArray();
        DurationCounts counts = new DurationCounts();
        Arrays.stream(nanos).forEach(one -> counts.add(DurationCounts.bucket(one), 1));

        assertThat(counts.total()).isEqualTo(nanos.length);
        assertThat((double) counts.quantile(0.5).toNanos())
                .isCloseTo((double) nanos[5_000], within(0.2 * nanos[5_000]));
        assertThat((double) counts.quantile(0.95).toNanos())
                .isCloseTo((double) nanos[9_500], within(0.2 * nanos[9_500]));
        assertThat((double) counts.quantile(1).toNanos())
                .isCloseTo((double) nanos[10_000], within(0.2 * nanos[10_000]));
    }

    @Test
    void whatIsStoredIsReadAgainAndSeveralAreOne() {
        DurationCounts counts = new DurationCounts();
        counts.add(0, 3);
        counts.add(DurationCounts.BUCKETS - 1, 1L << 50);

        assertThat(counts.stored()).isEqualTo("{384,144115188075855972}");
        assertThat(DurationCounts.of(counts.stored()).stored()).isEqualTo(counts.stored());
        assertThat(DurationCounts.of("{384},{},{384,129}").stored()).isEqualTo("{768,129}");
        assertThat(DurationCounts.of("{}").total()).isZero();
        assertThat(new DurationCounts().stored()).isEqualTo("{}");
    }
}
