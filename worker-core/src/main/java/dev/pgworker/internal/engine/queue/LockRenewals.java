package dev.pgworker.internal.engine.queue;

import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Collection;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.store.Claim;
import dev.pgworker.internal.store.RenewedLocks;
import dev.pgworker.internal.store.RenewedLocks.RowLock;

/**
 * The locks of claims in flight that were renewed because their jobs take long. {@code worker-reconcile} renews them; any thread may ask.
 * A claim is forgotten when its job is settled.
 */
public final class LockRenewals implements RenewedLocks {

    private final Map<Claim, Renewal> renewals = new ConcurrentHashMap<>();

    /** A lock, and the {@link System#nanoTime} since which it has its current time. */
    private record Renewal(RowLock lock, long since) {}

    @Override
    public @Nullable RowLock of(Claim claim) {
        Renewal renewal = renewals.get(claim);
        return renewal == null ? null : renewal.lock;
    }

    /** Returns the claim whose lock has, or may have, been renewed to this time; null if there is none. */
    @Nullable Claim claimOf(long jobId, Instant lockedAt) {
        return renewals.entrySet().stream()
                .filter(one ->
                        one.getKey().jobId() == jobId && one.getValue().lock.has(lockedAt))
                .map(Map.Entry::getKey)
                .findFirst()
                .orElse(null);
    }

    /**
     * Gives a lock that is older than that a pending time, which stays the same until {@link #renewed} is called: it may be on its way.
     *
     * @param since when the claim was taken in, by {@link System#nanoTime}
     * @return whether the lock is to be renewed
     */
    boolean isDue(Claim claim, long since, Duration age) {
        Renewal last = renewals.getOrDefault(claim, new Renewal(new RowLock(claim.lockedAt(), null), since));
        long time = System.nanoTime();
        if (time - last.since < age.toNanos()) {
            return false;
        }
        if (last.lock.pending() == null) {
            Instant current = last.lock.current();
            long micros = TimeUnit.NANOSECONDS.toMicros(time - last.since);
            renewals.put(claim, new Renewal(new RowLock(current, current.plus(micros, ChronoUnit.MICROS)), last.since));
        }
        return true;
    }

    /** Takes note that the locks of these claims have been renewed. */
    public void renewed(Collection<Claim> claims) {
        claims.forEach(this::takePending);
    }

    /** Takes a lock to have its pending time; returns whether there is one, because the lock may have been renewed without an answer. */
    public boolean takePending(Claim claim) {
        Renewal before = renewals.get(claim);
        Instant pending = before == null ? null : before.lock.pending();
        return before != null
                && pending != null
                && renewals.replace(claim, before, new Renewal(new RowLock(pending, null), System.nanoTime()));
    }

    void forget(Claim claim) {
        renewals.remove(claim);
    }
}
