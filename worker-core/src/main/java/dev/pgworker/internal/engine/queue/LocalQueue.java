package dev.pgworker.internal.engine.queue;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.concurrent.TimeUnit;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.engine.HeldBack;
import dev.pgworker.internal.engine.queue.RunnerSlots.Runner;
import dev.pgworker.internal.engine.queue.Unit.LocalJob;
import dev.pgworker.internal.engine.queue.Unit.LocalJob.Stage;
import dev.pgworker.internal.store.Claim;
import dev.pgworker.internal.store.Claimed;
import dev.pgworker.internal.store.ClaimedJob;
import dev.pgworker.internal.store.HeldClaim;
import dev.pgworker.internal.store.HeldQueue;
import dev.pgworker.internal.store.RenewedLocks;
import dev.pgworker.internal.store.RowLock;
import dev.pgworker.job.Job;

/**
 * The jobs that this worker has claimed, from the claim until their outcome is written: those that wait for a handler,
 * in the order in which they are to start, those that run, and those whose outcome is not written yet.
 *
 * <p>Jobs are claimed ahead of free handlers as far as handlers are measured to be fast, so that slow ones leave jobs to
 * other workers and to more urgent ones. A {@link Unit} has one handler: a job, or those of a named queue that were claimed together. What
 * has waited too long is not started but given back, together with those behind it in its queue: the database may have
 * decided that this worker is dead.
 *
 * <p>Thread-safe. One lock, that of this object, guards all of it, what is {@link InFlight} and the {@link RunnerSlots} included. Nothing is
 * called under the lock that takes another one or waits.
 */
public final class LocalQueue implements RenewedLocks {

    /** The payloads that may be here, unless a single job or the number of handlers needs more: a share of the heap. */
    private static final long MOST_BYTES =
            Math.min(64L << 20, Math.max(1L << 20, Runtime.getRuntime().maxMemory() / 16));

    /** For so long after one of a task with a limit of starts has come, no jobs are claimed ahead. */
    private static final long NONE_AHEAD_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** How many jobs a claim takes of each queue at least, if they are fast. */
    private static final int LEAST_SHARE = 12;

    /**
     * How many jobs may be here.
     *
     * @param concurrency how many run at the same time
     * @param ahead how many may wait for a handler besides
     * @param timeToLive how long a job may wait
     * @param longestRun how many of a named queue are claimed together
     */
    public record Limits(int concurrency, int ahead, Duration timeToLive, int longestRun) {}

    private final Limits limits;
    private final HeldBack held;
    private final FreedQueues freedQueues;

    /** Called, holding no lock of this, when there is room again or jobs are to be given back. */
    private final Runnable onChange;

    @GuardedBy("this") private final PriorityQueue<Unit> ready = new PriorityQueue<>();

    @GuardedBy("this") private final InFlight inFlight = new InFlight();

    @GuardedBy("this") private final RunnerSlots slots;

    /** Jobs that wait for a handler: those of the ready units, and behind those that run. */
    @GuardedBy("this") private int waiting;

    /** Set once a lock is renewed, so that the usual case needs no lock. */
    private volatile boolean anyRenewed;

    /** Jobs for which a claim that is under way has room. */
    @GuardedBy("this") private int reserved;

    /** Jobs that are not to be started, for they have waited too long or are held back, until somebody gives them back. */
    @GuardedBy("this") private List<Job> expired = new ArrayList<>();

    /** No job has waited too long before this {@link System#nanoTime}. */
    @GuardedBy("this") private long expiryAt;

    @GuardedBy("this") private boolean mayExpire;

    @GuardedBy("this") private final Pace pace = new Pace();

    @GuardedBy("this") private final Map<String, Pace> paceOfTask = new HashMap<>();

    @GuardedBy("this") private int share = LEAST_SHARE;

    @GuardedBy("this") private boolean closed;

    /** Whether a job has become ready since one was last started. */
    @GuardedBy("this") private boolean anyStartable;

    /** When the first of them did, by {@link System#nanoTime}. */
    @GuardedBy("this") private long startableSince;

    /** When a job came of a task with a limit of starts, by {@link System#nanoTime}. */
    @GuardedBy("this") private @Nullable Long ratedAt;

