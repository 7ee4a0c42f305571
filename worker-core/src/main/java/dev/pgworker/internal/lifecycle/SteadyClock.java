package dev.pgworker.internal.lifecycle;

import java.time.Clock;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;

/**
 * A clock that cannot be set: it goes as {@link System#nanoTime} does, from 1970 on. What is scheduled by it keeps its
 * time whatever becomes of the clock of this machine.
 */
final class SteadyClock extends Clock {

    private final long startedAt = System.nanoTime();

    @Override
    public Instant instant() {
        return Instant.EPOCH.plusNanos(System.nanoTime() - startedAt);
    }

    @Override
    public ZoneId getZone() {
        return ZoneOffset.UTC;
    }

    @Override
    public Clock withZone(ZoneId zone) {
        return this;
    }
}
