package dev.pgworker.internal.engine;

import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.concurrent.TimeUnit;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.store.Claim;
import dev.pgworker.internal.store.Lanes;
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
 * <p>It also knows the {@link Runner}s, the tasks on the handler executor that take jobs from here one after the other: a
 * runner signs off in the same step in which it finds nothing, so that a job added next always finds or starts one.
 * Safe for use by many threads.
 */
public final class LocalQueue implements RenewedLocks {

    private static final Comparator<Held> START_ORDER = LocalQueue::compareStart;

    /** After so many slow jobs of a queue in a row, or a run of fast ones, other due jobs get their turn. */
    private static final int LONGEST_TENURE = 100;

    /** The payloads that may be here, unless a single job or the number of handlers needs more: a share of the heap. */
    private static final long MOST_BYTES =
            Math.min(64L << 20, Math.max(1L << 20, Runtime.getRuntime().maxMemory() / 16));

    private final int concurrency;
    private final int size;
    private final int longestRun;
    private final long timeToLiveNanos;

    /** Called, holding no lock of this, when there is room again or jobs are to be given back. */
    private volatile Runnable changed = () -> {};

    @GuardedBy("this") private final PriorityQueue<Held> ready = new PriorityQueue<>(START_ORDER);

    @GuardedBy("this") private final Map<String, Lane> lanes = new HashMap<>();

    /** Jobs that wait behind another one of their queue. */
    @GuardedBy("this") private int behind;

    /** Jobs for which a claim that is under way has room. */
    @GuardedBy("this") private int reserved;

    /** Runners that have a job. */
    @GuardedBy("this") private int running;

    @GuardedBy("this") private final Set<Runner> runners = new HashSet<>();

    /** Runners that the handler executor has not begun yet. */
    @GuardedBy("this") private int unbegun;

    /** The claims whose outcome is not known to be written. */
    @GuardedBy("this") private final Map<Claim, Held> unsettled = new HashMap<>();

    /** The size of the payloads of {@link #unsettled}, in characters. */
    @GuardedBy("this") private long bytes;

    /** Jobs that are not to be started, until somebody gives them back. */
    @GuardedBy("this") private List<Job> expired = new ArrayList<>();

    /** No job has waited too long before this {@link System#nanoTime}. */
    @GuardedBy("this") private long expiryAt;

    @GuardedBy("this") private boolean mayExpire;

    @GuardedBy("this") private final ThroughputEstimate pace = new ThroughputEstimate();

    @GuardedBy("this") private final Map<String, ThroughputEstimate> paceOfTask = new HashMap<>();

    /** Whether the database holds due jobs for which there is no room. */
    @GuardedBy("this") private boolean othersWait;

    @GuardedBy("this") private long settledInTotal;

    @GuardedBy("this") private boolean closed;

    /** Set once a lock is renewed, so that the usual case needs no look. */
    private volatile boolean anyRenewed;

    /** Since when handlers are free and no job has started, by {@link System#nanoTime}. */
    @GuardedBy("this") private long idleSince = System.nanoTime();

    /** Whether a job has become ready since one was last started. */
    @GuardedBy("this") private boolean anyStartable;

    /** When the first of them did, by {@link System#nanoTime}. */
    @GuardedBy("this") private long startableSince;

    /**
     * Creates an empty queue.
     *
     * @param concurrency how many jobs run at the same time
     * @param size how many jobs may wait for a handler besides
     * @param timeToLive how long a job may wait
     * @param longestRun how many jobs of a named queue may be here at the same time
     */
    public LocalQueue(int concurrency, int size, Duration timeToLive, int longestRun) {
        this.concurrency = concurrency;
        this.size = size;
        this.longestRun = longestRun;
        timeToLiveNanos = timeToLive.toNanos();
    }

    /** Takes jobs from the queue on a thread of the handler executor. What it does is decided under the queue's lock. */
    static final class Runner {

        private final long signedOnAt = System.nanoTime();
        private boolean begun;
        private @Nullable Job job;
    }

    private enum Stage {
        /** In {@link #ready}, or behind another job of its queue. */
        WAITING,
        /** To be given back without having been started. */
        EXPIRED,
        /** Handed out. */
        TAKEN
    }

    /** A claim that is not settled. */
    private static final class Held {

