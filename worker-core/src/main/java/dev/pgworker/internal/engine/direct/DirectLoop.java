package dev.pgworker.internal.engine.direct;

import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;

import org.jspecify.annotations.Nullable;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.engine.claim.ClaimPermission;
import dev.pgworker.internal.engine.claim.DirectTasks;
import dev.pgworker.internal.engine.claim.ForbiddenFlagsException;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.lifecycle.BackgroundService;
import dev.pgworker.internal.store.ClaimRequest;
import dev.pgworker.internal.store.DirectStore;
import dev.pgworker.internal.store.DirectStore.Floor;
import dev.pgworker.internal.store.DirectStore.Request;
import dev.pgworker.internal.store.DirectStore.Taken;
import dev.pgworker.internal.store.JobStore;
import dev.pgworker.internal.store.TaskIds;

/**
 * Locks jobs of direct tasks, runs them on its own thread and deletes them, all in one transaction, again and again: one of the
 * chains {@code worker-direct-1} and so on. Decides when to look, and for how many and which jobs; the rest is told by {@link DirectBatch}.
 */
final class DirectLoop extends BackgroundService {

    private static final int LARGEST_BATCH = 2_000;
    private static final int FIRST_BATCH = 16;
    private static final int GROWTH = 4;

    private static final Duration FLAGS_RETRY = Duration.ofSeconds(1);

    /** How long to wait while all jobs that are due wait to be claimed in the ordinary way. */
    private static final long STALLED_NANOS = Duration.ofMillis(10).toNanos();

    /** The same while there is no room for them; room that is made while the chain begins to rest does not end this. */
    private static final long FULL_NANOS = Duration.ofMillis(250).toNanos();

    /** A look that takes longer reads what finished jobs have left, and is made less often. */
    private static final long SLOW_NANOS = Duration.ofMillis(10).toNanos();

    /** Such looks take at most this part of the time. */
    private static final int SLOW_SHARE = 10;

    /** So many in a row are no coincidence. */
    private static final int MANY_SLOW_LOOKS = 10;

    /** After so many failures in a row that may have been anything, the ordinary way is tried. */
    private static final int MOST_FAILURES = 5;

    private final int number;
    private final DirectContext context;
    private final DirectTasks direct;
    private final DirectRest rest;
    private final JobStore store;
    private final ClaimPermission permission;
    private final long pollNanos;

    private final AtomicBoolean notified = new AtomicBoolean();
    private volatile boolean idle;

    /** The batch whose handlers run. */
    private volatile @Nullable DirectBatch current;

    /** Used by the thread, and broken by a stop that does not wait any longer. */
    private volatile DirectStore.@Nullable Session session;

    // Owned by the thread.
    private TaskIds known = TaskIds.NONE;

    /** Those of the known tasks whose jobs may be started at present. */
    private TaskIds tasks = TaskIds.NONE;

    private boolean mayHaveDue;
    private long pollAt = System.nanoTime();
    private long dueAt = Long.MAX_VALUE;
    private int size = FIRST_BATCH;
    private boolean lastFull;

    /** A floor is that of the part for which it was found. */
    private int lastParts = 1;

    private @Nullable Floor floor;
    private long fullLookAt = pollAt;
    private long noteLookAt = pollAt;
    private long dueLookAt = pollAt;

    /** Before this {@link System#nanoTime} nothing is taken: a look in vain has read much, other tasks' jobs for instance. */
    private long takeAt = pollAt;

    private int slowLooks;
    private int failures;

    DirectLoop(int number, DirectContext context, Duration pollInterval) {
        super("worker-direct-" + (number + 1), true, context.worker().outage());
        this.number = number;
        this.context = context;
        this.direct = context.tasks();
        this.rest = context.rest();
        this.store = context.store();
        this.permission = context.permission();
        pollNanos = pollInterval.toNanos();
    }

    /** Says that there may be a job to run. May be called from any thread. */
    void jobsMayBeDue() {
        notified.set(true);
        wake();
    }

