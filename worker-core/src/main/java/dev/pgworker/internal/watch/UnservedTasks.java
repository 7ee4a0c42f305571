package dev.pgworker.internal.watch;

import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.lifecycle.PeriodicService;
import dev.pgworker.internal.store.UnservedStore;

/**
 * Looks on {@code worker-hints} for jobs that wait though no registered worker serves their task, for example because of a
 * misspelt name, and logs that once for each task.
 */
public final class UnservedTasks extends PeriodicService {

    private static final Logger log = WorkerLog.of(UnservedTasks.class);

    /** Where a worker does not report what it serves, jobs have to wait so many times as long. */
    private static final int PATIENCE_WITH_THE_SILENT = 10;

    /** So many are logged by name in one look, and so many are remembered. */
    private static final int MOST_TOLD = 10;

    private static final int MOST_REMEMBERED = 1_000;

    /**
     * Looks take one part of so many of the time: while a snapshot is held, each reads past what finished jobs left.
     */
    private static final int SHARE = 20;

    private final UnservedStore store;
    private final Set<String> own;
    private final Duration longEnough;

    private volatile List<Unserved> found = List.of();

    // Owned by the thread.
    private final Set<String> told = new HashSet<>();

    private boolean toldCancelled;

    /**
     * Jobs that wait for a task.
     *
     * @param jobs how many have been seen
     * @param closest the task that may have been meant; null if none is close
     */
    public record Unserved(String task, long jobs, @Nullable String closest) {}

    /**
     * Creates the service of one worker.
     *
     * @param own the tasks that it serves
     * @param longEnough how long a job has to be due, and how often to look at most
     */
    public UnservedTasks(UnservedStore store, Set<String> own, Duration longEnough, Outage outage) {
        super("worker-hints", "look for tasks that no worker serves", outage);
        this.store = store;
        this.own = own;
        this.longEnough = longEnough;
    }

    /** Returns what the last look has found, at most ten tasks. May be called from any thread. */
    public List<Unserved> found() {
        return found;
    }

    @Override
    protected Duration firstPause() {
        return longEnough;
    }

    @Override
    protected Duration work() throws SQLException {
        long begin = System.nanoTime();
        try {
            look();
            toldCancelled = false;
        } catch (SQLException e) {
            if (DatabaseFailure.of(e) != DatabaseFailure.CANCELLED) {
                throw e;
            }
            tellCancelled(e);
        }
        long took = System.nanoTime() - begin;
        return Duration.ofNanos(Math.max(longEnough.toNanos(), SHARE * took));
    }

    /** It is a hint only: to try again at once would cost more than it is worth. */
    private void tellCancelled(SQLException e) {
        if (toldCancelled) {
            log.debug("A look for tasks that no worker serves was cancelled again", e);
            return;
        }
        toldCancelled = true;
        log.info(
                "A look for tasks that no worker serves was cancelled ({}), and is repeated later. It takes long while a snapshot"
                        + " is held, as it reads past what finished jobs left behind",
                String.valueOf(e.getMessage()).lines().findFirst().orElse(""));
    }

    private void look() throws SQLException {
        UnservedStore.Look look = store.waiting(own, longEnough);
        List<UnservedStore.Waiting> waiting = List.of();
        Set<String> names = new TreeSet<>(own);
        boolean silent = false;
        if (!look.tasks().isEmpty()) {
            UnservedStore.Served served = store.served();
            names.addAll(served.tasks());
            silent = served.silent();
            Duration least = silent ? longEnough.multipliedBy(PATIENCE_WITH_THE_SILENT) : longEnough;
            waiting = look.tasks().stream()
                    .filter(one ->
                            !served.tasks().contains(one.task()) && one.waited().compareTo(least) >= 0)
                    .toList();
        }
        List<Unserved> unserved = new ArrayList<>();
        for (UnservedStore.Waiting one : waiting.subList(0, Math.min(waiting.size(), MOST_REMEMBERED))) {
            // To compare with all names takes a while.
            String closest = unserved.size() < MOST_TOLD ? ClosestName.of(one.task(), names) : null;
            unserved.add(new Unserved(one.task(), one.jobs(), closest));
        }
        found = List.copyOf(unserved.subList(0, Math.min(unserved.size(), MOST_TOLD)));
        tell(unserved, look.complete(), silent);
    }

    private void tell(List<Unserved> unserved, boolean complete, boolean silent) {
        if (complete) {
            told.retainAll(unserved.stream().map(Unserved::task).collect(Collectors.toSet()));
        }
        List<String> others = new ArrayList<>();
        int named = 0;
        for (Unserved one : unserved) {
            if (told.size() == MOST_REMEMBERED || !told.add(one.task())) {
                continue;
            }
            if (named++ < MOST_TOLD) {
                warn(one, complete, silent);
            } else {
                others.add(one.task());
            }
        }
        if (!others.isEmpty()) {
            log.warn(
                    "So do jobs of {} other tasks, among them {}",
                    others.size(),
                    others.subList(0, Math.min(others.size(), MOST_TOLD)));
        }
    }

    private static void warn(Unserved one, boolean complete, boolean silent) {
        log.warn(
                "{}{} {} for task \"{}\", which no registered worker {}serves{}",
                complete ? "" : "At least ",
                one.jobs(),
                one.jobs() == 1 ? "job waits" : "jobs wait",
                one.task(),
                silent ? "that publishes its tasks " : "",
                one.closest() == null
                        ? "; workers for Node.js do not register"
                        : "; did you mean \"" + one.closest() + "\"?");
    }
}
