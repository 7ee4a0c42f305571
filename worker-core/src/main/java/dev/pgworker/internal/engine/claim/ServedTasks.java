package dev.pgworker.internal.engine.claim;

import java.sql.SQLException;
import java.util.Set;

import dev.pgworker.internal.engine.HeldBack;
import dev.pgworker.internal.store.ClaimStore;
import dev.pgworker.internal.store.TaskIds;
import dev.pgworker.job.Job;

/** The tasks of one worker with their ids in the database. Learned by one thread, read by any. */
public final class ServedTasks {

    private final ClaimStore store;
    private final Set<String> identifiers;
    private final DirectTasks direct;
    private final HeldBack held;

    private volatile TaskIds learned = TaskIds.NONE;
    private volatile TaskIds all = TaskIds.NONE;
    private volatile TaskIds ordinary = TaskIds.NONE;
    private volatile TaskIds batched = TaskIds.NONE;

    /**
     * Creates tasks whose ids are not known.
     *
     * @param identifiers all of the worker
     * @param direct those whose jobs run in direct batches
     * @param held what is left out at present
     */
    public ServedTasks(ClaimStore store, Set<String> identifiers, DirectTasks direct, HeldBack held) {
        this.store = store;
        this.identifiers = identifiers;
        this.direct = direct;
        this.held = held;
    }

    /**
     * Looks the ids up: a clean-up may have deleted a task, and the next add gives it a new id.
     *
     * @return whether claims are to look for other tasks than before
     */
    public boolean learn() throws SQLException {
        learned = store.tasks(identifiers);
        return refresh();
    }

    /**
     * Takes note that others are held back than before, or that direct tasks are run in another way.
     *
     * @return whether claims are to look for other tasks than before
     */
    public synchronized boolean refresh() {
        TaskIds before = ordinary;
        all = held.without(learned);
        batched = all.onlyUnqueued(direct.identifiers());
        ordinary = direct.ordinary(all);
        return !ordinary.equals(before);
    }

    /** Returns whether a job may be started at present. */
    public boolean mayStart(Job job) {
        return !held.holds(job);
    }

    /** Returns those whose jobs run in direct batches. */
    public DirectTasks direct() {
        return direct;
    }

    Set<String> identifiers() {
        return identifiers;
    }

    /** Returns all tasks whose jobs may be started at present. */
    TaskIds all() {
        return all;
    }

    /** Returns what ordinary claims look for. */
    public TaskIds ordinary() {
        return ordinary;
    }

    /** Returns what direct batches look for. */
    public TaskIds batched() {
        return batched;
    }
}
