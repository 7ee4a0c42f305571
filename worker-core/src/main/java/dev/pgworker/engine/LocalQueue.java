package dev.pgworker.engine;

import java.time.Duration;
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

import dev.pgworker.job.Job;
import dev.pgworker.store.JobStore.Lanes;

/**
 * The jobs that this worker has claimed, from the claim until their outcome is written: those that wait for a handler,
 * in the order in which they are to start, those that run, and those whose outcome is not written yet.
 *
 * <p>Jobs are claimed ahead of free handlers as far as handlers are measured to be fast, so that slow ones leave jobs to
 * other workers and to more urgent ones. Of a named queue one job at a time is runnable or runs; the others that are here
 * wait for it. A job that has waited too long is not started but given back, together with those behind it in its queue:
 * the database may have decided that this worker is dead.
 *
 * <p>It also counts the runners, the tasks on the handler executor that take jobs from here one after the other: a
 * runner signs off in the same step in which it finds nothing, so that a job added next always finds or starts one.
 * Safe for use by many threads.
 */
public final class LocalQueue {

    private static final Comparator<Claimed> START_ORDER = LocalQueue::compareStart;

    /** After so many slow jobs of a queue in a row, or a run of fast ones, other due jobs get their turn. */
    private static final int LONGEST_TENURE = 100;

    private final int concurrency;
    private final int size;
    private final int longestRun;
    private final long timeToLiveNanos;

    /** Called, holding no lock of this, when there is room again or jobs are to be given back. */
    private volatile Runnable changed = () -> {};

    @GuardedBy("this") private final PriorityQueue<Claimed> ready = new PriorityQueue<>(START_ORDER);

    @GuardedBy("this") private final Map<String, Lane> lanes = new HashMap<>();

    /** Jobs that have not started, in {@link #ready} or behind another job of their queue. */
    @GuardedBy("this") private int waiting;

    /** Jobs that have been handed out and have not ended. */
    @GuardedBy("this") private int running;

    @GuardedBy("this") private int runners;

    /**
     * Ids of the jobs whose outcome is not known to be written, and how often they are here: a job given up may be claimed
     * again before that is known.
     */
    @GuardedBy("this") private final Map<Long, Integer> unsettled = new HashMap<>();

    /** Jobs that are not to be started, until somebody gives them back. */
    @GuardedBy("this") private List<Job> expired = new ArrayList<>();

    @GuardedBy("this") private final Pace pace = new Pace();

    @GuardedBy("this") private final Map<String, Pace> paceOfTask = new HashMap<>();

    /** Whether the database holds due jobs for which there is no room. */
    @GuardedBy("this") private boolean othersWait;

    @GuardedBy("this") private long settledInTotal;

    @GuardedBy("this") private boolean closed;

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

    /** A job and the {@link System#nanoTime} of its claim. */
    private record Claimed(Job job, long at) {}

    private static int compareStart(Claimed one, Claimed other) {
        int order = Integer.compare(one.job.priority(), other.job.priority());
        if (order == 0) {
            order = one.job.runAt().compareTo(other.job.runAt());
        }
        return order == 0 ? Long.compare(one.job.id(), other.job.id()) : order;
    }

    /** The jobs of one named queue. */
    private static final class Lane {
        private final PriorityQueue<Claimed> behind = new PriorityQueue<>(START_ORDER);
        /** The one that is ready or runs; compared by identity, because a job that is tried again has the same id. */
        private @Nullable Job current;
        /** How many of its jobs are {@link LocalQueue#unsettled}. */
        private int unsettled;
        /** How many of its jobs have been claimed since this worker locked it. */
        private int tenure;
        /** Set when jobs of it are being given back: no later one may start before. */
        private boolean expired;
    }

    /** Says whom to tell about room and about jobs to give back. Call before any job arrives. */
    public void connect(Runnable onChange) {
        changed = onChange;
    }

    /** Returns how many jobs may be claimed; 0 while enough jobs wait, so that claims are not small. */
    public synchronized int free() {
        int ahead = ahead();
        if (closed || (ahead > 0 && waiting > ahead / 2)) {
            return 0;
        }
        int mayWait = concurrency + ahead - running - waiting;
        int mayBeUnwritten = 2 * (concurrency + ahead) - unsettled.size();
        return Math.max(0, Math.min(mayWait, mayBeUnwritten));
    }

