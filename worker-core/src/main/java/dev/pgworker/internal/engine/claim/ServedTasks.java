package dev.pgworker.internal.engine.claim;

import java.sql.SQLException;
import java.util.Set;

import dev.pgworker.internal.store.ClaimStore;
import dev.pgworker.internal.store.TaskIds;

/** The tasks of one worker with their ids in the database. Learned by one thread, read by any. */
public final class ServedTasks {

    private final ClaimStore store;
    private final Set<String> identifiers;
    private final DirectTasks direct;

    private volatile TaskIds all = TaskIds.NONE;
    private volatile TaskIds ordinary = TaskIds.NONE;

    /**
     * Creates tasks whose ids are not known.
     *
     * @param identifiers all of the worker
     * @param direct those whose jobs run in direct batches
     */
    public ServedTasks(ClaimStore store, Set<String> identifiers, DirectTasks direct) {
        this.store = store;
        this.identifiers = identifiers;
        this.direct = direct;
    }

    /**
     * Looks the ids up: a clean-up may have deleted a task, and the next add gives it a new id.
     *
     * @return whether claims are to look for other tasks than before
     */
    public boolean learn() throws SQLException {
        TaskIds learned = store.tasks(identifiers);
        TaskIds before = ordinary;
        all = learned;
        ordinary = direct.ordinary(learned);
        return !ordinary.equals(before);
    }

    /** Returns those whose jobs run in direct batches. */
    public DirectTasks direct() {
        return direct;
    }

    Set<String> identifiers() {
        return identifiers;
    }

    /** Returns all tasks. */
    TaskIds all() {
        return all;
    }

    /** Returns what ordinary claims look for. */
    public TaskIds ordinary() {
        return ordinary;
    }
}
