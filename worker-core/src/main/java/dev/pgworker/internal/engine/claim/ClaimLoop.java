package dev.pgworker.internal.engine.claim;

import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.engine.queue.FreedQueues;
import dev.pgworker.internal.engine.queue.LocalQueue;
import dev.pgworker.internal.engine.run.Ownership;
import dev.pgworker.internal.failure.Backoff;
import dev.pgworker.internal.failure.ErrorText;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.lifecycle.BackgroundService;
import dev.pgworker.internal.lifecycle.Started;
import dev.pgworker.internal.lifecycle.WorkSignal;
import dev.pgworker.internal.store.Look;

/**
 * Decides on {@code worker-fetch} when to claim: after a notification, when a known job becomes due, when a full worker has room
 * again, and at the poll interval as a safety net.
 *
 * <p>Only this thread owns the schedule; others wake it.
 */
public final class ClaimLoop extends BackgroundService implements WorkSignal.Receiver {

    private static final Logger log = WorkerLog.of(ClaimLoop.class);

    /** At every so many polls the ids of the tasks are looked up again. */
    private static final int POLLS_PER_TASKS = 5;

    /** How long to wait for a source of forbidden flags that fails. */
    private static final Duration FLAGS_RETRY = Duration.ofSeconds(1);

    /** More ids of announced jobs are not kept: a look at all jobs finds these. */
    private static final int MOST_ANNOUNCED = 10_000;

    /** What a limited claim waits for at least, in which nothing else is to do. */
    private static final long LEAST_NANOS = Duration.ofMillis(10).toNanos();

    private final WorkerContext context;
    private final Claims claims;
    private final LimitedClaims limited;
    private final LocalQueue localQueue;
    private final DueJobs due;
    private final Ownership ownership;
    private final FreedQueues freed;
    private final long pollNanos;
    private final Runnable onPoll;

    /** Set by any thread when the tasks that are to be claimed may have changed. */
    private final AtomicBoolean tasksChanged = new AtomicBoolean();

    /** Set by any thread when the database may hold a due job that the last claim did not see. */
    private final AtomicBoolean notified = new AtomicBoolean();

    /** The ids of jobs that were announced, and are to be claimed by them. */
    @GuardedBy("itself") private final Set<Long> announced = new LinkedHashSet<>();

    /** Whether the thread waits for something to become due, and nothing is that it knows of. */
    private volatile boolean quiet;

    /** Why no job can be claimed, while that is so. */
    private volatile @Nullable String obstacle;

    // Owned by the thread.
    private int pollsSinceTasks = POLLS_PER_TASKS;
    private boolean knowsTasks;
    private boolean begun;
    private boolean mayHaveDue = true;
    private boolean limitedFirst;
    private long pollAt;

    /** How soon to look again for what was locked for the moment; each time later, because a moment may take long. */
    private final Backoff heldRows = new Backoff(Duration.ofMillis(4), Duration.ofSeconds(1));

    /**
     * How to look for jobs that nothing announced.
     *
     * @param interval how often
     * @param before called on the loop's thread before each such look
     */
    public record Polling(Duration interval, Runnable before) {}

    /** What claims jobs: of tasks without a limit, and of those with one. */
    public record Kinds(Claims ordinary, LimitedClaims limited) {}

    /** Creates a loop for one worker. */
    public ClaimLoop(
            WorkerContext context,
            Kinds kinds,
            LocalQueue localQueue,
            DueJobs due,
            Ownership ownership,
            FreedQueues freed,
            Polling polling) {
        // The one thread that keeps an application alive which does nothing but work.
        super("worker-fetch", false, context.outage());
        this.context = context;
        this.claims = kinds.ordinary;
        this.limited = kinds.limited;
        this.localQueue = localQueue;
        this.due = due;
        this.ownership = ownership;
        this.freed = freed;
        this.pollNanos = polling.interval().toNanos();
        this.onPoll = polling.before();
    }

    @Override
    public void tasksMayHaveChanged() {
        tasksChanged.set(true);
        wake();
    }

    @Override
    public void jobsMayBeDue() {
        notified.set(true);
        wake();
    }

    @Override
    public void capacityFreed() {
        wake();
    }

    @Override
    public void limitsMayAllow() {
        limited.tell();
        wake();
    }

    /** Has jobs claimed by their ids. May be called from any thread. */
    public void claimAnnounced(List<Long> ids) {
        synchronized (announced) {
            announced.addAll(ids);
            if (announced.size() > MOST_ANNOUNCED) {
                announced.clear();
                due.lookForJobs();
            }
        }
        jobsMayBeDue();
    }

    /** Returns why no job can be claimed; null while nothing is known to be in the way. */
    public @Nullable String obstacle() {
        return obstacle;
    }

    /** Returns whether a job that becomes due now is the only one, as far as is known. May be called from any thread. */
    boolean isQuiet() {
        return quiet && !notified.get();
    }

    @Override
    protected void step() throws SQLException, InterruptedException {
        try {
            tryStep();
            obstacle = null;
        } catch (ForbiddenFlagsException e) {
            obstacle = e.getMessage();
            mayHaveDue = true;
            pause(FLAGS_RETRY.toNanos());
        } catch (SQLException | RuntimeException | Error e) {
            obstacle = ErrorText.headline(e);
            mayHaveDue = true;
            throw e;
        }
    }

