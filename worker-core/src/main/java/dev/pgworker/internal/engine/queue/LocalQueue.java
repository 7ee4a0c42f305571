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
import dev.pgworker.internal.engine.queue.LocalJob.Stage;
import dev.pgworker.internal.engine.queue.QueueLanes.Lane;
import dev.pgworker.internal.engine.queue.RunnerSlots.Runner;
import dev.pgworker.internal.store.Claim;
import dev.pgworker.internal.store.LanePlan;
import dev.pgworker.internal.store.RenewedLocks;
import dev.pgworker.internal.store.RowLock;
import dev.pgworker.job.Job;

/**
 * The jobs that this worker has claimed, from the claim until their outcome is written: those that wait for a handler,
 * in the order in which they are to start, those that run, and those whose outcome is not written yet.
 *
 * <p>Jobs are claimed ahead of free handlers as far as handlers are measured to be fast, so that slow ones leave jobs to
 * other workers and to more urgent ones. Of a named queue one job at a time is runnable or runs; the others that are here
 * wait for it, and take no room from anybody. A job that has waited too long is not started but given back, together with
 * those behind it in its queue: the database may have decided that this worker is dead, and a slow job of a queue keeps
 * others from running what it holds up here.
 *
 * <p>Thread-safe. One lock, that of this object, guards all of it: the ready jobs, the {@link QueueLanes}, what is
 * {@link InFlight}, and the {@link RunnerSlots}. Nothing is called under the lock that takes another one or waits.
 */
public final class LocalQueue implements RenewedLocks {

    /** After so many slow jobs of a queue in a row, or a run of fast ones, other due jobs get their turn. */
    private static final int LONGEST_TENURE = 100;

    /** The payloads that may be here, unless a single job or the number of handlers needs more: a share of the heap. */
    private static final long MOST_BYTES =
            Math.min(64L << 20, Math.max(1L << 20, Runtime.getRuntime().maxMemory() / 16));

    /** For so long after one of a task with a limit of starts has come, no jobs are claimed ahead. */
    private static final long NONE_AHEAD_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final int concurrency;
    private final int size;
    private final int longestRun;
    private final long timeToLiveNanos;

    private final HeldBack held;

    /** Called, holding no lock of this, when there is room again or jobs are to be given back. */
    private final Runnable onChange;

    @GuardedBy("this") private final PriorityQueue<LocalJob> ready = new PriorityQueue<>(LocalJob::compareStart);

    @GuardedBy("this") private final QueueLanes lanes = new QueueLanes();

    @GuardedBy("this") private final InFlight inFlight = new InFlight();

    @GuardedBy("this") private final RunnerSlots slots;

    /** Set once a lock is renewed, so that the usual case needs no lock. */
    private volatile boolean anyRenewed;

    /** Jobs for which a claim that is under way has room. */
    @GuardedBy("this") private int reserved;

    /** Jobs that are not to be started, for they have waited too long or are held back, until somebody gives them back. */
    @GuardedBy("this") private List<Job> expired = new ArrayList<>();

    /** No job has waited too long before this {@link System#nanoTime}. */
    @GuardedBy("this") private long expiryAt;

    @GuardedBy("this") private boolean mayExpire;

    @GuardedBy("this") private final ThroughputEstimate throughput = new ThroughputEstimate();

    @GuardedBy("this") private final Map<String, ThroughputEstimate> throughputOfTask = new HashMap<>();

    /** Whether the database holds due jobs for which there is no room. */
    @GuardedBy("this") private boolean othersWait;

    @GuardedBy("this") private long settledInTotal;

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
     * @param concurrency how many jobs run at the same time
     * @param size how many jobs may wait for a handler besides
     * @param timeToLive how long a job may wait
     * @param longestRun how many jobs of a named queue may be here at the same time
     * @param held what is not to be started
     * @param onChange called, on any thread, when there is room again or jobs are to be given back; must return soon
     */
    public LocalQueue(
            int concurrency, int size, Duration timeToLive, int longestRun, HeldBack held, Runnable onChange) {
        this.concurrency = concurrency;
        this.size = size;
        this.longestRun = longestRun;
        this.held = held;
        this.onChange = onChange;
        timeToLiveNanos = timeToLive.toNanos();
        slots = new RunnerSlots(concurrency);
    }

    // What may be claimed