    /**
     * Creates an empty queue.
     *
     * @param held what is not to be started
     * @param onChange called, on any thread, when there is room again or jobs are to be given back; must return soon
     */
    public LocalQueue(Limits limits, HeldBack held, FreedQueues freedQueues, Runnable onChange) {
        this.limits = limits;
        this.held = held;
        this.freedQueues = freedQueues;
        this.onChange = onChange;
        slots = new RunnerSlots(limits.concurrency);
    }

    // What may be claimed

    /** Returns how many jobs may be claimed; 0 while enough jobs wait, so that claims are not small. */
    public synchronized int free() {
        int ahead = ahead();
        int free = Math.max(0, limits.concurrency - slots.running());
        if (closed || inFlight.size() > 4 * (limits.concurrency + ahead)) {
            return 0;
        } else if (ready.isEmpty() && reserved == 0 && free > 0) {
            return Math.max(free, free + ahead - waiting);
        }
        int room = free + ahead - waiting - reserved;
        return (waiting + reserved) * 2 > ahead + free ? 0 : Math.max(0, room);
    }

    /** Keeps room for a claim until {@link #unreserve}; returns for how many jobs, as {@link #free}. */
    public synchronized int reserve() {
        int room = free();
        reserved += room;
        return room;
    }

    /** Gives back what {@link #reserve} has returned; the jobs that were claimed are here. */
    public synchronized void unreserve(int room) {
        reserved -= room;
    }

    @GuardedBy("this") private int ahead() {
        boolean rated = ratedAt != null && System.nanoTime() - ratedAt < NONE_AHEAD_NANOS;
        return rated || inFlight.payloadChars() >= MOST_BYTES
                ? 0
                : pace.jobs(limits.concurrency, Pace.AHEAD_NANOS, limits.ahead);
    }

    /** Returns how many jobs of a queue to claim together if the first is of this task, in a claim of so many. */
    public synchronized int runOf(String taskIdentifier, int wanted) {
        Pace ofTask = paceOfTask.get(taskIdentifier);
        if (ofTask == null) {
            return 1;
        }
        int handlers = Math.max(1, limits.concurrency - slots.running() - ready.size());
        int run = ofTask.jobs(1, Pace.RUN_NANOS, limits.longestRun);
        return Math.max(1, Math.min(run, (wanted + handlers - 1) / handlers));
    }

    /** Returns how many jobs of a queue a claim takes at most, as long as other queues have jobs. */
    public synchronized int share() {
        return share;
    }

    /** Learns from a claim whether shares of that size fill claims: with a few long queues more is taken of each. */
    public synchronized void claimed(Claimed claimed, boolean full) {
        int queued = 0;
        Set<Integer> queues = new HashSet<>();
        for (ClaimedJob one : claimed.jobs()) {
            if (one.queueId() != 0) {
                queued++;
                queues.add(one.queueId());
            }
        }
        if (queued == 0) {
            return;
        }
        queues.forEach(freedQueues::claimed);
        if (full) {
            share = Math.max(LEAST_SHARE, share / 2);
        } else if (queued >= share * queues.size()) {
            share = Math.min(limits.longestRun, share * 2);
        }
    }

    // Jobs come in

    /**
     * Takes claimed jobs in, which count as claimed even if the queue is closed.
     *
     * @return the runners to start, or null if the queue is closed and the jobs are to be given back
     */
    public @Nullable List<Runner> add(List<ClaimedJob> jobs) {
        boolean newlyExpired;
        List<Runner> toStart;
        synchronized (this) {
            boolean noneExpired = expired.isEmpty();
            takeIn(jobs, !closed);
            newlyExpired = noneExpired && !expired.isEmpty();
            toStart = closed ? null : missingRunners();
        }
        if (newlyExpired) {
            onChange.run();
        }
        return toStart;
    }

    /** Takes claimed jobs in that are not to run: what becomes of them is decided already. */
    public synchronized void addEnded(Collection<ClaimedJob> jobs) {
        takeIn(jobs, false);
    }