        private final Job job;
        /** The {@link System#nanoTime} at which the claim was taken in. */
        private final long at;

        private Stage stage = Stage.TAKEN;
        private @Nullable RowLock lock;
        private long renewedAt;

        Held(Job job, long at) {
            this.job = job;
            this.at = at;
            renewedAt = at;
        }
    }

    private static int compareStart(Held one, Held other) {
        int order = Integer.compare(one.job.priority(), other.job.priority());
        if (order == 0) {
            order = one.job.runAt().compareTo(other.job.runAt());
        }
        return order == 0 ? Long.compare(one.job.id(), other.job.id()) : order;
    }

    /** The jobs of one named queue. */
    private static final class Lane {
        private final PriorityQueue<Held> behind = new PriorityQueue<>(START_ORDER);
        /** The one that is ready or runs; compared by identity. */
        private @Nullable Job current;
        /** How many of its jobs are {@link LocalQueue#unsettled}. */
        private int unsettled;
        /** How many of its jobs have been claimed since this worker locked it. */
        private int tenure;
        /** How many of its jobs are being given back: no later one may start before that is written. */
        private int expired;
    }

    /** Says whom to tell about room and about jobs to give back. Call before any job arrives. */
    public void connect(Runnable onChange) {
        changed = onChange;
    }

    /** Returns how many jobs may be claimed; 0 while enough jobs wait, so that claims are not small. */
    public synchronized int free() {
        int ahead = ahead();
        if (closed || (ahead > 0 && ready.size() > ahead / 2)) {
            return 0;
        }
        // A claim that hangs, with room from a time when more was allowed, must not keep the other chain from claiming.
        int others = Math.min(reserved, (concurrency + ahead) / 2);
        int mayStart = concurrency + ahead - running - ready.size() - others;
        int mayBeUnwritten = 2 * (concurrency + ahead) - (unsettled.size() - behind) - others;
        return Math.max(0, Math.min(mayStart, mayBeUnwritten));
    }

