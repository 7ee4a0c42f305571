package dev.pgworker.internal.engine.claim;

import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.engine.floor.Floors;
import dev.pgworker.internal.store.ClaimRequest;
import dev.pgworker.internal.store.ClaimStore;
import dev.pgworker.internal.store.Claimed;
import dev.pgworker.internal.store.ClaimedJob;
import dev.pgworker.internal.store.Floor;
import dev.pgworker.internal.store.Look;
import dev.pgworker.internal.store.TaskIds;
import dev.pgworker.job.Job;

/**
 * Where the due jobs of some tasks lie, and when the next one is due: the floors, and the looks that keep them true. There is one for
 * claims and one for direct batches. Thread-safe.
 */
public final class DueJobs {

    /** A look at all jobs that takes no longer is made at each poll by the thread that takes jobs. */
    private static final Duration CHEAP = Duration.ofMillis(10);

    /** While looks at all jobs take longer, claims rely on the floors for the order of a queue, too. */
    private static final Duration DEAR = Duration.ofMillis(100);

    /** One look takes long on a busy machine; so many in a row do where the index is full of dead entries. */
    private static final int DEAR_LOOKS = 3;

    /** A look at all jobs that is no older shows whether jobs wait. */
    private static final Duration RECENT = Duration.ofSeconds(5);

    /** How long the database may take for a look at all jobs. */
    private static final Duration LOOK_LIMIT = Duration.ofMinutes(1);

    /** Looks for what peers have announced take at most one part of so many of the time. */
    private static final int LOOK_SHARE = 10;

    private static final long NEVER = Long.MAX_VALUE;

    private final ClaimStore store;
    private final Floors floors;
    private final Supplier<TaskIds> tasks;
    private final CurrentFlags flags;

    /** Set when jobs may lie before the floors. */
    private final AtomicBoolean lookWanted = new AtomicBoolean();

    /** For which tasks and forbidden flags the floors were found. */
    @GuardedBy("this") private Scope scope = new Scope(TaskIds.NONE, Set.of());

    /** When the next job is due, by {@link System#nanoTime}; null if that is unknown. */
    private volatile @Nullable Long dueAt;

    /** How long the database needed for the last look at all jobs. */
    private volatile Duration lookTook = Duration.ZERO;

    /** How many looks in a row have taken long. */
    private volatile int dearLooks;

    /** Whether that look may have found a due job. */
    private volatile boolean lookMayHaveFound = true;

    /** When that was, and when the next one may follow, by {@link System#nanoTime}. */
    private volatile long lookedAt = System.nanoTime();

    private volatile long earliestLook = lookedAt;

    private record Scope(TaskIds tasks, Set<String> forbidden) {}

    /**
     * Creates what finds the jobs of tasks.
     *
     * @param tasks those whose jobs may be started at present
     */
    public DueJobs(ClaimStore store, Floors floors, Supplier<TaskIds> tasks, CurrentFlags flags) {
        this.store = store;
        this.floors = floors;
        this.tasks = tasks;
        this.flags = flags;
    }

    /** Returns the tasks. */
    public TaskIds tasks() {
        return tasks.get();
    }

    /** Begins a statement that takes jobs from the floors on. Where these are not known, a look at all jobs comes first. */
    public Floors.Reading begin(Collection<String> forbidden) throws SQLException {
        synchronized (this) {
            // What was left out before may lie before the floors.
            Scope current = new Scope(tasks(), Set.copyOf(forbidden));
            if (!current.equals(scope)) {
                scope = current;
                floors.forget();
            }
        }
        if (!floors.areKnown()) {
            lookAtAll();
        }
        return floors.read();
    }

