package dev.pgworker.internal.lifecycle;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import static org.assertj.core.api.Assertions.assertThat;

/** How long a worker may rely on its locks. Moments in the past stand for time that passes. */
@Tag("any-postgres")
class LeaseTest {

    private static final Duration THRESHOLD = Duration.ofMinutes(5);

    private final AtomicBoolean resilientJobRuns = new AtomicBoolean();
    private final AtomicInteger told = new AtomicInteger();
    private final Lease lease =
            new Lease(THRESHOLD, THRESHOLD.multipliedBy(3), resilientJobRuns::get, told::incrementAndGet);

    private static long ago(Duration time) {
        return System.nanoTime() - time.toNanos();
    }

    @Test
    void beforeTheFirstHeartbeatItIsNeitherHeldNorLost() {
        assertThat(lease.isHeld()).isFalse();
        assertThat(lease.isLost()).isFalse();
    }

    @Test
    void aHeartbeatHoldsItAndTellsOnceThatItHasBegun() {
        lease.renew(ago(Duration.ofMinutes(4)));
        lease.renew(System.nanoTime());

        assertThat(lease.isHeld()).isTrue();
        assertThat(told).hasValue(1);
    }

    @Test
    void itIsLostAThresholdAfterTheLastHeartbeatWasSentAndStaysLost() {
        lease.renew(ago(THRESHOLD));
        assertThat(lease.isLost()).isTrue();

        lease.renew(System.nanoTime());

        assertThat(lease.isLost()).isTrue();
        assertThat(lease.isHeld()).isFalse();
        assertThat(lease.isRevoked()).isFalse();
    }

    @Test
    void itEndsBeforeOthersMayTakeTheWorkerForDead() {
        lease.renew(ago(THRESHOLD.minusSeconds(4)));
        assertThat(lease.isLost()).isTrue();

        Lease later = new Lease(THRESHOLD, THRESHOLD);
        later.renew(ago(THRESHOLD.minusSeconds(6)));
        assertThat(later.isLost()).isFalse();

        Lease ofShortThreshold = new Lease(Duration.ofSeconds(40), Duration.ofSeconds(40));
        ofShortThreshold.renew(ago(Duration.ofSeconds(37)));
        assertThat(ofShortThreshold.isLost()).isTrue();
    }

    @Test
    void aHeartbeatAfterTheThresholdComesTooLateEvenIfNobodyHasLookedMeanwhile() {
        Lease shortLease = new Lease(Duration.ofNanos(1), Duration.ofNanos(1));
        shortLease.renew(System.nanoTime());

        shortLease.renew(System.nanoTime() + THRESHOLD.toNanos());

        assertThat(shortLease.isLost()).isTrue();
    }

    @Test
    void aResilientJobExtendsIt() {
        resilientJobRuns.set(true);
        lease.renew(ago(THRESHOLD.multipliedBy(2)));
        assertThat(lease.isHeld()).isTrue();

        resilientJobRuns.set(false);

        assertThat(lease.isLost()).isTrue();
    }

    @Test
    void notEvenAResilientJobExtendsItBeyondTheResilientThreshold() {
        resilientJobRuns.set(true);

        lease.renew(ago(THRESHOLD.multipliedBy(3)));

        assertThat(lease.isLost()).isTrue();
    }

    @Test
    void revokedItIsLostAtOnce() {
        lease.renew(System.nanoTime());
        told.set(0);

        lease.revoke();

        assertThat(lease.isLost()).isTrue();
        assertThat(lease.isRevoked()).isTrue();
        assertThat(told).hasValue(1);
    }

    @Test
    void itIsSteadyForTheTimeSinceAGap() {
        lease.renew(ago(Duration.ofMinutes(9)));
        assertThat(lease.isSteadyFor(Duration.ZERO)).as("lost").isFalse();

        Lease other = new Lease(THRESHOLD, THRESHOLD);
        other.renew(ago(Duration.ofMinutes(4)));
        other.renew(ago(Duration.ofMinutes(2)));
        assertThat(other.isSteadyFor(Duration.ofMinutes(4))).isTrue();

        other.renew(ago(Duration.ofMinutes(2)) + Duration.ofMinutes(4).toNanos());
        assertThat(other.isSteadyFor(Duration.ofSeconds(1)))
                .as("after a gap of four minutes")
                .isFalse();
    }
}
