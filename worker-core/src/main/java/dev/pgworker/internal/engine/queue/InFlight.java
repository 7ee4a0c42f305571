package dev.pgworker.internal.engine.queue;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Predicate;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.engine.queue.Unit.LocalJob;
import dev.pgworker.internal.store.Claim;
import dev.pgworker.internal.store.ClaimedJob;
import dev.pgworker.internal.store.HeldClaim;
import dev.pgworker.internal.store.HeldQueue;
import dev.pgworker.job.Job;

/**
 * The claims of one worker whose outcome is not known to be written, how many jobs of each {@link Unit} are among them, and the payloads
 * that are in memory. Thread-safe: its monitor guards these, and no other lock is taken under it.
 */
public final class InFlight {

    @GuardedBy("this") private final Map<Claim, LocalJob> unsettled = new HashMap<>();

    private final LockRenewals renewals = new LockRenewals();

    /** How many claims there are, and the size of their payloads in characters. Changed under the monitor, read by any thread. */
    private volatile int size;

    private volatile long payloadChars;

    @GuardedBy("this") private long settledInTotal;

    /** Called, holding no lock, when jobs with permits of limits are settled. */
    private final Runnable onPermits;

    InFlight(Runnable onPermits) {
        this.onPermits = onPermits;
    }

    synchronized void add(Collection<LocalJob> jobs) {
        long chars = 0;
        for (LocalJob local : jobs) {
            unsettled.put(Claim.of(local.job), local);
            local.unit.unsettled++;
            chars += local.job.payload().length();
        }
        size = unsettled.size();
        payloadChars += chars;
    }

    // What is here

    int size() {
        return size;
    }

    long payloadChars() {
        return payloadChars;
    }

    synchronized @Nullable LocalJob get(Claim claim) {
        return unsettled.get(claim);
    }

    /** Returns the claims of which this is true. */
    synchronized List<Claim> claims(Predicate<LocalJob> which) {
        List<Claim> claims = new ArrayList<>();
        unsettled.forEach((claim, local) -> {
            if (which.test(local)) {
                claims.add(claim);
            }
        });
        return claims;
    }

    /** Returns the units of the jobs of which this is true. */
    synchronized Set<Unit> units(Predicate<LocalJob> which) {
        Set<Unit> units = new HashSet<>();
        for (LocalJob local : unsettled.values()) {
            if (which.test(local)) {
                units.add(local.unit);
            }
        }
        return units;
    }

    /** Returns the job of a claim whose outcome is still to be written; null for any other. */
    public @Nullable Job job(Claim claim) {
        LocalJob local = get(claim);
        return local == null ? null : local.job;
    }

    /** Returns true if this worker knows why it has locked this queue. */
    public boolean containsQueue(int queueId) {
        return !claims(local -> local.unit.queueId == queueId).isEmpty();
    }

    /** Returns the claim whose lock has, or may have, this time and whose outcome is still to be written; null if there is none. */
    public @Nullable Claim claimOf(long jobId, Instant lockedAt) {
        Claim claim = new Claim(jobId, lockedAt);
        return get(claim) != null ? claim : renewals.claimOf(jobId, lockedAt);
    }

    /** Returns true if there is no claimed job whose outcome is still to be written. */
    public boolean isIdle() {
        return size() == 0;
    }

    // Locks and payloads

    /** Returns the locks of the claims that are here, as far as they have been renewed. */
    public LockRenewals renewals() {
        return renewals;
    }

    /** Returns the claims whose locks are older than that, each with a pending time to which it is to be renewed. */
    public List<Claim> toRenew(Duration age) {
        return claims(local -> renewals.isDue(Claim.of(local.job), local.at, age));
    }

    /** Takes payloads in, by the ids of the jobs of these claims. */
    public synchronized void setPayloads(List<Claim> claims, Map<Long, String> payloads) {
        for (Claim claim : claims) {
            LocalJob local = unsettled.get(claim);
            String payload = payloads.get(claim.jobId());
            if (local != null && payload != null && ClaimedJob.lacksPayload(local.job)) {
                local.job = local.job.withPayload(payload);
                payloadChars += payload.length();
            }
        }
    }