    /**
     * Raises floors to the last job without a queue that was taken from them on, or beyond all if there were fewer than wanted.
     *
     * @param full whether there may be more
     * @param took how long the statement took
     */
    public static void raise(Floors.Reading reading, Claimed claimed, boolean full, Duration took) {
        Instant at = claimed.at();
        Job last = null;
        for (ClaimedJob one : claimed.jobs()) {
            last = one.queueId() == 0 ? one.job() : last;
        }
        Instant time = at != null ? at : last == null ? null : last.lockedAt();
        if (time == null) {
            return;
        }
        for (Floor floor : List.copyOf(reading.floors())) {
            int priority = floor.kind().priority();
            boolean beyond = full && (last == null || priority > last.priority());
            if (floor.kind().queued() || beyond) {
                continue;
            }
            Floor to = full && last != null && priority == last.priority()
                    ? new Floor(floor.kind(), last.runAt(), last.id())
                    : new Floor(floor.kind(), time, 0);
            reading.raise(to, time.minus(took));
        }
    }

    /** Notes that these jobs without a queue, which were taken, are free again. */
    public void freed(List<ClaimedJob> jobs) {
        jobs.forEach(one -> floors.announced(
                new Floor.Kind(false, one.job().priority()), one.job().runAt()));
    }

    /** Has the next statement look at all jobs first: jobs may lie anywhere. */
    public void forget() {
        floors.forget();
    }

    /** A look at all jobs: what was not announced is found. */
    public Look lookAtAll() throws SQLException {
        lookWanted.set(false);
        long begin = System.nanoTime();
        try (Floors.Reading reading = floors.read()) {
            Look look = store.look(ClaimRequest.of(tasks(), forbiddenIfKnown()), null, LOOK_LIMIT);
            noteCost(look.took());
            lookMayHaveFound = look.anyDue();
            lookedAt = System.nanoTime();
            earliestLook = lookedAt + LOOK_SHARE * (lookedAt - begin);
            reading.learn(look);
            return look;
        }
    }

    /** A look from the floors on, which raises them, and finds when the next job is due. */
    public Look lookAhead() throws SQLException {
        Scope current;
        synchronized (this) {
            current = scope;
        }
        try (Floors.Reading reading = floors.read()) {
            Look look = store.look(ClaimRequest.of(tasks(), current.forbidden), reading.floors(), null);
            look.first().values().forEach(floor -> reading.raise(floor, look.at()));
            note(look);
            return look;
        }
    }

    /** Takes note of when the next job is due. */
    public void note(Look look) {
        Duration until = look.untilNext();
        dueAt = until == null ? null : Long.valueOf(System.nanoTime() + until.toNanos());
    }

    /** Notes that it is worth taking jobs again after that time, if none is due sooner. */
    void dueWithin(Duration time) {
        dueAt = System.nanoTime() + Math.min(time.toNanos(), nanosUntilDue());
    }

    /** Returns how long until the next job is due, at most zero if one may be; a very long time if that is unknown. */
    public long nanosUntilDue() {
        Long at = dueAt;
        return at == null ? NEVER : at - System.nanoTime();
    }

    /** Asks for a look at all jobs: some may have become due before the floors. */
    public void lookForJobs() {
        lookWanted.set(true);
    }

    /**
     * Returns how long until a look that was asked for is to be made; a very long time if there is none, or another
     * thread makes it.
     */
    public long nanosUntilLook() {
        return lookWanted.get() && isLookCheap() && floors.areKnown() ? earliestLook - System.nanoTime() : NEVER;
    }

    private synchronized void noteCost(Duration took) {
        lookTook = took;
        dearLooks = took.compareTo(DEAR) < 0 ? 0 : dearLooks + 1;
    }

    /** Returns whether to spare claims what looks take. */
    boolean areLooksDear() {
        return dearLooks >= DEAR_LOOKS;
    }

    /** Returns whether the last look at all jobs, not long ago, found none that is due. */
    boolean foundNothingRecently() {
        return !lookMayHaveFound && sinceLook().compareTo(RECENT) < 0;
    }

    private boolean isLookCheap() {
        return lookTook.compareTo(CHEAP) < 0;
    }

    /** Returns how long the database needed for the last look at all jobs. */
    Duration lookTook() {
        return lookTook;
    }

    /** Returns how long ago that was. */
    Duration sinceLook() {
        return Duration.ofNanos(System.nanoTime() - lookedAt);
    }

    private Collection<String> forbiddenIfKnown() {
        try {
            return flags.get();
        } catch (ForbiddenFlagsException e) {
            return List.of();
        }
    }
}