    /** Returns how many jobs may be claimed; 0 while enough jobs wait, so that claims are not small. */
    public synchronized int free() {
        int ahead = ahead();
        if (closed || (ahead > 0 && ready.size() > ahead / 2)) {
            return 0;
        }
        // A claim that hangs, with room from a time when more was allowed, must not keep the other chain from claiming.
        int others = Math.min(reserved, (concurrency + ahead) / 2);
        int mayStart = concurrency + ahead - slots.running() - ready.size() - others;
        int mayBeUnwritten = 2 * (concurrency + ahead) - (inFlight.size() - lanes.behind()) - others;
        return Math.max(0, Math.min(mayStart, mayBeUnwritten));
    }

    /**
     * Keeps room for a claim until {@link #unreserve}.
     *
     * @param chains between so many claims at a time the room is divided
     * @return for how many jobs, as {@link #free}
     */
    public synchronized int reserve(int chains) {
        int room = free();
        if (chains > 1) {
            int share = Math.max(1, (concurrency + ahead()) / chains);
            // A small claim costs nearly as much as a large one.
            room = room < share / 2 ? 0 : Math.min(room, share);
        }
        reserved += room;
        return room;
    }

    /** Gives back what {@link #reserve} has returned; the jobs that were claimed are here. */
    public synchronized void unreserve(int room) {
        reserved -= room;
    }

    @GuardedBy("this") private int ahead() {
        boolean rated = ratedAt != null && System.nanoTime() - ratedAt < NONE_AHEAD_NANOS;
        return rated || inFlight.payloadChars() >= MOST_BYTES ? 0 : throughput.jobs(concurrency, size);
    }

    /** Returns how many bytes the payloads of the next claim may have; it may bring one job whatever its size. */
    public synchronized long freeBytes() {
        return Math.max(1, MOST_BYTES - inFlight.payloadChars());
    }

    /** Returns how many jobs of a queue to claim together if the first is of this task. */
    public synchronized int runOf(String taskIdentifier) {
        ThroughputEstimate ofTask = throughputOfTask.get(taskIdentifier);
        return ofTask == null ? 1 : Math.max(1, ofTask.jobs(1, longestRun));
    }

    /** Says whether the database holds due jobs for which there is no room: queues then end after a while. */
    public synchronized void othersWait(boolean wait) {
        othersWait = wait;
    }

    /**
     * Says what a write of these jobs' outcomes does with their queues: a queue goes on if more of its jobs are here, and
     * as many more are claimed as handlers of that task finish within a moment, but at least one if none is here. A queue
     * that has had many jobs in a row ends if others wait.
     */
    public synchronized LanePlan plan(List<Job> written) {
        Map<String, Integer> counts = new HashMap<>();
        for (Job job : written) {
            if (job.queueName() != null) {
                counts.merge(job.queueName(), 1, Integer::sum);
            }
        }
        if (counts.isEmpty()) {
            return LanePlan.NONE;
        }
        int room = concurrency + size + longestRun - slots.running() - ready.size() - lanes.behind();
        Set<String> planned = new HashSet<>();
        List<Integer> aheads = new ArrayList<>(written.size());
        List<Long> goingOn = new ArrayList<>();
        for (Job job : written) {
            int ahead = 0;
            Lane lane = lanes.of(job);
            if (lane != null) {
                int others = lane.unsettled - counts.getOrDefault(job.queueName(), 0);
                if (others > 0) {
                    goingOn.add(job.id());
                }
                if (!closed && lane.expired == 0 && planned.add(job.queueName())) {
                    ahead = toClaim(lane, job, others, room);
                }
            }
            aheads.add(ahead);
            room -= ahead;
        }
        return new LanePlan(aheads, goingOn);
    }

    @GuardedBy("this") private int toClaim(Lane lane, Job job, int others, int room) {
        int run = runOf(job.taskIdentifier());
        if (othersWait && (run > 1 || lane.tenure >= LONGEST_TENURE)) {
            return 0;
        }
        return Math.max(Math.min(run - others, room), others == 0 ? 1 : 0);
    }

    // Jobs come in

