package dev.pgworker.internal.engine.claim;

import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.engine.queue.LocalQueue;
import dev.pgworker.internal.engine.run.Ownership;
import dev.pgworker.internal.failure.Backoff;
import dev.pgworker.internal.failure.ErrorText;
import dev.pgworker.internal.lifecycle.BackgroundService;
import dev.pgworker.internal.lifecycle.Started;
import dev.pgworker.internal.lifecycle.WorkSignal;

/**
 * Decides on {@code worker-fetch} when to look for jobs and for how many: after a notification, when a known job
 * becomes due, when a full worker has a slot again, and at the poll interval as a safety net.
 *
 * <p>Only this thread owns the schedule; others wake it.
 */
public final class FetchLoop extends BackgroundService implements WorkSignal.Receiver {

    private static final Logger log = LoggerFactory.getLogger(FetchLoop.class);

    /** At every so many polls the ids of the tasks are looked up again. */
    private static final int POLLS_PER_TASKS = 5;

    /** How long to wait for a source of forbidden flags that fails. */
    private static final Duration FLAGS_RETRY = Duration.ofSeconds(1);

    private final WorkerContext context;
    private final Fetcher fetcher;
    private final ClaimPlanner planner;
    private final LocalQueue localQueue;
    private final Ownership ownership;
    private final SecondFetchLoop second;
    private final long pollNanos;
    private final Runnable onPoll;

    /** Set by any thread when the tasks that are to be claimed may have changed. */
    private final AtomicBoolean tasksChanged = new AtomicBoolean();

    /** Set by any thread when the database may hold a due job that the last claim did not see. */
    private final AtomicBoolean notified = new AtomicBoolean();

    /** Whether the thread waits for something to become due, and nothing is that it knows of. */
    private volatile boolean quiet;

    /** Why no job can be claimed, while that is so. */
    private volatile @Nullable String obstacle;

    // Owned by the thread.
    private int pollsSinceTasks = POLLS_PER_TASKS;
    private boolean knowsTasks;
    private boolean begun;
    private boolean mayHaveDue = true;

    /** When to look again for queues that others held, by {@link System#nanoTime}; null if none were. */
    private @Nullable Long againAt;

    /** Whether there is no news, so that what is due next is known. */
    private boolean noNews;

    private long pollAt;
    private long dueAt = Long.MAX_VALUE;

    /** How soon to look again for queues that others held for the moment; each time later, because a moment may take long. */
    private final Backoff passedOver = new Backoff(Duration.ofMillis(4), Duration.ofSeconds(4));

    /**
     * How to look for jobs that nothing announced.
     *
     * @param interval how often
     * @param before called on the loop's thread before each such look
     */
    public record Polling(Duration interval, Runnable before) {}

    /**
     * Creates a loop for one worker.
     *
     * @param second helps when there is much to claim
     */
    public FetchLoop(
            WorkerContext context,
            Fetcher fetcher,
            ClaimPlanner planner,
            LocalQueue localQueue,
            Ownership ownership,
            SecondFetchLoop second,
            Polling polling) {
        // The one thread that keeps an application alive which does nothing but work.
        super("worker-fetch", false, context.outage());
        this.context = context;
        this.fetcher = fetcher;
        this.planner = planner;
        this.localQueue = localQueue;
        this.ownership = ownership;
        this.second = second;
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
    public void claimsMayFindMore() {
        jobsMayBeDue();
    }

    @Override
    public void capacityFreed() {
        wake();
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
            noNews = false;
            throw e;
        }
    }

    private void tryStep() throws SQLException, InterruptedException {
        long time = System.nanoTime();
        boolean changed = tasksChanged.getAndSet(false);
        if (!knowsTasks || changed || time - pollAt >= 0) {
            if (pollsSinceTasks++ >= POLLS_PER_TASKS - 1 || !knowsTasks || changed) {
                learnTasks();
                pollsSinceTasks = 0;
            }
            pollAt = System.nanoTime() + pollNanos;
            noNews = !mayHaveDue && !changed;
            mayHaveDue = true;
            if (noNews) {
                fetcher.polls();
            }
            onPoll.run();
        }
        if (againAt != null && time - againAt >= 0) {
            againAt = null;
            noNews |= !mayHaveDue;
            mayHaveDue = true;
        }
        if (notified.getAndSet(false) || (dueAt != Long.MAX_VALUE && time - dueAt >= 0)) {
            mayHaveDue = true;
            noNews = false;
        }
        fetcher.tend();
        if (!begun && ownership.mayClaim()) {
            begun = true;
            context.started().done(Started.Part.CLAIMS);
        }
        if (!mayHaveDue || !ownership.mayClaim() || !claim()) {
            localQueue.othersWait(mayHaveDue);
            long wakeAt = mayHaveDue || dueAt == Long.MAX_VALUE || pollAt - dueAt < 0 ? pollAt : dueAt;
            wakeAt = mayHaveDue || againAt == null || wakeAt - againAt < 0 ? wakeAt : againAt;
            quiet = !mayHaveDue && againAt == null && !planner.isSplit() && !planner.isCareful();
            try {
                pause(Math.min(Math.max(wakeAt - time, 0), localQueue.nanosUntilExpired()));
            } finally {
                quiet = false;
            }
        }
    }

    private void learnTasks() throws SQLException {
        fetcher.learnTasks();
        if (!knowsTasks) {
            knowsTasks = true;
            log.debug("Tasks: {}", fetcher.identifiers());
            context.publish(() -> new WorkerEvent.WorkerStarted(context.workerId(), fetcher.identifiers()));
        }
    }

    /** Returns false if there is no room. */
    private boolean claim() throws SQLException {
        int room = localQueue.reserve(planner.isSplit() ? 2 : 1);
        if (room == 0) {
            return false;
        }
        long before = System.nanoTime();
        FetchResult fetched;
        try {
            // If this throws, whether something is due is still unknown.
            fetched = fetcher.fetch(room);
        } finally {
            localQueue.unreserve(room);
        }
        if (fetched.wantsSecond() && second.isWaiting() && planner.split()) {
            second.begin();
        }
        noNews &= fetched.count() == 0 && !fetched.mayHaveMore();
        if (!fetched.mayHaveMore()) {
            // Where jobs were announced meanwhile, the next claim follows at once and is not to wait for another
            // answer.
            if (!noNews && !notified.get()) {
                Duration untilDue = planner.untilDue(Duration.ofNanos(System.nanoTime() - before));
                dueAt = untilDue == null ? Long.MAX_VALUE : System.nanoTime() + untilDue.toNanos();
            }
            mayHaveDue = false;
        }
        if (fetched.passedOver()) {
            againAt = System.nanoTime() + passedOver.next().toNanos();
        } else {
            againAt = null;
            passedOver.reset();
        }
        localQueue.othersWait(mayHaveDue);
        return true;
    }
}
