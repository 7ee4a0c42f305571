package dev.pgworker.internal.engine.queue;

import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.engine.queue.Unit.LocalJob;
import dev.pgworker.internal.store.Claim;
import dev.pgworker.internal.store.RowLock;
import dev.pgworker.job.Job;

/**
 * The claims of one worker whose outcome is not known to be written, and the locks of those that were renewed because they
 * take long. Guarded by the {@link LocalQueue} that it belongs to.
 */
final class InFlight {

    private final Map<Claim, LocalJob> unsettled = new HashMap<>();

    /** The size of the payloads, in characters. */
    private long payloadChars;

    private long settledInTotal;

    void add(LocalJob local) {
        unsettled.put(Claim.of(local.job), local);
        payloadChars += local.job.payload().length();
    }

    /** Forgets a job whose outcome is written; returns null if it is not here. */
    @Nullable LocalJob remove(Job job) {
        LocalJob local = unsettled.remove(Claim.of(job));
        if (local != null) {
            payloadChars -= local.job.payload().length();
            settledInTotal++;
        }
        return local;
    }

    void setPayload(LocalJob local, String payload) {
        local.job = local.job.withPayload(payload);
        payloadChars += payload.length();
    }

    long settledInTotal() {
        return settledInTotal;
    }

    void settledElsewhere(int jobs) {
        settledInTotal += jobs;
    }

    int size() {
        return unsettled.size();
    }

    long payloadChars() {
        return payloadChars;
    }

    @Nullable LocalJob get(Claim claim) {
        return unsettled.get(claim);
    }

    Collection<LocalJob> all() {
        return unsettled.values();
    }

    /** Returns the claims whose jobs wait for a handler, or the others. */
    List<Claim> claims(boolean waiting) {
        List<Claim> claims = new ArrayList<>();
        unsettled.forEach((claim, local) -> {
            if ((local.stage == LocalJob.Stage.WAITING) == waiting) {
                claims.add(claim);
            }
        });
        return claims;
    }

    /** Returns the lock of a claim; null if it has not been renewed. */
    @Nullable RowLock lockOf(Claim claim) {
        LocalJob local = unsettled.get(claim);
        return local == null ? null : local.lock;
    }

    /** Returns the claim whose lock has, or may have, been renewed to this time; null if there is none. */
    @Nullable Claim renewedTo(long jobId, Instant lockedAt) {
        return unsettled.values().stream()
                .filter(local -> local.job.id() == jobId && local.lock != null && local.lock.has(lockedAt))
                .map(local -> Claim.of(local.job))
                .findFirst()
                .orElse(null);
    }

    /** As {@link LocalQueue#toRenew}. */
    List<Claim> toRenew(Duration age) {
        long time = System.nanoTime();
        List<Claim> claims = new ArrayList<>();
        unsettled.forEach((claim, local) -> {
            if (time - local.renewedAt >= age.toNanos()) {
                Instant current = local.lock == null ? claim.lockedAt() : local.lock.current();
                if (local.lock == null || local.lock.pending() == null) {
                    long micros = TimeUnit.NANOSECONDS.toMicros(time - local.renewedAt);
                    local.lock = new RowLock(current, current.plus(micros, ChronoUnit.MICROS));
                }
                claims.add(claim);
            }
        });
        return claims;
    }

    /** As {@link LocalQueue#hasPendingLock}. */
    boolean takePending(Claim claim) {
        LocalJob local = unsettled.get(claim);
        if (local == null || local.lock == null || local.lock.pending() == null) {
            return false;
        }
        local.lock = new RowLock(local.lock.pending(), null);
        return true;
    }

    /** As {@link LocalQueue#renewed}. */
    void renewed(List<Claim> claims) {
        long time = System.nanoTime();
        for (Claim claim : claims) {
            LocalJob local = unsettled.get(claim);
            if (local != null && local.lock != null && local.lock.pending() != null) {
                local.lock = new RowLock(local.lock.pending(), null);
                local.renewedAt = time;
            }
        }
    }
}