    @GuardedBy("this") private void takeIn(Collection<ClaimedJob> jobs, boolean toStart) {
        long time = System.nanoTime();
        Map<Integer, Unit> runs = new HashMap<>();
        List<Unit> units = new ArrayList<>(jobs.size());
        for (ClaimedJob job : jobs) {
            Unit unit = job.queueId() == 0 ? new Unit(job) : runs.computeIfAbsent(job.queueId(), id -> new Unit(job));
            LocalJob local = new LocalJob(job, unit, time);
            if (unit.unsettled++ == 0) {
                units.add(unit);
            }
            inFlight.add(local);
            if (toStart) {
                if (held.holds(job.job())) {
                    putAside(local);
                } else {
                    local.stage = Stage.WAITING;
                    unit.waiting.add(local);
                    waiting++;
                    noteExpiry(local);
                }
                if (held.isRated(job.job())) {
                    ratedAt = time;
                }
            }
        }
        units.forEach(this::makeReady);
    }

    @GuardedBy("this") private void makeReady(Unit unit) {
        if (unit.waiting.isEmpty()) {
            return;
        }
        ready.add(unit);
        if (!anyStartable) {
            anyStartable = true;
            startableSince = System.nanoTime();
        }
    }

    // Runners take jobs

    /** Signs on as many runners as the ready jobs need and the concurrency allows; the caller starts them. */
    public synchronized List<Runner> missingRunners() {
        return slots.signOnFor(ready.size());
    }

    /**
     * Begins a runner; returns false if it has begun already. One that was taken for lost begins all the same, in place of
     * another one that has not begun: an executor may just be late.
     */
    public synchronized boolean begin(Runner runner) {
        if (!runner.isBegun() && !slots.contains(runner)) {
            if (closed || ready.isEmpty() || !slots.signOnLate(runner)) {
                return false;
            }
        }
        return slots.begin(runner);
    }

    /**
     * Returns the next job for a runner, or null after having signed it off. The job that it has run before has ended.
     *
     * @param nanos how long that took
     */
    public @Nullable Job next(Runner runner, long nanos) {
        boolean worthALook;
        Job next = null;
        synchronized (this) {
            boolean noRoom = free() == 0;
            measure(runner, nanos);
            Unit unit = slots.end(runner);
            boolean noneExpired = expired.isEmpty();
            LocalJob local = slots.contains(runner) ? poll(unit) : null;
            if (local == null) {
                if (unit != null) {
                    makeReady(unit);
                }
                signOff(runner);
            } else {
                next = local.job;
                slots.start(runner, local);
                anyStartable = !ready.isEmpty();
                startableSince = System.nanoTime();
            }
            worthALook = (noRoom && free() > 0) || (noneExpired && !expired.isEmpty());
        }
        if (worthALook) {
            onChange.run();
        }
        return next;
    }

    @GuardedBy("this") private void measure(Runner runner, long nanos) {
        LocalJob local = runner.job();
        if (local == null) {
            return;
        }
        pace.ran(nanos);
        if (local.unit.queueId != 0) {
            paceOfTask
                    .computeIfAbsent(local.job.taskIdentifier(), task -> new Pace())
                    .ran(nanos);
        }
    }

    /** Takes the next job of this unit, or of the first one that is ready. */
    @GuardedBy("this") private @Nullable LocalJob poll(@Nullable Unit unit) {
        long time = System.nanoTime();
        for (Unit current = unit == null || unit.waiting.isEmpty() ? ready.poll() : unit;
                current != null;
                current = ready.poll()) {
            LocalJob local = current.waiting.element();
            if (time - local.at <= limits.timeToLive.toNanos()) {
                current.waiting.remove();
                waiting--;
                local.stage = Stage.TAKEN;
                return local;
            }
            expire(current);
        }
        return null;
    }

    /** Returns true if a runner is signed on. */
    public synchronized boolean isSignedOn(Runner runner) {
        return slots.contains(runner);
    }

    /** Signs a runner off, if it is not, together with a job that it may have; those behind that are for another one. */
    public synchronized void signOff(Runner runner) {
        Unit unit = slots.end(runner);
        if (unit != null) {
            makeReady(unit);
        }
        if (slots.signOff(runner)) {
            notifyAll();
        }
    }

    /** Signs a runner off that the executor did not take, unless it has begun it all the same. */
    public synchronized void signOffRefused(Runner runner) {
        if (!runner.isBegun()) {
            signOff(runner);
        }
    }

    /** Signs a runner off that is stuck in a job; returns another one to start in its place, or null if none is needed. */
    public @Nullable Runner replace(Runner stuck, long nanos) {
        Runner replacement;
        synchronized (this) {
            measure(stuck, nanos);
            signOff(stuck);
            replacement = ready.isEmpty() || slots.isFull() ? null : slots.signOn();
        }
        onChange.run();
        return replacement;
    }