    @GuardedBy("this") private int ahead() {
        return pace.jobs(concurrency, size);
    }

    /**
     * Takes claimed jobs in.
     *
     * @return how many runners to start, or -1 if the queue is closed and the jobs are to be given back; they count as
     *     claimed in either case
     */
    int add(List<Job> jobs) {
        boolean newlyExpired;
        int runnersToStart;
        synchronized (this) {
            boolean noneExpired = expired.isEmpty();
            takeIn(jobs);
            newlyExpired = noneExpired && !expired.isEmpty();
            runnersToStart = closed ? -1 : missingRunners();
        }
        if (newlyExpired) {
            changed.run();
        }
        return runnersToStart;
    }

    @GuardedBy("this") private void takeIn(List<Job> jobs) {
        long time = System.nanoTime();
        for (Job job : jobs) {
            unsettled.merge(job.id(), 1, Integer::sum);
            Lane lane = null;
            if (job.queueName() != null) {
                lane = lanes.computeIfAbsent(job.queueName(), name -> new Lane());
                lane.unsettled++;
                lane.tenure++;
            }
            if (!closed) {
                put(new Claimed(job, time), lane);
            }
        }
    }

    @GuardedBy("this") private void put(Claimed claimed, @Nullable Lane lane) {
        if (lane != null && lane.expired) {
            expired.add(claimed.job);
            return;
        }
        waiting++;
        if (lane == null) {
            ready.add(claimed);
        } else {
            lane.behind.add(claimed);
            if (lane.current == null) {
                promote(lane);
            }
        }
    }

    /** Makes the next job of a queue runnable. */
    @GuardedBy("this") private void promote(Lane lane) {
        Claimed next = lane.behind.poll();
        lane.current = next == null ? null : next.job;
        if (next != null) {
            ready.add(next);
        }
    }

    /** Signs on as many runners as the ready jobs need and the concurrency allows; returns how many to start. */
    synchronized int missingRunners() {
        int missing = Math.max(0, Math.min(ready.size(), concurrency - runners));
        runners += missing;
        return missing;
    }

    /**
     * Returns the next job for a runner, or null after having signed the runner off.
     *
     * @param ended the job that the runner has just run, whose outcome is submitted; null if there is none
     * @param nanos how long it took
     */
    @Nullable Job next(@Nullable Job ended, long nanos) {
        boolean worthALook;
        Job next;
        synchronized (this) {
            boolean noRoom = free() == 0;
            if (ended != null) {
                end(ended, nanos);
            }
            boolean noneExpired = expired.isEmpty();
            next = poll();
            worthALook = (noRoom && free() > 0) || (noneExpired && !expired.isEmpty());
        }
        if (worthALook) {
            changed.run();
        }
        return next;
    }

    @SuppressWarnings("ReferenceEquality") // a job that is claimed again is another one
    @GuardedBy("this") private void end(Job job, long nanos) {
        running--;
        pace.ran(nanos);
        if (job.queueName() != null) {
            paceOfTask.computeIfAbsent(job.taskIdentifier(), task -> new Pace()).ran(nanos);
            Lane lane = lanes.get(job.queueName());
            if (lane != null && lane.current == job) {
                promote(lane);
            }
        }
    }

    @GuardedBy("this") private @Nullable Job poll() {
        long time = System.nanoTime();
        for (Claimed claimed = ready.poll(); claimed != null; claimed = ready.poll()) {
            if (time - claimed.at <= timeToLiveNanos) {
                waiting--;
                running++;
                return claimed.job;
            }
            expire(claimed);
        }
        signOff();
        return null;
    }

    @GuardedBy("this") private void expire(Claimed claimed) {
        waiting--;
        expired.add(claimed.job);
        pace.doubt();
        String queueName = claimed.job.queueName();
        Lane lane = queueName == null ? null : lanes.get(queueName);
        if (lane != null) {
            lane.expired = true;
            lane.current = null;
            for (Claimed behind : lane.behind) {
                waiting--;
                expired.add(behind.job);
            }
            lane.behind.clear();
        }
    }