    /**
     * Takes claimed jobs in, which count as claimed even if the queue is closed.
     *
     * @return the runners to start, or null if the queue is closed and the jobs are to be given back
     */
    public @Nullable List<Runner> add(List<Job> jobs) {
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
    public synchronized void addEnded(Collection<Job> jobs) {
        takeIn(jobs, false);
    }

    @GuardedBy("this") private void takeIn(Collection<Job> jobs, boolean toStart) {
        long time = System.nanoTime();
        for (Job job : jobs) {
            LocalJob local = new LocalJob(job, time);
            inFlight.add(local);
            Lane lane = lanes.enter(job);
            if (toStart) {
                put(local, lane);
            }
        }
    }

    @GuardedBy("this") private void put(LocalJob local, @Nullable Lane lane) {
        if ((lane != null && lane.expired > 0) || held.holds(local.job) || comesTooEarly(local)) {
            putAside(local, lane);
            return;
        }
        local.stage = Stage.WAITING;
        if (!mayExpire) {
            mayExpire = true;
            expiryAt = local.at + timeToLiveNanos;
        }
        addReady(lane == null ? local : lanes.wait(local, lane));
    }

    /** Where the period counts in which jobs start, those that are claimed ahead would start together later. */
    @GuardedBy("this") private boolean comesTooEarly(LocalJob local) {
        if (!held.isRated(local.job)) {
            return false;
        }
        ratedAt = local.at;
        return slots.running() + ready.size() >= concurrency;
    }

    @GuardedBy("this") private void addReady(@Nullable LocalJob local) {
        if (local == null) {
            return;
        }
        ready.add(local);
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
        Job next;
        synchronized (this) {
            boolean noRoom = free() == 0;
            measure(runner, nanos);
            end(runner);
            boolean noneExpired = expired.isEmpty();
            next = slots.contains(runner) ? poll() : null;
            if (next == null) {
                signOff(runner);
            } else {
                slots.start(runner, next);
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
        Job job = runner.job();
        if (job == null) {
            return;
        }
        throughput.ran(nanos);
        if (job.queueName() != null) {
            throughputOfTask
                    .computeIfAbsent(job.taskIdentifier(), task -> new ThroughputEstimate())
                    .ran(nanos);
        }
    }

    @GuardedBy("this") private void end(Runner runner) {
        Job ended = slots.end(runner);
        if (ended != null) {
            addReady(lanes.after(ended));
        }
    }

    @GuardedBy("this") private @Nullable Job poll() {
        long time = System.nanoTime();
        for (LocalJob local = ready.poll(); local != null; local = ready.poll()) {
            if (time - local.at <= timeToLiveNanos) {
                local.stage = Stage.TAKEN;
                return local.job;
            }
            expireReady(local);
        }
        return null;
    }

    /** Returns true if a runner is signed on. */
    public synchronized boolean isSignedOn(Runner runner) {
        return slots.contains(runner);
    }

    /** Signs a runner off, if it is not, together with a job that it may have. */
    public synchronized void signOff(Runner runner) {
        end(runner);
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

    // Jobs expire

    /** Expires a job that was taken from the ready ones, and with it those behind. */
    @GuardedBy("this") private void expireReady(LocalJob local) {
        Lane lane = lanes.of(local.job);
        expire(local, lane);
        if (lane != null) {
            lanes.clear(lane).forEach(other -> expire(other, lane));
        }
    }

    @GuardedBy("this") private void putAside(LocalJob local, @Nullable Lane lane) {
        local.stage = Stage.EXPIRED;
        expired.add(local.job);
        if (lane != null) {
            lane.expired++;
        }
    }

    @GuardedBy("this") private void expire(LocalJob local, @Nullable Lane lane) {
        putAside(local, lane);
        throughput.doubt();
        if (lane != null) {
            ThroughputEstimate ofTask = throughputOfTask.get(local.job.taskIdentifier());
            if (ofTask != null) {
                ofTask.doubt();
            }
        }
    }

    /** Puts aside what waits for a handler and is held back: {@link #takeExpired} returns it. */
    public void putHeldAside() {
        synchronized (this) {
            List<LocalJob> ofThese =
                    ready.stream().filter(local -> held.holds(local.job)).toList();
            ready.removeAll(new HashSet<>(ofThese));
            for (LocalJob local : ofThese) {
                Lane lane = lanes.of(local.job);
                putAside(local, lane);
                if (lane != null) {
                    lanes.clear(lane).forEach(other -> putAside(other, lane));
                }
            }
            for (Lane lane : lanes.all()) {
                if (QueueLanes.behind(lane).stream().anyMatch(local -> held.holds(local.job))) {
                    lanes.clearBehind(lane).forEach(local -> putAside(local, lane));
                }
            }
        }
        onChange.run();
    }

    /** Returns the jobs that have waited too long or are held back; the caller gives them back. */
    public synchronized List<Job> takeExpired() {
        long time = System.nanoTime();
        if (mayExpire && time - expiryAt > 0) {
            expireLate(time);
        }
        List<Job> taken = expired;
        expired = new ArrayList<>();
        return taken;
    }

    @GuardedBy("this") private void expireLate(long time) {
        List<LocalJob> late = new ArrayList<>();
        mayExpire = false;
        for (LocalJob local : ready) {
            if (isLate(local, time)) {
                late.add(local);
            }
        }
        if (!late.isEmpty()) {
            ready.removeAll(new HashSet<>(late));
            late.forEach(this::expireReady);
        }
        for (Lane lane : lanes.all()) {
            boolean anyLate = false;
            for (LocalJob local : QueueLanes.behind(lane)) {
                anyLate |= isLate(local, time);
            }
            if (anyLate) {
                lanes.clearBehind(lane).forEach(local -> expire(local, lane));
            }
        }
    }

    /** Returns whether a job has waited too long, and notes when it will have otherwise. */
    @GuardedBy("this") private boolean isLate(LocalJob local, long time) {
        if (time - local.at > timeToLiveNanos) {
            return true;
        }
        long at = local.at + timeToLiveNanos;
        if (!mayExpire || at - expiryAt < 0) {
            expiryAt = at;
        }
        mayExpire = true;
        return false;
    }

    /** Returns how long to wait until a job may have waited too long; a very long time if none waits. */
    public synchronized long nanosUntilExpired() {
        if (!expired.isEmpty()) {
            return 0;
        }
        return mayExpire ? Math.max(0, expiryAt - System.nanoTime() + 1) : Long.MAX_VALUE;
    }

    // Jobs go out

    /** Forgets jobs whose outcome is written. */
    public synchronized void settled(Collection<Job> jobs) {
        for (Job job : jobs) {
            LocalJob local = inFlight.remove(job);
            if (local != null) {
                settledInTotal++;
                lanes.leave(local);
            }
        }
        notifyAll();
    }

    /** Takes jobs out that wait for a handler although they are not this worker's; the caller settles them. */
    public synchronized List<Job> remove(Collection<Claim> lost) {
        List<Job> removed = new ArrayList<>();
        for (Claim claim : lost) {
            LocalJob local = inFlight.get(claim);
            if (local != null && local.stage == Stage.WAITING) {
                local.stage = Stage.TAKEN;
                removed.add(local.job);
                if (ready.remove(local)) {
                    addReady(lanes.after(local.job));
                } else {
                    lanes.remove(local);
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
        for (LocalJob local : inFlight.all()) {
            if (local.stage == Stage.WAITING) {
                local.stage = Stage.TAKEN;
                unstarted.add(local.job);
            }
        }
        ready.clear();
        lanes.clearBehind();
        mayExpire = false;
        return unstarted;
    }

    // What is here

    /** Returns true if the outcome of this claim is still to be written. */
    public synchronized boolean contains(Claim claim) {
        return inFlight.contains(claim);
    }

    /** Returns true if the outcome of a job of this queue is still to be written. */
    public synchronized boolean containsQueue(@Nullable String queueName) {
        return lanes.contains(queueName);
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

    /** Returns true if the lock of a claim whose outcome is still to be written has, or may have, been renewed to this time. */
    public boolean holds(long jobId, Instant lockedAt) {
        if (!anyRenewed) {
            return false;
        }
        synchronized (this) {
            return inFlight.isRenewedTo(jobId, lockedAt);
        }
    }

    /** Returns the claim whose lock has, or may have, this time and whose outcome is still to be written; null if there is none. */
    public synchronized @Nullable Claim claimOf(long jobId, Instant lockedAt) {
        Claim claim = new Claim(jobId, lockedAt);
        return inFlight.contains(claim) ? claim : inFlight.renewedTo(jobId, lockedAt);
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
        int waiting = ready.size() + lanes.behind();
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
        boolean nothingToStart = ready.isEmpty() && inFlight.size() - lanes.behind() - slots.running() <= 0;
        return anyStartable && !nothingToStart ? Duration.ofNanos(System.nanoTime() - startableSince) : Duration.ZERO;
    }

    /** Returns true if there is no claimed job whose outcome is still to be written. */
    public synchronized boolean isIdle() {
        return inFlight.isEmpty();
    }

    /** Waits until the outcome of every claimed job is written; returns whether that is so. */
    public synchronized boolean awaitIdle(Duration limit) throws InterruptedException {
        long deadline = System.nanoTime() + limit.toNanos();
        while (!inFlight.isEmpty()) {
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
        return new Progress(settledInTotal, inFlight.isEmpty());
    }

    /** Counts jobs as settled that have never been here. */
    public synchronized void settledElsewhere(int jobs) {
        settledInTotal += jobs;
    }

    /** Waits until a job is settled that was not when the given total was read, but no longer than the limit. */
    public synchronized void awaitSettledBeyond(long total, Duration limit) throws InterruptedException {
        if (settledInTotal == total) {
            TimeUnit.NANOSECONDS.timedWait(this, limit.toNanos());
        }
    }
}