    /**
     * Keeps room for a claim until {@link #unreserve}.
     *
     * @param chains between so many claims at a time the room is divided
     * @return for how many jobs, as {@link #free}
     */
    synchronized int reserve(int chains) {
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
    synchronized void unreserve(int room) {
        reserved -= room;
    }

    @GuardedBy("this") private int ahead() {
        return bytes >= MOST_BYTES ? 0 : pace.jobs(concurrency, size);
    }

    /** Returns how many bytes the payloads of the next claim may have; it may bring one job whatever its size. */
    synchronized long freeBytes() {
        return Math.max(1, MOST_BYTES - bytes);
    }

    /**
     * Takes claimed jobs in, which count as claimed even if the queue is closed.
     *
     * @return the runners to start, or null if the queue is closed and the jobs are to be given back
     */
    @Nullable List<Runner> add(List<Job> jobs) {
        boolean newlyExpired;
        List<Runner> toStart;
        synchronized (this) {
            boolean noneExpired = expired.isEmpty();
            takeIn(jobs, !closed);
            newlyExpired = noneExpired && !expired.isEmpty();
            toStart = closed ? null : missingRunners();
        }
        if (newlyExpired) {
            changed.run();
        }
        return toStart;
    }

    /** Takes claimed jobs in that are not to run: what becomes of them is decided already. */
    synchronized void addEnded(Collection<Job> jobs) {
        takeIn(jobs, false);
    }

    @GuardedBy("this") private void takeIn(Collection<Job> jobs, boolean toStart) {
        long time = System.nanoTime();
        for (Job job : jobs) {
            Held held = new Held(job, time);
            unsettled.put(Claim.of(job), held);
            bytes += job.payload().length();
            Lane lane = null;
            if (job.queueName() != null) {
                lane = lanes.computeIfAbsent(job.queueName(), name -> new Lane());
                lane.unsettled++;
                lane.tenure++;
            }
            if (toStart) {
                put(held, lane);
            }
        }
    }

    @GuardedBy("this") private void put(Held held, @Nullable Lane lane) {
        if (lane != null && lane.expired > 0) {
            expire(held, lane);
            return;
        }
        held.stage = Stage.WAITING;
        if (!mayExpire) {
            mayExpire = true;
            expiryAt = held.at + timeToLiveNanos;
        }
        if (lane == null) {
            addReady(held);
        } else {
            behind++;
            lane.behind.add(held);
            if (lane.current == null) {
                promote(lane);
            }
        }
    }

    /** Makes the next job of a queue runnable. */
    @GuardedBy("this") private void promote(Lane lane) {
        Held next = lane.behind.poll();
        lane.current = next == null ? null : next.job;
        if (next != null) {
            behind--;
            addReady(next);
        }
    }

    @GuardedBy("this") private void addReady(Held held) {
        ready.add(held);
        if (!anyStartable) {
            anyStartable = true;
            startableSince = System.nanoTime();
        }
    }

    /** Signs on as many runners as the ready jobs need and the concurrency allows; the caller starts them. */
    synchronized List<Runner> missingRunners() {
        List<Runner> missing = new ArrayList<>();
        for (int i = Math.min(ready.size() - unbegun, concurrency - runners.size()); i > 0; i--) {
            missing.add(signOn());
        }
        return missing;
    }

    @GuardedBy("this") private Runner signOn() {
        Runner runner = new Runner();
        runners.add(runner);
        unbegun++;
        return runner;
    }

    /**
     * Begins a runner; returns false if it has begun already. One that was taken for lost begins all the same, in place of
     * another one that has not begun: an executor may just be late.
     */
    synchronized boolean begin(Runner runner) {
        if (runner.begun || (!runners.contains(runner) && !signOnLate(runner))) {
            return false;
        }
        runner.begun = true;
        unbegun--;
        return true;
    }

    @GuardedBy("this") private boolean signOnLate(Runner runner) {
        if (closed || ready.isEmpty()) {
            return false;
        }
        if (runners.size() >= concurrency) {
            Runner other = runners.stream().filter(one -> !one.begun).findAny().orElse(null);
            if (other == null) {
                return false;
            }
            signOff(other);
        }
        runners.add(runner);
        unbegun++;
        return true;
    }

    /**
     * Returns the next job for a runner, or null after having signed it off. The job that it has run before has ended.
     *
     * @param nanos how long that took
     */
    @Nullable Job next(Runner runner, long nanos) {
        boolean worthALook;
        Job next;
        synchronized (this) {
            boolean noRoom = free() == 0;
            if (runner.job != null) {
                pace(runner.job, nanos);
                end(runner);
            }
            boolean noneExpired = expired.isEmpty();
            next = runners.contains(runner) ? poll() : null;
            if (next == null) {
                signOff(runner);
            } else {
                runner.job = next;
                running++;
                idleSince = System.nanoTime();
                anyStartable = !ready.isEmpty();
                startableSince = idleSince;
            }
            worthALook = (noRoom && free() > 0) || (noneExpired && !expired.isEmpty());
        }
        if (worthALook) {
            changed.run();
        }
        return next;
    }

    @GuardedBy("this") private void pace(Job job, long nanos) {
        pace.ran(nanos);
        if (job.queueName() != null) {
            paceOfTask
                    .computeIfAbsent(job.taskIdentifier(), task -> new ThroughputEstimate())
                    .ran(nanos);
        }
    }

    @SuppressWarnings("ReferenceEquality") // a job that is claimed again is another one
    @GuardedBy("this") private void end(Runner runner) {
        Job job = runner.job;
        runner.job = null;
        if (job != null) {
            if (running == concurrency) {
                idleSince = System.nanoTime();
            }
            running--;
            Lane lane = job.queueName() == null ? null : lanes.get(job.queueName());
            if (lane != null && lane.current == job) {
                promote(lane);
            }
        }
    }

    @GuardedBy("this") private @Nullable Job poll() {
        long time = System.nanoTime();
        for (Held held = ready.poll(); held != null; held = ready.poll()) {
            if (time - held.at <= timeToLiveNanos) {
                held.stage = Stage.TAKEN;
                return held.job;
            }
            expireReady(held);
        }
        return null;
    }

    /** Expires a job that was taken from the ready ones, and with it those behind. */
    @GuardedBy("this") private void expireReady(Held held) {
        String queueName = held.job.queueName();
        Lane lane = queueName == null ? null : lanes.get(queueName);
        expire(held, lane);
        if (lane != null) {
            lane.current = null;
            expireBehind(lane);
        }
    }

    @GuardedBy("this") private void expireBehind(Lane lane) {
        behind -= lane.behind.size();
        lane.behind.forEach(held -> expire(held, lane));
        lane.behind.clear();
    }

    @GuardedBy("this") private void expire(Held held, @Nullable Lane lane) {
        held.stage = Stage.EXPIRED;
        expired.add(held.job);
        pace.doubt();
        if (lane != null) {
            lane.expired++;
            ThroughputEstimate ofTask = paceOfTask.get(held.job.taskIdentifier());
            if (ofTask != null) {
                ofTask.doubt();
            }
        }
    }

    /** Returns the jobs that have waited too long; the caller gives them back. */
    synchronized List<Job> takeExpired() {
        long time = System.nanoTime();
        if (mayExpire && time - expiryAt > 0) {
            expireLate(time);
        }
        List<Job> taken = expired;
        expired = new ArrayList<>();
        return taken;
    }

    @GuardedBy("this") private void expireLate(long time) {
        List<Held> late = new ArrayList<>();
        mayExpire = false;
        for (Held held : ready) {
            if (isLate(held, time)) {
                late.add(held);
            }
        }
        if (!late.isEmpty()) {
            ready.removeAll(new HashSet<>(late));
            late.forEach(this::expireReady);
        }
        for (Lane lane : lanes.values()) {
            boolean anyLate = false;
            for (Held held : lane.behind) {
                anyLate |= isLate(held, time);
            }
            if (anyLate) {
                expireBehind(lane);
            }
        }
    }

    /** Returns whether a job has waited too long, and notes when it will have otherwise. */
    @GuardedBy("this") private boolean isLate(Held held, long time) {
        if (time - held.at > timeToLiveNanos) {
            return true;
        }
        long at = held.at + timeToLiveNanos;
        if (!mayExpire || at - expiryAt < 0) {
            expiryAt = at;
        }
        mayExpire = true;
        return false;
    }

    /** Returns how long to wait until a job may have waited too long; a very long time if none waits. */
    synchronized long nanosUntilExpired() {
        if (!expired.isEmpty()) {
            return 0;
        }
        return mayExpire ? Math.max(0, expiryAt - System.nanoTime() + 1) : Long.MAX_VALUE;
    }

    /** Returns true if a runner is signed on. */
    synchronized boolean isSignedOn(Runner runner) {
        return runners.contains(runner);
    }

    /** Signs a runner off, if it is not, together with a job that it may have. */
    synchronized void signOff(Runner runner) {
        end(runner);
        if (runners.remove(runner)) {
            unbegun -= runner.begun ? 0 : 1;
            notifyAll();
        }
    }

    /** Signs a runner off that the executor did not take, unless it has begun it all the same. */
    synchronized void signOffRefused(Runner runner) {
        if (!runner.begun) {
            signOff(runner);
        }
    }

    /** Signs a runner off that is stuck in a job; returns another one to start in its place, or null if none is needed. */
    @Nullable Runner replace(Runner stuck, long nanos) {
        Runner replacement = null;
        synchronized (this) {
            if (stuck.job != null) {
                pace(stuck.job, nanos);
            }
            signOff(stuck);
            if (!ready.isEmpty() && runners.size() < concurrency) {
                replacement = signOn();
            }
        }
        changed.run();
        return replacement;
    }

    /**
     * Signs runners off that the executor has not begun for so long; others may take their place.
     *
     * @return how many
     */
    synchronized int signOffUnbegun(Duration longerThan) {
        long time = System.nanoTime();
        List<Runner> unbegun = runners.stream()
                .filter(runner -> !runner.begun && time - runner.signedOnAt > longerThan.toNanos())
                .toList();
        unbegun.forEach(this::signOff);
        return unbegun.size();
    }

    /** Waits until no handler runs; returns whether that is so. Meaningful once the queue is closed. */
    synchronized boolean awaitNoRunners(Duration limit) throws InterruptedException {
        long deadline = System.nanoTime() + limit.toNanos();
        while (runners.stream().anyMatch(runner -> runner.begun)) {
            long left = deadline - System.nanoTime();
            if (left <= 0) {
                return false;
            }
            TimeUnit.NANOSECONDS.timedWait(this, left);
        }
        return true;
    }

    /** Returns true if the outcome of this claim is still to be written. */
    synchronized boolean contains(Claim claim) {
        return unsettled.containsKey(claim);
    }

    /** Returns true if the lock of a claim whose outcome is still to be written has, or may have, been renewed to this time. */
    boolean holds(long jobId, Instant lockedAt) {
        if (!anyRenewed) {
            return false;
        }
        synchronized (this) {
            return unsettled.values().stream()
                    .anyMatch(held -> held.job.id() == jobId && held.lock != null && held.lock.has(lockedAt));
        }
    }

    /** Returns true if the outcome of a job of this queue is still to be written. */
    synchronized boolean containsQueue(@Nullable String queueName) {
        return queueName != null && lanes.containsKey(queueName);
    }

    /** Returns the claims whose jobs wait for a handler. */
    synchronized List<Claim> waiting() {
        List<Claim> claims = new ArrayList<>();
        unsettled.forEach((claim, held) -> {
            if (held.stage == Stage.WAITING) {
                claims.add(claim);
            }
        });
        return claims;
    }

    /** Returns the claims whose jobs somebody has taken from here, to run them or to give them back. */
    synchronized List<Claim> taken() {
        List<Claim> claims = new ArrayList<>();
        unsettled.forEach((claim, held) -> {
            if (held.stage != Stage.WAITING) {
                claims.add(claim);
            }
        });
        expired.forEach(job -> claims.remove(Claim.of(job)));
        return claims;
    }

    /** Returns the job of a claim whose outcome is still to be written; null for any other. */
    synchronized @Nullable Job job(Claim claim) {
        Held held = unsettled.get(claim);
        return held == null ? null : held.job;
    }

    /** Takes jobs out that wait for a handler although they are not this worker's; the caller settles them. */
    synchronized List<Job> remove(Collection<Claim> lost) {
        List<Job> removed = new ArrayList<>();
        for (Claim claim : lost) {
            Held held = unsettled.get(claim);
            if (held != null && held.stage == Stage.WAITING) {
                held.stage = Stage.TAKEN;
                removed.add(held.job);
                removeWaiting(held);
            }
        }
        return removed;
    }

    @SuppressWarnings("ReferenceEquality") // a job that is claimed again is another one
    @GuardedBy("this") private void removeWaiting(Held held) {
        Lane lane = held.job.queueName() == null ? null : lanes.get(held.job.queueName());
        if (ready.remove(held)) {
            if (lane != null && lane.current == held.job) {
                promote(lane);
            }
        } else if (lane != null && lane.behind.remove(held)) {
            behind--;
        }
    }

    /**
     * Says what a write of these jobs' outcomes does with their queues: a queue goes on if more of its jobs are here, and
     * as many more are claimed as handlers of that task finish within a moment, but at least one if none is here. A queue
     * that has had many jobs in a row ends if others wait.
     */
    synchronized Lanes plan(List<Job> written) {
        Map<String, Integer> counts = new HashMap<>();
        for (Job job : written) {
            if (job.queueName() != null) {
                counts.merge(job.queueName(), 1, Integer::sum);
            }
        }
        if (counts.isEmpty()) {
            return Lanes.NONE;
        }
        int room = concurrency + size + longestRun - running - ready.size() - behind;
        Set<String> planned = new HashSet<>();
        List<Integer> aheads = new ArrayList<>(written.size());
        List<Long> goingOn = new ArrayList<>();
        for (Job job : written) {
            int ahead = 0;
            Lane lane = job.queueName() == null ? null : lanes.get(job.queueName());
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
        return new Lanes(aheads, goingOn);
    }

    @GuardedBy("this") private int toClaim(Lane lane, Job job, int others, int room) {
        int run = runOf(job.taskIdentifier());
        if (othersWait && (run > 1 || lane.tenure >= LONGEST_TENURE)) {
            return 0;
        }
        return Math.max(Math.min(run - others, room), others == 0 ? 1 : 0);
    }

    /** Returns how many jobs of a queue to claim together if the first is of this task. */
    public synchronized int runOf(String taskIdentifier) {
        ThroughputEstimate ofTask = paceOfTask.get(taskIdentifier);
        return ofTask == null ? 1 : Math.max(1, ofTask.jobs(1, longestRun));
    }

    /** Says whether the database holds due jobs for which there is no room: queues then end after a while. */
    synchronized void othersWait(boolean wait) {
        othersWait = wait;
    }

    /** Forgets jobs whose outcome is written. */
    synchronized void settled(Collection<Job> jobs) {
        int settled = 0;
        for (Job job : jobs) {
            Held held = unsettled.remove(Claim.of(job));
            if (held != null) {
                settled++;
                bytes -= job.payload().length();
                Lane lane = job.queueName() == null ? null : lanes.get(job.queueName());
                if (lane != null) {
                    lane.expired -= held.stage == Stage.EXPIRED ? 1 : 0;
                    if (--lane.unsettled == 0) {
                        lanes.remove(job.queueName());
                    }
                }
            }
        }
        settledInTotal += settled;
        notifyAll();
    }

    /**
     * Returns the claims whose locks are older than that, each with the time to which it is to be renewed, which stays the
     * same until {@link #renewed} is called: it may be on its way.
     */
    synchronized List<Claim> toRenew(Duration age) {
        long time = System.nanoTime();
        List<Claim> claims = new ArrayList<>();
        unsettled.forEach((claim, held) -> {
            if (time - held.renewedAt >= age.toNanos()) {
                Instant current = held.lock == null ? claim.lockedAt() : held.lock.current();
                if (held.lock == null || held.lock.pending() == null) {
                    long micros = TimeUnit.NANOSECONDS.toMicros(time - held.renewedAt);
                    held.lock = new RowLock(current, current.plus(micros, ChronoUnit.MICROS));
                }
                claims.add(claim);
            }
        });
        anyRenewed |= !claims.isEmpty();
        return claims;
    }

    /** Takes note that the locks of these claims have been renewed. */
    synchronized void renewed(List<Claim> claims) {
        long time = System.nanoTime();
        for (Claim claim : claims) {
            Held held = unsettled.get(claim);
            if (held != null && held.lock != null && held.lock.pending() != null) {
                held.lock = new RowLock(held.lock.pending(), null);
                held.renewedAt = time;
            }
        }
    }

    @Override
    public @Nullable RowLock of(Claim claim) {
        if (!anyRenewed) {
            return null;
        }
        synchronized (this) {
            Held held = unsettled.get(claim);
            return held == null ? null : held.lock;
        }
    }

    /** Lets no further job start and returns those that have not started. */
    synchronized List<Job> close() {
        closed = true;
        List<Job> unstarted = expired;
        expired = new ArrayList<>();
        for (Held held : unsettled.values()) {
            if (held.stage == Stage.WAITING) {
                held.stage = Stage.TAKEN;
                unstarted.add(held.job);
            }
        }
        ready.clear();
        lanes.values().forEach(lane -> lane.behind.clear());
        behind = 0;
        mayExpire = false;
        return unstarted;
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
        int waiting = ready.size() + behind;
        return new Load(running, waiting, Math.max(0, unsettled.size() - waiting - running));
    }

    /** Returns how long no job has started although a handler is free; zero while all handlers run. */
    synchronized Duration sinceStart() {
        return running >= concurrency ? Duration.ZERO : Duration.ofNanos(System.nanoTime() - idleSince);
    }

    /**
     * Returns how long jobs have been here that could start, without any having started; zero if there are none. Those that
     * are given back after a while and claimed again have been here all the time.
     */
    public synchronized Duration sinceStartable() {
        boolean nothingToStart = ready.isEmpty() && unsettled.size() - behind - running <= 0;
        return anyStartable && !nothingToStart ? Duration.ofNanos(System.nanoTime() - startableSince) : Duration.ZERO;
    }

    /** Returns true if there is no claimed job whose outcome is still to be written. */
    public synchronized boolean isIdle() {
        return unsettled.isEmpty();
    }

    /** Waits until the outcome of every claimed job is written; returns whether that is so. */
    synchronized boolean awaitIdle(Duration limit) throws InterruptedException {
        long deadline = System.nanoTime() + limit.toNanos();
        while (!unsettled.isEmpty()) {
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

    /** Counts jobs as settled that have never been here. */
    synchronized void settledElsewhere(int jobs) {
        settledInTotal += jobs;
    }

    /** Waits until a job is settled that was not when the given total was read, but no longer than the limit. */
    public synchronized void awaitSettledBeyond(long total, Duration limit) throws InterruptedException {
        if (settledInTotal == total) {
            TimeUnit.NANOSECONDS.timedWait(this, limit.toNanos());
        }
    }
}
