package dev.pgworker.internal.engine.direct;

import java.sql.SQLException;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.engine.claim.DueJobs;
import dev.pgworker.internal.engine.claim.ForbiddenFlagsException;
import dev.pgworker.internal.engine.floor.Floors;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.lifecycle.BackgroundService;
import dev.pgworker.internal.store.Claimed;
import dev.pgworker.internal.store.Claimed.Unreadable;
import dev.pgworker.internal.store.ClaimedJob;
import dev.pgworker.internal.store.DirectStore;
import dev.pgworker.internal.store.Look;

/**
 * Locks jobs of direct tasks, runs them on its own thread and deletes them, all in one transaction, again and again:
 * one of the chains {@code worker-direct-1} and so on. {@link DueJobs} decides where to look and when; {@link
 * DirectBatch} does the rest.
 */
final class DirectLoop extends BackgroundService {

    private static final int LARGEST_BATCH = 2_000;
    private static final int FIRST_BATCH = 16;
    private static final int GROWTH = 4;

    /** How soon to try again what a source of flags, or a locked row, keeps from being done. */
    private static final long RETRY_NANOS = Duration.ofSeconds(1).toNanos();

    /** After so many failures in a row that may have been anything, the ordinary way is tried. */
    private static final int MOST_FAILURES = 5;

    private final DirectContext context;

    /** Called when a batch begins, and when there is more to do than one chain takes at once. */
    private final Runnable onBegin;

    private final Runnable onMore;

    /** Set when there may be jobs to run. */
    private final AtomicBoolean mayHaveDue = new AtomicBoolean(true);

    private volatile boolean idle;

    /** The batch whose handlers run. */
    private volatile @Nullable DirectBatch current;

    /** Used by the thread, and broken by a stop that does not wait any longer. */
    private volatile DirectStore.@Nullable Session session;

    // Owned by the thread.
    private int size = FIRST_BATCH;
    private int failures;

    DirectLoop(int number, DirectContext context, Runnable onBegin, Runnable onMore) {
        super("worker-direct-" + number, true, context.worker().outage());
        this.context = context;
        this.onBegin = onBegin;
        this.onMore = onMore;
    }

    /** Notes that there may be a job to run. May be called from any thread. */
    boolean jobsMayBeDue() {
        mayHaveDue.set(true);
        wake();
        return true;
    }

    /** Has the chain see what there is to do, if it waits for something. May be called from any thread. */
    void lookAgain() {
        if (idle) {
            wake();
        }
    }

    /** Returns true while the chain waits for something to do. */
    boolean isIdle() {
        return idle;
    }

    /** Returns true while a handler runs. */
    boolean isRunning() {
        return current != null;
    }

    /** As {@link DirectBatch#releaseSlow}, of the batch that runs. Not for the chain's own thread. */
    void releaseSlow() {
        DirectBatch batch = current;
        if (batch != null) {
            batch.releaseSlow();
        }
    }

    /** Breaks a batch whose handler does not end. May be called from any thread. */
    void abort() {
        DirectStore.Session open = session;
        if (open != null) {
            open.close();
        }
    }

    @Override
    protected void step() throws SQLException, InterruptedException {
        try {
            tryStep();
            failures = 0;
        } catch (ForbiddenFlagsException e) {
            mayHaveDue.set(true);
            pause(RETRY_NANOS);
        } catch (SQLException | RuntimeException | Error e) {
            mayHaveDue.set(true);
            afterLastStep();
            context.due().forget();
            DatabaseFailure kind = DatabaseFailure.of(e);
            boolean refused = kind == DatabaseFailure.REFUSED || kind == DatabaseFailure.INTERNAL;
            boolean outage = kind == DatabaseFailure.OUTAGE && !DatabaseFailure.isAnswer(e);
            if (!isStopping() && (refused || (!outage && ++failures >= MOST_FAILURES))) {
                failures = 0;
                context.tasks().suspend(e);
            }
            throw e;
        }
    }