    /**
     * Signs runners off that the executor has not begun for so long; others may take their place.
     *
     * @return how many
     */
    public synchronized int signOffUnbegun(Duration longerThan) {
        List<Runner> unbegun = slots.unbegun(longerThan);
        unbegun.forEach(this::signOff);
        return unbegun.size();
    }

    /** Waits until no handler runs; returns whether that is so. Meaningful once the queue is closed. */
    public synchronized boolean awaitNoRunners(Duration limit) throws InterruptedException {
        long deadline = System.nanoTime() + limit.toNanos();
        while (slots.anyBegun()) {
            long left = deadline - System.nanoTime();
            if (left <= 0) {
                return false;
            }
            TimeUnit.NANOSECONDS.timedWait(this, left);
        }
        return true;
    }

    // Payloads

    /** Returns the claim of this job and those of some others that wait and have no payload yet; none if this one has. */
    public synchronized List<Claim> withoutPayload(Job job, int most) {
        LocalJob local = inFlight.get(Claim.of(job));
        if (local == null || !ClaimedJob.lacksPayload(local.job)) {
            return List.of();
        }
        List<Claim> claims = new ArrayList<>();
        claims.add(Claim.of(job));
        for (Unit unit : ready) {
            for (LocalJob other : unit.waiting) {
                if (claims.size() < most && ClaimedJob.lacksPayload(other.job)) {
                    claims.add(Claim.of(other.job));
                }
            }
            if (claims.size() >= most) {
                break;
            }
        }
        return claims;
    }

    /** Takes payloads in, by the ids of the jobs of these claims. */
    public synchronized void setPayloads(List<Claim> claims, Map<Long, String> payloads) {
        for (Claim claim : claims) {
            LocalJob local = inFlight.get(claim);
            String payload = payloads.get(claim.jobId());
            if (local != null && payload != null && ClaimedJob.lacksPayload(local.job)) {
                inFlight.setPayload(local, payload);
            }
        }
    }

    // Jobs expire

    /** Puts all jobs of a unit aside that have not been handed out. */
    @GuardedBy("this") private void expire(Unit unit) {
        for (LocalJob local : takeWaiting(unit)) {
            putAside(local);
            Pace ofTask = paceOfTask.get(local.job.taskIdentifier());
            if (ofTask != null) {
                ofTask.doubt();
            }
        }
        pace.doubt();
    }

    @GuardedBy("this") private List<LocalJob> takeWaiting(Unit unit) {
        List<LocalJob> taken = unit.takeWaiting();
        waiting -= taken.size();
        ready.remove(unit);
        return taken;
    }

    @GuardedBy("this") private void putAside(LocalJob local) {
        local.stage = Stage.EXPIRED;
        expired.add(local.job);
    }

    /** Returns the units of which jobs wait, behind others that run, too. */
    @GuardedBy("this") private Set<Unit> waitingUnits() {
        Set<Unit> units = new HashSet<>(ready);
        slots.running(local -> units.add(local.unit));
        units.removeIf(unit -> unit.waiting.isEmpty());
        return units;
    }

    /** Puts aside what waits for a handler and is held back: {@link #takeExpired} returns it. */
    public void putHeldAside() {
        synchronized (this) {
            for (Unit unit : waitingUnits()) {
                if (unit.waiting.stream().anyMatch(local -> held.holds(local.job))) {
                    takeWaiting(unit).forEach(this::putAside);
                }
            }
        }
        onChange.run();
    }

    /** Returns the jobs that have waited too long or are held back; the caller gives them back. */
    public synchronized List<Job> takeExpired() {
        long time = System.nanoTime();
        if (mayExpire && time - expiryAt > 0) {
            mayExpire = false;
            for (Unit unit : waitingUnits()) {
                if (time - unit.waiting.element().at > limits.timeToLive.toNanos()) {
                    expire(unit);
                } else {
                    noteExpiry(unit.waiting.element());
                }
            }
        }
        List<Job> taken = expired;
        expired = new ArrayList<>();
        return taken;
    }