    /** Says that there is room for jobs that are claimed, or that jobs may be run from here on. May be called from any thread. */
    void capacityFreed() {
        if (idle && rest.size() > 0) {
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

    /**
     * Ends the batch without the handler that is running if that takes long, so that the other jobs are free. Asks the database;
     * not for the chain's own thread.
     */
    void releaseSlow() {
        DirectBatch batch = current;
        if (batch != null) {
            batch.releaseSlow();
        }
    }

    /** Breaks a batch whose handler does not end. May be called from any thread. */
    void abort() {
        DirectStore.Session current = session;
        if (current != null) {
            current.abort();
        }
    }

    @Override
    protected void step() throws SQLException, InterruptedException {
        try {
            tryStep();
            failures = 0;
        } catch (ForbiddenFlagsException e) {
            mayHaveDue = true;
            rest(FLAGS_RETRY.toNanos());
        } catch (SQLException | RuntimeException | Error e) {
            mayHaveDue = true;
            closeSession();
            DatabaseFailure kind = DatabaseFailure.of(e);
            boolean refused = kind == DatabaseFailure.REFUSED || kind == DatabaseFailure.INTERNAL;
            boolean outage = kind == DatabaseFailure.OUTAGE && !DatabaseFailure.isAnswer(e);
            if (!isStopping() && (refused || (!outage && ++failures >= MOST_FAILURES))) {
                failures = 0;
                direct.suspend(e);
            }
            throw e;
        }
    }

    private void tryStep() throws SQLException, InterruptedException {
        long time = System.nanoTime();
        if (time - pollAt >= 0) {
            pollAt = time + pollNanos;
            if (number == 0 || !context.others().isFirstIdle()) {
                known = store.claims().tasks(direct.identifiers());
                mayHaveDue = true;
            }
        }
        if (notified.getAndSet(false) || (dueAt != Long.MAX_VALUE && time - dueAt >= 0)) {
            mayHaveDue = true;
        }
        if (direct.isSuspended() || !permission.ownership().mayClaim()) {
            rest(Math.min(pollNanos, FLAGS_RETRY.toNanos()));
            return;
        }
        learnTasks();
        if (rest.size() > 0) {
            rest.claim(permission.flags().get());
        }
        if (tasks.identifiers().isEmpty()) {
            rest(Math.max(0, pollAt - time));
        } else if (mayHaveDue && time - takeAt < 0) {
            notified.set(false);
            rest(takeAt - time);
        } else if (mayHaveDue) {
            batch();
        } else {
            long wakeAt = dueAt == Long.MAX_VALUE || pollAt - dueAt < 0 ? pollAt : dueAt;
            rest(Math.max(0, wakeAt - time));
        }
    }

    /** A floor is that of the tasks for which it was found. */
    private void learnTasks() throws SQLException {
        if (known.identifiers().isEmpty()) {
            known = store.claims().tasks(direct.identifiers());
        }
        TaskIds allowed = permission.tasks().allowed(known);
        if (!allowed.equals(tasks)) {
            tasks = allowed;
            floor = null;
            mayHaveDue = true;
        }
    }

    private void rest(long nanos) throws InterruptedException {
        idle = true;
        try {
            if (!notified.get()) {
                pause(nanos);
            }
        } finally {
            idle = false;
        }
    }

    private void batch() throws SQLException, InterruptedException {
        Collection<String> forbidden = permission.flags().get();
        shield(true);
        Ran ran;
        try {
            ran = batch(openSession(), forbidden);
        } finally {
            shield(false);
        }
        switch (ran) {
            case STALLED -> rest(rest.hasRoom() ? STALLED_NANOS : FULL_NANOS);
            case ALL -> lookAhead();
            case MAY_HAVE_MORE -> {}
        }
    }

    /** How a batch went. */
    private enum Ran {
        /** There is nothing left to do. */
        ALL,
        /** There may be more to do at once. */
        MAY_HAVE_MORE,
        /** All there is waits to be claimed. */
        STALLED
    }

    /** Takes jobs in a transaction, runs those that a batch may run, and ends the transaction. */
    private Ran batch(DirectStore.Session session, Collection<String> forbidden)
            throws SQLException, InterruptedException {
        List<Taken> taken = take(session, forbidden);
        boolean mayHaveMore = lastFull || lastParts > 1;
        List<Taken> mine = withoutClaimed(session, taken, forbidden);
        if (!mine.isEmpty()) {
            mine = withoutSuspects(session, mine);
        }
        if (mine.isEmpty()) {
            session.rollBack();
            return taken.isEmpty() ? (mayHaveMore ? Ran.MAY_HAVE_MORE : Ran.ALL) : Ran.STALLED;
        }
        DirectBatch batch = new DirectBatch(context, session);
        boolean cut;
        try {
            cut = run(batch, mine);
            batch.end();
        } catch (SQLException | RuntimeException | Error e) {
            batch.leaveToOthers();
            throw e;
        }
        return cut || mayHaveMore ? Ran.MAY_HAVE_MORE : Ran.ALL;
    }

    /** Returns whether jobs are left that have not run. */
    private boolean run(DirectBatch batch, List<Taken> taken) throws InterruptedException {
        current = batch;
        try {
            idle(() -> {
                batch.run(taken, this::isStopping);
                return batch;
            });
        } finally {
            current = null;
        }
        int started = batch.started();
        boolean cut = started < taken.size();
        if (cut && floor != null) {
            floor = Floor.at(taken.get(started).job());
        }
        if (started > 0) {
            size = (int) Math.max(1, Math.min(Math.min(batch.mostInTime(), LARGEST_BATCH), (long) GROWTH * size));
        }
        return cut;
    }

    /** What falls due next is not asked often while the answer takes long. */
    private void lookAhead() throws SQLException {
        long begin = System.nanoTime();
        mayHaveDue = false;
        if (begin - dueLookAt < 0) {
            dueAt = dueLookAt;
            return;
        }
        Duration untilDue;
        try {
            untilDue = store.claims()
                    .look(ClaimRequest.of(tasks, List.of()), null, null)
                    .untilNext();
        } catch (SQLException e) {
            mayHaveDue = true;
            throw e;
        }
        long end = System.nanoTime();
        dueLookAt = end - begin < SLOW_NANOS ? end : end + SLOW_SHARE * (end - begin);
        dueAt = untilDue == null || untilDue.toNanos() > pollNanos ? Long.MAX_VALUE : end + untilDue.toNanos();
        if (floor != null && (dueAt == Long.MAX_VALUE || fullLookAt - dueAt < 0)) {
            dueAt = fullLookAt;
        }
    }

    // Which jobs

    private List<Taken> take(DirectStore.Session session, Collection<String> forbidden) throws SQLException {
        int wanted = Math.min(10 * LARGEST_BATCH, size + rest.size());
        int parts = lastFull && !direct.isAnyHeldUp() ? context.others().count() : 1;
        if (parts != lastParts) {
            floor = null;
            lastParts = parts;
        }
        context.publish(() -> new WorkerEvent.FetchStarted(context.workerId(), wanted));
        long begin = System.nanoTime();
        Floor from = floor != null && begin - fullLookAt < 0 ? floor : null;
        List<Taken> taken = session.take(tasks, new Request(wanted, forbidden, number % parts, parts, from));
        long took = System.nanoTime() - begin;
        boolean full = taken.size() >= wanted;
        if (from == null) {
            floor = null;
            fullLookAt = begin + took + SLOW_SHARE * took;
        }
        if (taken.isEmpty() && took > SLOW_NANOS) {
            takeAt = begin + took + SLOW_SHARE * took;
        }
        if ((full || from != null || took > SLOW_NANOS) && !taken.isEmpty()) {
            floor = Floor.at(taken.get(taken.size() - 1).job());
        }
        lastFull = full;
        if (full) {
            context.others().helpWanted();
        }
        context.publish(() -> taken.isEmpty()
                ? new WorkerEvent.FetchEmpty(context.workerId())
                : new WorkerEvent.JobsFetched(context.workerId(), taken.size()));
        return taken;
    }

    /** Nobody who adds a job under a key is to wait for the batch, least of all one of its handlers. */
    private List<Taken> withoutClaimed(DirectStore.Session session, List<Taken> taken, Collection<String> forbidden)
            throws SQLException {
        List<Taken> mine = new ArrayList<>(taken.size());
        List<Long> claimed = new ArrayList<>();
        boolean anyKeyed = false;
        boolean anyLeft = rest.size() > 0;
        for (Taken one : taken) {
            if (one.job().key() != null || !one.hasPayload()) {
                claimed.add(one.job().id());
                anyKeyed |= one.job().key() != null;
            } else if (!anyLeft || !rest.isLeft(one.job().id())) {
                mine.add(one);
            }
        }
        rest.add(claimed);
        if (!anyKeyed) {
            return mine;
        }
        session.rollBack();
        return mine.isEmpty()
                ? mine
                : session.take(
                        tasks,
                        forbidden,
                        mine.stream().map(one -> one.job().id()).toList());
    }

    private List<Taken> withoutSuspects(DirectStore.Session session, List<Taken> taken) throws SQLException {
        long begin = System.nanoTime();
        boolean look = begin - noteLookAt >= 0;
        Set<Long> suspects = session.note(taken, look);
        long took = System.nanoTime() - begin;
        if (look) {
            slowLooks = took > SLOW_NANOS ? slowLooks + 1 : 0;
            noteLookAt = slowLooks < MANY_SLOW_LOOKS ? begin : begin + took + SLOW_SHARE * took;
        }
        if (suspects.isEmpty()) {
            return taken;
        }
        rest.addSuspects(suspects);
        return taken.stream().filter(one -> !suspects.contains(one.job().id())).toList();
    }

    private DirectStore.Session openSession() throws SQLException {
        DirectStore.Session current = session;
        if (current == null) {
            current = store.direct().open(number);
            session = current;
        }
        return current;
    }

    private void closeSession() {
        DirectStore.Session current = session;
        session = null;
        if (current != null) {
            current.close();
        }
    }

    @Override
    protected void afterLastStep() {
        closeSession();
    }
}
