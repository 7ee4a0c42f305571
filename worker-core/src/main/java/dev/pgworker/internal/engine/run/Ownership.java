package dev.pgworker.internal.engine.run;

import java.sql.SQLException;
import java.util.function.BooleanSupplier;

import org.slf4j.Logger;

import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.lifecycle.Lease;
import dev.pgworker.internal.store.Claim;
import dev.pgworker.internal.store.HoldingStore;
import dev.pgworker.internal.store.RenewedLocks;
import dev.pgworker.job.Job;

/** Whether a worker may still work on what it has claimed. Thread-safe. */
public final class Ownership {

    private static final Logger log = WorkerLog.of(Ownership.class);

    private final Lease lease;
    private final HoldingStore store;
    private final RenewedLocks locks;
    private final BooleanSupplier ready;

    /**
     * Creates the ownership of one worker.
     *
     * @param ready whether whatever has to be known before the first job starts is known
     */
    public Ownership(Lease lease, HoldingStore store, RenewedLocks locks, BooleanSupplier ready) {
        this.ready = ready;
        this.lease = lease;
        this.store = store;
        this.locks = locks;
    }

    /** Returns true if jobs may be claimed: the worker is registered and cannot have been declared dead. */
    public boolean mayClaim() {
        return lease.isHeld() && ready.getAsBoolean();
    }

    /** Returns false once others may have declared the worker dead: no claimed job may start then. */
    public boolean mayStart() {
        return !lease.isLost();
    }

    /** Asks the database whether the job is still held by the claim that returned it; no answer is a no. */
    public boolean holds(Job job) {
        try {
            return mayStart() && isHeld(job);
        } catch (SQLException e) {
            log.warn("Cannot determine whether this worker still holds {}", job, e);
            return false;
        }
    }

    /** As {@link #holds}, but whatever this worker may do, and without an answer where there is none. */
    boolean isHeld(Job job) throws SQLException {
        return store.isHeld(Claim.of(job), locks);
    }
}
