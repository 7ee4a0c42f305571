package dev.pgworker.internal.engine.queue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.engine.HeldBack;
import dev.pgworker.internal.engine.queue.RunnerSlots.Runner;
import dev.pgworker.internal.engine.queue.Unit.LocalJob;
import dev.pgworker.internal.store.Claim;
import dev.pgworker.internal.store.Claimed;
import dev.pgworker.internal.store.ClaimedJob;
import dev.pgworker.job.Job;

/**
 * The jobs that wait for a handler of this worker, in the order in which they are to start, those that have waited too long, and the
 * runners of those that run. All that are claimed and not settled are {@link InFlight}.
 *
 * <p>Jobs are claimed ahead of free handlers as far as handlers are measured to be fast, so that slow ones leave jobs to
 * other workers and to more urgent ones. A {@link Unit} has one handler: a job, or those of a named queue that were claimed together. What
 * has waited too long is not started but given back, together with those behind it in its queue: the database may have
 * decided that this worker is dead.
 *
 * <p>Thread-safe. One lock, that of this object, guards all of it: {@link ReadyUnits}, {@link RunnerSlots} and {@link ClaimSizes}. Nothing
 * is called under the lock that waits, or takes another lock than those of {@link InFlight} and {@link FreedQueues}.
 */
public final class LocalQueue {

    /** The payloads that may be here, unless a single job or the number of handlers needs more: a share of the heap. */
    private static final long MOST_BYTES =
            Math.min(64L << 20, Math.max(1L << 20, Runtime.getRuntime().maxMemory() / 16));

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

    @GuardedBy("this") private final ReadyUnits ready = new ReadyUnits();

    private final InFlight inFlight;

    @GuardedBy("this") private final RunnerSlots slots;

    @GuardedBy("this") private final ClaimSizes sizes;

    /** Jobs for which a claim that is under way has room. */
    @GuardedBy("this") private int reserved;

    /** Jobs that are not to be started, for they have waited too long or are held back, until they are given back. */
    @GuardedBy("this") private List<Job> expired = new ArrayList<>();

    /** No job has waited too long before this {@link System#nanoTime}. */
    @GuardedBy("this") private long expiryAt = System.nanoTime();

    @GuardedBy("this") private boolean closed;

    /**
     * Creates an empty queue.
     *
     * @param held what is not to be started
     * @param onChange called, on any thread, when there is room again or jobs are to be given back; must return soon
     * @param onPermits called, on any thread, when permits of limits have become free; must return soon
     */
    public LocalQueue(Limits limits, HeldBack held, FreedQueues freedQueues, Runnable onChange, Runnable onPermits) {
        this.limits = limits;
        this.held = held;
        this.freedQueues = freedQueues;
        this.onChange = onChange;
        inFlight = new InFlight(onPermits);
        slots = new RunnerSlots(limits.concurrency);
        sizes = new ClaimSizes(limits.concurrency, limits.ahead, limits.longestRun);
    }

    // What may be claimed

    /** Returns how many jobs may be claimed; 0 while enough jobs wait, so that claims are not small. */
    public synchronized int free() {
        int ahead = inFlight.payloadChars() >= MOST_BYTES ? 0 : sizes.ahead();
        int free = Math.max(0, limits.concurrency - slots.running());
        if (closed || inFlight.size() > 4 * (limits.concurrency + ahead)) {
            return 0;
        }
        int expected = ready.waiting() + reserved;
        if (ready.size() == 0 && reserved == 0 && free > 0) {
            return Math.max(free, free + ahead - expected);
        }
        return expected * 2 > ahead + free ? 0 : Math.max(0, free + ahead - expected);
    }