    private void tryStep() throws SQLException, InterruptedException {
        long time = System.nanoTime();
        boolean polls = time - pollAt >= 0 || !knowsTasks;
        if (polls || tasksChanged.get()) {
            learnTasks(polls);
        }
        if (notified.getAndSet(false) || due.nanosUntilDue() <= 0) {
            mayHaveDue = true;
        }
        claims.tend();
        if (ownership.mayClaim()) {
            if (!begun) {
                begun = true;
                context.started().done(Started.Part.CLAIMS);
            }
            if (claim(polls)) {
                return;
            }
        }
        await();
    }

    private void learnTasks(boolean polls) throws SQLException {
        boolean changed = tasksChanged.getAndSet(false);
        if (polls) {
            pollAt = System.nanoTime() + pollNanos;
            onPoll.run();
        }
        if (changed || !knowsTasks || ++pollsSinceTasks >= POLLS_PER_TASKS) {
            claims.learnTasks();
            pollsSinceTasks = 0;
            mayHaveDue |= changed || !knowsTasks;
        }
        if (!knowsTasks) {
            knowsTasks = true;
            log.debug("Tasks: {}", claims.identifiers());
            context.publish(() -> new WorkerEvent.WorkerStarted(context.workerId(), claims.identifiers()));
        }
    }

    /** Returns whether it is worth continuing at once. */
    private boolean claim(boolean polls) throws SQLException {
        if (polls && !mayHaveDue) {
            due.lookForJobs();
        }
        if (due.nanosUntilLook() <= 0) {
            Look look = claims.publishingFailures(due::lookAtAll);
            mayHaveDue |= look.anyDue();
            if (!look.anyDue()) {
                context.publish(() -> new WorkerEvent.FetchEmpty(context.workerId()));
            }
            due.note(look);
        } else {
            mayHaveDue |= polls;
        }
        if (polls) {
            limited.tell();
        }
        if (!mayHaveDue && limited.nanosUntilDue() > 0) {
            return false;
        }
        int room = localQueue.reserve();
        if (room == 0) {
            return false;
        }
        try {
            // In turn, so that of both there are some where handlers are few.
            limitedFirst = !limitedFirst;
            int some = limitedFirst ? claimLimited(room) : 0;
            int left = room - some;
            boolean more = false;
            if (mayHaveDue && left > 0) {
                Claims.Result result = claimOrdinary(left);
                left -= result.count();
                more = result.full();
            }
            some += limitedFirst ? 0 : claimLimited(left);
            return more || (some > 0 && limited.nanosUntilDue() <= 0);
        } finally {
            localQueue.unreserve(room);
        }
    }

    private int claimLimited(int room) throws SQLException {
        return room > 0 && limited.nanosUntilDue() <= 0 ? limited.claim(room).count() : 0;
    }

    /** Returns how many jobs it has claimed, and whether it is worth continuing at once. */
    private Claims.Result claimOrdinary(int room) throws SQLException {
        int named = claimAnnounced(room);
        if (named == room) {
            return new Claims.Result(named, true, false);
        }
        // If this throws, whether something is due is still unknown.
        Claims.Result result = claims.claim(room - named);
        int count = named + result.count();
        if (result.full()) {
            return new Claims.Result(count, true, false);
        }
        mayHaveDue = anyAnnounced();
        if (result.count() > 0 || !result.again()) {
            heldRows.reset();
        }
        if (!notified.get()) {
            // Where jobs were announced meanwhile the next claim follows at once.
            claims.publishingFailures(due::lookAhead);
        }
        if (result.again()) {
            due.dueWithin(heldRows.next());
        }
        return new Claims.Result(count, notified.get() || mayHaveDue, false);
    }

    private boolean anyAnnounced() {
        synchronized (announced) {
            return !announced.isEmpty();
        }
    }

    private int claimAnnounced(int room) throws SQLException {
        List<Long> some = new ArrayList<>();
        synchronized (announced) {
            Iterator<Long> ids = announced.iterator();
            while (ids.hasNext() && some.size() < room) {
                some.add(ids.next());
                ids.remove();
            }
        }
        if (some.isEmpty()) {
            return 0;
        }
        try {
            return claims.claimAnnounced(some);
        } catch (SQLException | RuntimeException | Error e) {
            due.lookForJobs();
            throw e;
        }
    }

    private void await() throws SQLException, InterruptedException {
        long time = System.nanoTime();
        long nanos = Math.min(pollAt - time, localQueue.nanosUntilExpired());
        if (!mayHaveDue) {
            nanos = Math.min(nanos, freed.tell());
            nanos = Math.min(nanos, due.nanosUntilDue());
        }
        nanos = Math.min(nanos, due.nanosUntilLook());
        long untilLimited = limited.nanosUntilDue();
        if (untilLimited > 0 || localQueue.limitedOf(localQueue.free()) > 0) {
            // What is due already waits for room, or has become due since the claim.
            nanos = Math.min(nanos, Math.max(untilLimited, LEAST_NANOS));
        }
        quiet = !mayHaveDue;
        try {
            pause(Math.max(nanos, 0));
        } finally {
            quiet = false;
        }
    }
}