    // Outcomes are written

    /**
     * Returns the claims of these jobs as their rows have them.
     *
     * @param addressed whether with the addresses of the rows
     */
    public synchronized List<HeldClaim> held(List<Job> jobs, boolean addressed) {
        List<HeldClaim> claims = new ArrayList<>(jobs.size());
        for (Job job : jobs) {
            Claim claim = Claim.of(job);
            LocalJob local = addressed ? unsettled.get(claim) : null;
            claims.add(new HeldClaim(job.id(), renewals.current(claim), local == null ? null : local.address));
        }
        return claims;
    }

    /** Returns the queues of which nothing is left once these jobs are settled, as far as their locks have not been renewed. */
    public synchronized List<HeldQueue> queuesEndingWith(List<Job> jobs) {
        Map<Unit, Integer> counts = new HashMap<>();
        for (Job job : jobs) {
            LocalJob local = job.queueName() == null ? null : unsettled.get(Claim.of(job));
            if (local != null && renewals.of(Claim.of(job)) == null) {
                counts.merge(local.unit, 1, Integer::sum);
            }
        }
        List<HeldQueue> queues = new ArrayList<>();
        counts.forEach((unit, count) -> {
            if (unit.unsettled == count) {
                queues.add(unit.queue(unit.lockedAt));
            }
        });
        return queues;
    }

    /** Forgets jobs whose outcome is written; returns the queues of which nothing is left. */
    public List<HeldQueue> settled(Collection<Job> jobs) {
        AtomicBoolean anyLimited = new AtomicBoolean();
        List<HeldQueue> over = settled(jobs, anyLimited);
        if (anyLimited.get()) {
            onPermits.run();
        }
        return over;
    }

    private synchronized List<HeldQueue> settled(Collection<Job> jobs, AtomicBoolean anyLimited) {
        List<HeldQueue> over = new ArrayList<>();
        long chars = 0;
        for (Job job : jobs) {
            Claim claim = Claim.of(job);
            LocalJob local = unsettled.remove(claim);
            if (local != null) {
                chars += local.job.payload().length();
                settledInTotal++;
                anyLimited.compareAndSet(false, local.limited);
                if (--local.unit.unsettled == 0 && local.unit.queueId != 0) {
                    over.add(local.unit.queue(renewals.of(claim) == null ? local.unit.lockedAt : null));
                }
                renewals.forget(claim);
            }
        }
        size = unsettled.size();
        payloadChars -= chars;
        notifyAll();
        return over;
    }

    /** Counts jobs as settled that have never been here. */
    public synchronized void settledElsewhere(int jobs) {
        settledInTotal += jobs;
    }

    /** Returns how many jobs have been settled since the start. */
    public synchronized long settledInTotal() {
        return settledInTotal;
    }

    /**
     * How far a worker has come.
     *
     * @param settled as {@link #settledInTotal}
     * @param idle as {@link #isIdle}
     */
    public record Progress(long settled, boolean idle) {}

    /** Returns both as of one moment: a job that is not in flight any more is among the settled ones. */
    public synchronized Progress progress() {
        return new Progress(settledInTotal, unsettled.isEmpty());
    }

    /** Waits until the outcome of every claimed job is written; returns whether that is so. */
    public synchronized boolean awaitIdle(Duration limit) throws InterruptedException {
        long deadline = System.nanoTime() + limit.toNanos();
        for (long left = limit.toNanos(); left > 0 && !unsettled.isEmpty(); left = deadline - System.nanoTime()) {
            TimeUnit.NANOSECONDS.timedWait(this, left);
        }
        return unsettled.isEmpty();
    }

    /** Waits until a job is settled that was not when the given total was read, but no longer than the limit. */
    public synchronized void awaitSettledBeyond(long total, Duration limit) throws InterruptedException {
        if (settledInTotal == total) {
            TimeUnit.NANOSECONDS.timedWait(this, limit.toNanos());
        }
    }
}