    /**
     * Returns how many limited jobs may be claimed where there is room for so many: those hold permits, so no more than one of them waits
     * for a handler while others run.
     */
    public synchronized int limitedOf(int room) {
        int waiting = inFlight.claims(local -> local.waits && local.limited).size();
        int idle = limits.concurrency - slots.running() - waiting;
        return Math.min(room, idle > 0 || waiting > 0 ? Math.max(0, idle) : 1);
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

    /** Returns how many jobs of a queue to claim together if the first is of this task, in a claim of so many. */
    public synchronized int runOf(String taskIdentifier, int wanted) {
        return sizes.runOf(taskIdentifier, wanted, Math.max(1, limits.concurrency - slots.running() - ready.size()));
    }

    /** Returns how many jobs of a queue a claim takes at most, as long as other queues have jobs. */
    public synchronized int share() {
        return sizes.share();
    }

    /** Learns from a claim. */
    public synchronized void claimed(Claimed claimed, boolean full) {
        sizes.claimed(claimed.jobs(), full).forEach(freedQueues::claimed);
    }

    // Jobs come in

    /**
     * Takes claimed jobs in, which count as claimed even if the queue is closed.
     *
     * @return false if the queue is closed and the jobs are to be given back
     */
    public boolean add(List<ClaimedJob> jobs) {
        boolean open;
        boolean anyAside;
        synchronized (this) {
            open = !closed;
            int before = expired.size();
            takeIn(jobs, open);
            anyAside = expired.size() > before;
        }
        if (anyAside) {
            onChange.run();
        }
        return open;
    }

    /** Takes claimed jobs in that are not to run: what becomes of them is decided already. */
    public synchronized void addEnded(Collection<ClaimedJob> jobs) {
        takeIn(jobs, false);
    }

    @GuardedBy("this") private void takeIn(Collection<ClaimedJob> jobs, boolean toStart) {
        long time = System.nanoTime();
        Map<Integer, Unit> runs = new HashMap<>();
        List<Unit> units = new ArrayList<>(jobs.size());
        List<LocalJob> locals = new ArrayList<>(jobs.size());
        for (ClaimedJob job : jobs) {
            Unit unit = job.queueId() == 0 ? new Unit(job) : runs.computeIfAbsent(job.queueId(), id -> new Unit(job));
            LocalJob local = new LocalJob(job, unit, time);
            locals.add(local);
            if (toStart) {
                if (held.holds(job.job())) {
                    expired.add(local.job);
                } else {
                    ready.append(local);
                    if (unit.waiting.size() == 1) {
                        units.add(unit);
                    }
                }
            }
        }
        inFlight.add(locals);
        units.forEach(ready::add);
    }

    // Runners take jobs

    /** Returns how many more tasks the ready jobs need and the concurrency allows; the caller hands them to the executor. */
    public synchronized int missingRunners() {
        return slots.awaitFor(ready.size());
    }

    /** Returns how many tasks the executor has been, or is to be, handed and has not begun. */
    public synchronized int awaitedRunners() {
        return slots.awaited();
    }

    /** Takes note that the executor has not taken a task. */
    public synchronized void runnerRefused() {
        slots.refused();
    }

    /** Takes tasks for lost that the executor has not begun for so long; others may take their place. Returns how many. */
    public synchronized int runnersLost(Duration longerThan) {
        return slots.lost(longerThan);
    }

    /** Signs a runner on for a task that has begun; null if there is nothing to do for it. */
    public synchronized @Nullable Runner begin() {
        return slots.begin();
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
                    ready.add(unit);
                }
                signOff(runner);
            } else {
                next = local.job;
                slots.start(runner, local);
            }
            worthALook =
                    (noRoom && free() > 0) || (noneExpired && !expired.isEmpty()) || (local != null && local.limited);
        }
        if (worthALook) {
            onChange.run();
        }
        return next;
    }

    @GuardedBy("this") private void measure(Runner runner, long nanos) {
        LocalJob local = runner.job();
        if (local != null) {
            sizes.ran(local, nanos);
        }
    }

    /** Takes the next job of this unit, or of the first one that is ready. */
    @GuardedBy("this") private @Nullable LocalJob poll(@Nullable Unit unit) {
        long time = System.nanoTime();
        for (Unit current = unit == null || unit.waiting.isEmpty() ? ready.poll() : unit;
                current != null;
                current = ready.poll()) {
            if (time - current.waiting.element().at <= limits.timeToLive.toNanos()) {
                return ready.start(current);
            }
            expire(current);
        }
        return null;
    }

    /** Signs a runner off, if it is not, together with a job that it may have; those behind that are for another one. */
    public synchronized void signOff(Runner runner) {
        Unit unit = slots.end(runner);
        if (unit != null) {
            ready.add(unit);
        }
        if (slots.signOff(runner)) {
            notifyAll();
        }
    }

    /** Signs a runner off that is stuck in a job; another one may start in its place. */
    public void abandon(Runner stuck, long nanos) {
        synchronized (this) {
            measure(stuck, nanos);
            signOff(stuck);
        }
        onChange.run();
    }

    /** Waits until no handler runs; returns whether that is so. Meaningful once the queue is closed. */
    public synchronized boolean awaitNoRunners(Duration limit) throws InterruptedException {
        long deadline = System.nanoTime() + limit.toNanos();
        for (long left = limit.toNanos(); left > 0 && slots.anyBegun(); left = deadline - System.nanoTime()) {
            TimeUnit.NANOSECONDS.timedWait(this, left);
        }
        return !slots.anyBegun();
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
        ready.addWithoutPayload(claims, most);
        return claims;
    }

    // Jobs expire

    /** Returns the units of which jobs wait, behind others that run, too. */
    @GuardedBy("this") private Set<Unit> waitingUnits() {
        return inFlight.units(local -> local.waits);
    }

    /** Puts all jobs of a unit aside that have not been handed out: handlers take longer than they did. */
    @GuardedBy("this") private void expire(Unit unit) {
        for (LocalJob local : ready.takeAll(unit)) {
            expired.add(local.job);
            sizes.doubt(local);
        }
    }

    /** Puts aside what waits for a handler and is held back: {@link #takeExpired} returns it. */
    public void putHeldAside() {
        synchronized (this) {
            for (Unit unit : waitingUnits()) {
                if (unit.waiting.stream().anyMatch(local -> held.holds(local.job))) {
                    ready.takeAll(unit).forEach(local -> expired.add(local.job));
                }
            }
        }
        onChange.run();
    }

    /** Returns the jobs that have waited too long or are held back; the caller gives them back. */
    public synchronized List<Job> takeExpired() {
        long time = System.nanoTime();
        if (time - expiryAt > 0) {
            expiryAt = time + limits.timeToLive.toNanos();
            for (Unit unit : waitingUnits()) {
                long at = unit.waiting.element().at + limits.timeToLive.toNanos();
                if (at - time < 0) {
                    expire(unit);
                } else if (at - expiryAt < 0) {
                    expiryAt = at;
                }
            }
        }
        List<Job> taken = expired;
        expired = new ArrayList<>();
        return taken;
    }

    /** Returns how long to wait until a job may have waited too long; a very long time if none waits. */
    public synchronized long nanosUntilExpired() {
        if (!expired.isEmpty()) {
            return 0;
        }
        return ready.waiting() == 0 ? Long.MAX_VALUE : Math.max(0, expiryAt - System.nanoTime() + 1);
    }

    // Jobs go out

    /** Takes jobs out that wait for a handler although they are not this worker's; the caller settles them. */
    public synchronized List<Job> remove(Collection<Claim> lost) {
        List<Job> removed = new ArrayList<>();
        for (Claim claim : lost) {
            LocalJob local = inFlight.get(claim);
            if (local != null && local.waits) {
                ready.take(local);
                removed.add(local.job);
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
            ready.takeAll(unit).forEach(local -> unstarted.add(local.job));
        }
        return unstarted;
    }

    // What is here

    /** Returns the claims whose outcome is still to be written. */
    public InFlight inFlight() {
        return inFlight;
    }

    /** Returns true if the outcome of this claim is still to be written. */
    public boolean contains(Claim claim) {
        return inFlight.get(claim) != null;
    }

    /** Returns the claims whose jobs were taken from here, to run them or to give them back. */
    public synchronized List<Claim> taken() {
        Set<Claim> aside = new HashSet<>();
        expired.forEach(job -> aside.add(Claim.of(job)));
        return inFlight.claims(local -> !local.waits && !aside.contains(Claim.of(local.job)));
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
        return new Load(slots.running(), ready.waiting(), unwritten());
    }

    @GuardedBy("this") private int unwritten() {
        return Math.max(0, inFlight.size() - ready.waiting() - slots.running());
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
        return ready.size() == 0 && unwritten() == 0 ? Duration.ZERO : ready.sinceStartable();
    }
}