    /** Returns the jobs that have waited too long; the caller gives them back. */
    synchronized List<Job> takeExpired() {
        long time = System.nanoTime();
        List<Claimed> late = new ArrayList<>();
        for (Claimed claimed : ready) {
            if (time - claimed.at > timeToLiveNanos) {
                late.add(claimed);
            }
        }
        if (!late.isEmpty()) {
            ready.removeAll(new HashSet<>(late));
            late.forEach(this::expire);
        }
        List<Job> taken = expired;
        expired = new ArrayList<>();
        return taken;
    }

    /** Returns how long to wait until a job has waited too long; a very long time if none waits. */
    synchronized long nanosUntilExpired() {
        if (!expired.isEmpty()) {
            return 0;
        }
        long time = System.nanoTime();
        long left = Long.MAX_VALUE;
        for (Claimed claimed : ready) {
            left = Math.min(left, Math.max(0, claimed.at + timeToLiveNanos - time + 1));
        }
        return left;
    }

    /** Signs a runner off that could not be started. */
    synchronized void signOff() {
        runners--;
        if (runners == 0) {
            notifyAll();
        }
    }

    /**
     * Signs a runner off that is stuck in a job, whose outcome is submitted; returns true if another one has been signed on
     * and is to be started.
     */
    boolean replaceRunner(Job stuck, long nanos) {
        boolean replaced;
        synchronized (this) {
            end(stuck, nanos);
            replaced = !ready.isEmpty();
            if (!replaced) {
                signOff();
            }
        }
        changed.run();
        return replaced;
    }

    /** Waits until no handler runs; returns whether that is so. Meaningful once the queue is closed. */
    synchronized boolean awaitNoRunners(Duration limit) throws InterruptedException {
        long deadline = System.nanoTime() + limit.toNanos();
        while (runners > 0) {
            long left = deadline - System.nanoTime();
            if (left <= 0) {
                return false;
            }
            TimeUnit.NANOSECONDS.timedWait(this, left);
        }
        return true;
    }

    /** Returns true if the outcome of the job is still to be written. */
    synchronized boolean contains(long id) {
        return unsettled.containsKey(id);
    }

    /** Returns true if the outcome of a job of this queue is still to be written. */
    synchronized boolean containsQueue(@Nullable String queueName) {
        return queueName != null && lanes.containsKey(queueName);
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
        int room = concurrency + size + longestRun - running - waiting;
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
                if (!closed && !lane.expired && planned.add(job.queueName())) {
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
        Pace ofTask = paceOfTask.get(taskIdentifier);
        return ofTask == null ? 1 : Math.max(1, ofTask.jobs(1, longestRun));
    }

    /** Says whether the database holds due jobs for which there is no room: queues then end after a while. */
    synchronized void othersWait(boolean wait) {
        othersWait = wait;
    }

    /** Forgets jobs whose outcome is written. */
    synchronized void settled(Collection<Job> jobs) {
        for (Job job : jobs) {
            unsettled.computeIfPresent(job.id(), (id, times) -> times == 1 ? null : times - 1);
            Lane lane = job.queueName() == null ? null : lanes.get(job.queueName());
            if (lane != null && --lane.unsettled == 0) {
                lanes.remove(job.queueName());
            }
        }
        settledInTotal += jobs.size();
        notifyAll();
    }

    /** Lets no further job start and returns those that have not started. */
    synchronized List<Job> close() {
        closed = true;
        List<Job> unstarted = expired;
        expired = new ArrayList<>();
        ready.forEach(claimed -> unstarted.add(claimed.job));
        ready.clear();
        for (Lane lane : lanes.values()) {
            lane.behind.forEach(claimed -> unstarted.add(claimed.job));
            lane.behind.clear();
        }
        waiting = 0;
        return unstarted;
    }

    /**
     * How much a worker has to do.
     *
     * @param running jobs whose handler runs
     * @param waiting claimed jobs that wait for a handler
     */
    public record Load(int running, int waiting) {}

    /** Returns how much the worker has to do. */
    public synchronized Load load() {
        return new Load(running, waiting);
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

    /** Waits until a job is settled that was not when the given total was read. */
    public synchronized void awaitSettledBeyond(long total) throws InterruptedException {
        while (settledInTotal == total) {
            wait();
        }
    }
}