    private void tryStep() throws SQLException, InterruptedException {
        DueJobs due = context.due();
        if (context.tasks().isSuspended()
                || !context.permission().ownership().mayClaim()
                || due.tasks().identifiers().isEmpty()) {
            rest(Long.MAX_VALUE);
            return;
        }
        if (context.rest().isAny()) {
            context.rest().claim(context.permission().flags().get());
        }
        if (due.nanosUntilLook() <= 0) {
            Look look = due.lookAtAll();
            due.note(look);
            mayHaveDue.compareAndSet(false, look.anyDue());
        }
        if (mayHaveDue.getAndSet(false) || due.nanosUntilDue() <= 0) {
            Collection<String> forbidden = context.permission().flags().get();
            shield(true);
            boolean more;
            try {
                more = batch(openSession(), forbidden);
            } finally {
                shield(false);
            }
            if (more) {
                mayHaveDue.set(true);
            } else {
                due.lookAhead();
            }
        } else {
            long nanos = Math.min(due.nanosUntilDue(), due.nanosUntilLook());
            rest(context.rest().isAny() ? Math.min(nanos, RETRY_NANOS) : nanos);
        }
    }

    private void rest(long nanos) throws InterruptedException {
        idle = true;
        try {
            pause(nanos);
        } finally {
            idle = false;
        }
    }

    /** Takes jobs in a transaction, runs those that a batch may run, and ends the transaction; returns whether there may be more. */
    private boolean batch(DirectStore.Session open, Collection<String> forbidden)
            throws SQLException, InterruptedException {
        List<ClaimedJob> mine;
        boolean full;
        try (Floors.Reading reading = context.due().begin(forbidden)) {
            long begin = System.nanoTime();
            Claimed taken = take(open, forbidden, reading, size, !context.rest().isFull());
            full = taken.size() >= size;
            mine = fit(open, forbidden, reading, taken);
            DueJobs.raise(reading, taken, full, Duration.ofNanos(System.nanoTime() - begin));
        }
        if (full) {
            onMore.run();
        }
        Set<Long> suspects = mine.isEmpty() ? Set.of() : open.note(mine);
        mine = mine.stream().filter(one -> !suspects.contains(one.job().id())).toList();
        boolean cut = false;
        if (mine.isEmpty()) {
            open.rollBack();
        } else {
            cut = run(new DirectBatch(context, open, mine)) < mine.size();
        }
        context.rest().addSuspects(suspects);
        return cut || full;
    }

    private Claimed take(
            DirectStore.Session open, Collection<String> forbidden, Floors.Reading reading, int wanted, boolean all)
            throws SQLException {
        context.publish(id -> new WorkerEvent.FetchStarted(id, wanted));
        Claimed taken = open.take(context.due().tasks(), forbidden, reading.floors(), wanted, all);
        context.publish(id ->
                taken.size() == 0 ? new WorkerEvent.FetchEmpty(id) : new WorkerEvent.JobsFetched(id, taken.size()));
        return taken;
    }

    /**
     * Returns the jobs that a batch may run. The others are not to stay locked meanwhile: no session that adds a job
     * under a key is to wait for the batch, least of all one of its handlers.
     */
    private List<ClaimedJob> fit(
            DirectStore.Session open, Collection<String> forbidden, Floors.Reading reading, Claimed taken)
            throws SQLException {
        List<Long> unfit = Stream.concat(
                        taken.jobs().stream().filter(one -> !isFit(one)),
                        taken.unreadable().stream().map(Unreadable::job))
                .map(one -> one.job().id())
                .toList();
        if (unfit.isEmpty()) {
            return taken.jobs();
        }
        open.rollBack();
        context.rest().add(unfit);
        context.rest().claim(forbidden);
        size = Math.min(LARGEST_BATCH, GROWTH * size);
        int left = taken.size() - unfit.size();
        return left == 0
                ? List.of()
                : take(open, forbidden, reading, left, false).jobs();
    }

    private static boolean isFit(ClaimedJob one) {
        return one.job().key() == null && !ClaimedJob.lacksPayload(one.job());
    }

    /** Returns how many jobs have been started. */
    private int run(DirectBatch batch) throws SQLException, InterruptedException {
        try {
            current = batch;
            try {
                onBegin.run();
                idle(() -> {
                    batch.run(this::isStopping);
                    return batch;
                });
            } finally {
                current = null;
            }
            batch.end();
        } catch (SQLException | RuntimeException | Error e) {
            batch.leaveToOthers();
            throw e;
        }
        if (batch.started() > 0) {
            size = (int) Math.max(1, Math.min(Math.min(batch.mostInTime(), LARGEST_BATCH), (long) GROWTH * size));
        }
        return batch.started();
    }

    private DirectStore.Session openSession() throws SQLException {
        DirectStore.Session open = session;
        if (open == null) {
            open = context.store().open();
            session = open;
        }
        return open;
    }

    /** Closes the session. */
    @Override
    protected void afterLastStep() {
        abort();
        session = null;
    }
}