    @GuardedBy("this") private void noteExpiry(LocalJob local) {
        long at = local.at + limits.timeToLive.toNanos();
        if (!mayExpire || at - expiryAt < 0) {
            expiryAt = at;
        }
        mayExpire = true;
    }

    /** Returns how long to wait until a job may have waited too long; a very long time if none waits. */
    public synchronized long nanosUntilExpired() {
        if (!expired.isEmpty()) {
            return 0;
        }
        return mayExpire ? Math.max(0, expiryAt - System.nanoTime() + 1) : Long.MAX_VALUE;
    }

    // Jobs go out

    /** Returns the claims of these jobs as their rows have them. */
    public synchronized List<HeldClaim> held(List<Job> jobs) {
        List<HeldClaim> claims = new ArrayList<>(jobs.size());
        for (Job job : jobs) {
            Claim claim = Claim.of(job);
            LocalJob local = inFlight.get(claim);
            RowLock lock = local == null ? null : local.lock;
            claims.add(new HeldClaim(
                    job.id(), lock == null ? claim.lockedAt() : lock.current(), local == null ? null : local.address));
        }
        return claims;
    }

    /** Returns the queues of which nothing is left once these jobs are settled, as far as their locks have not been renewed. */
    public synchronized List<HeldQueue> queuesEndingWith(List<Job> jobs) {
        Map<Unit, Integer> counts = new HashMap<>();
        for (Job job : jobs) {
            LocalJob local = job.queueName() == null ? null : inFlight.get(Claim.of(job));
            if (local != null && local.lock == null) {
                counts.merge(local.unit, 1, Integer::sum);
            }
        }
        List<HeldQueue> queues = new ArrayList<>();
        counts.forEach((unit, count) -> {
            if (!unit.freed && unit.unsettled == count) {
                queues.add(unit.queue(unit.lockedAt));
            }
        });
        return queues;
    }

    /** Takes note that queues have been freed with the end of these jobs. */
    public synchronized void freed(List<Job> jobs, List<HeldQueue> queues) {
        Set<Integer> ids = new HashSet<>();
        queues.forEach(queue -> ids.add(queue.id()));
        for (Job job : jobs) {
            LocalJob local = job.queueName() == null ? null : inFlight.get(Claim.of(job));
            if (local != null && ids.contains(local.unit.queueId)) {
                local.unit.freed = true;
            }
        }
    }

    /** Forgets jobs whose outcome is written; returns the queues of which nothing is left and that are to be freed. */
    public synchronized List<HeldQueue> settled(Collection<Job> jobs) {
        List<HeldQueue> over = new ArrayList<>();
        for (Job job : jobs) {
            LocalJob local = inFlight.remove(job);
            if (local != null && --local.unit.unsettled == 0 && local.unit.queueId != 0 && !local.unit.freed) {
                over.add(local.unit.queue(local.lock == null ? local.unit.lockedAt : null));
            }
        }
        notifyAll();
        return over;
    }

    /** Takes jobs out that wait for a handler although they are not this worker's; the caller settles them. */
    public synchronized List<Job> remove(Collection<Claim> lost) {
        List<Job> removed = new ArrayList<>();
        for (Claim claim : lost) {
            LocalJob local = inFlight.get(claim);
            if (local != null && local.stage == Stage.WAITING) {
                local.stage = Stage.TAKEN;
                removed.add(local.job);
                waiting--;
                local.unit.waiting.remove(local);
                if (local.unit.waiting.isEmpty()) {
                    ready.remove(local.unit);
                }
            }
        }
        return removed;
    }

    /** Lets no further job start and returns those that have not started. */
    public synchronized List<Job> close() {
        closed = true;
        List<Job> unstarted = expired;
        expired = new ArrayList<>();
        for (Unit unit : waitingUnits()) {
            for (LocalJob local : takeWaiting(unit)) {
                local.stage = Stage.TAKEN;
                unstarted.add(local.job);
            }
        }
        mayExpire = false;
        return unstarted;
    }

    // What is here

    /** Returns true if the outcome of this claim is still to be written. */
    public synchronized boolean contains(Claim claim) {
        return inFlight.get(claim) != null;
    }

    /** Returns true if this worker knows why it has locked this queue. */
    public synchronized boolean containsQueue(int queueId) {
        return inFlight.all().stream().anyMatch(local -> local.unit.queueId == queueId);
    }

    /** Returns the claims whose jobs wait for a handler. */
    public synchronized List<Claim> waiting() {
        return inFlight.claims(true);
    }

    /** Returns the claims whose jobs somebody has taken from here, to run them or to give them back. */
    public synchronized List<Claim> taken() {
        List<Claim> claims = inFlight.claims(false);
        expired.forEach(job -> claims.remove(Claim.of(job)));
        return claims;
    }

    /** Returns the job of a claim whose outcome is still to be written; null for any other. */
    public synchronized @Nullable Job job(Claim claim) {
        LocalJob local = inFlight.get(claim);
        return local == null ? null : local.job;
    }

    /** Returns the claim whose lock has, or may have, this time and whose outcome is still to be written; null if there is none. */
    public synchronized @Nullable Claim claimOf(long jobId, Instant lockedAt) {
        Claim claim = new Claim(jobId, lockedAt);
        return inFlight.get(claim) != null ? claim : anyRenewed ? inFlight.renewedTo(jobId, lockedAt) : null;
    }

    @Override
    public @Nullable RowLock of(Claim claim) {
        if (!anyRenewed) {
            return null;
        }
        synchronized (this) {
            return inFlight.lockOf(claim);
        }
    }

    /**
     * Returns the claims whose locks are older than that, each with the time to which it is to be renewed, which stays the
     * same until {@link #renewed} is called: it may be on its way.
     */
    public synchronized List<Claim> toRenew(Duration age) {
        List<Claim> claims = inFlight.toRenew(age);
        anyRenewed |= !claims.isEmpty();
        return claims;
    }

    /** Returns whether the lock may have been renewed without an answer, so that it has another time, which it is taken to have then. */
    public synchronized boolean hasPendingLock(Claim claim) {
        return inFlight.takePending(claim);
    }

    /** Takes note that the locks of these claims have been renewed. */
    public synchronized void renewed(List<Claim> claims) {
        inFlight.renewed(claims);
    }

    /**
     * How much a worker has to do.
     *
     * @param running jobs whose handler runs
     * @param waiting claimed jobs that wait for a handler
     * @param unwritten jobs that have ended, or are given back, and whose outcome is not written
     */
    public record Load(int running, int waiting, int unwritten) {}

    /** Returns how much the worker has to do. */
    public synchronized Load load() {
        return new Load(slots.running(), waiting, Math.max(0, inFlight.size() - waiting - slots.running()));
    }

    /** Returns how long no job has started although a handler is free; zero while all handlers run. */
    public synchronized Duration sinceStart() {
        return slots.sinceStart();
    }

    /**
     * Returns how long jobs have been here that could start, without any having started; zero if there are none. Those that
     * are given back after a while and claimed again have been here all the time.
     */
    public synchronized Duration sinceStartable() {
        boolean nothingToStart = ready.isEmpty() && inFlight.size() - waiting - slots.running() <= 0;
        return anyStartable && !nothingToStart ? Duration.ofNanos(System.nanoTime() - startableSince) : Duration.ZERO;
    }

    /** Returns true if there is no claimed job whose outcome is still to be written. */
    public synchronized boolean isIdle() {
        return inFlight.size() == 0;
    }

    /** Waits until the outcome of every claimed job is written; returns whether that is so. */
    public synchronized boolean awaitIdle(Duration limit) throws InterruptedException {
        long deadline = System.nanoTime() + limit.toNanos();
        while (inFlight.size() > 0) {
            long left = deadline - System.nanoTime();
            if (left <= 0) {
                return false;
            }
            TimeUnit.NANOSECONDS.timedWait(this, left);
        }
        return true;
    }

    /** Returns how many jobs have been settled since the start. */
    public synchronized long settledInTotal() {
        return inFlight.settledInTotal();
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
        return new Progress(inFlight.settledInTotal(), inFlight.size() == 0);
    }

    /** Counts jobs as settled that have never been here. */
    public synchronized void settledElsewhere(int jobs) {
        inFlight.settledElsewhere(jobs);
    }

    /** Waits until a job is settled that was not when the given total was read, but no longer than the limit. */
    public synchronized void awaitSettledBeyond(long total, Duration limit) throws InterruptedException {
        if (inFlight.settledInTotal() == total) {
            TimeUnit.NANOSECONDS.timedWait(this, limit.toNanos());
        }
    }
}
