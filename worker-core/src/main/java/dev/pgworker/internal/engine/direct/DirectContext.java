package dev.pgworker.internal.engine.direct;

import java.util.function.Supplier;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.engine.claim.ClaimPermission;
import dev.pgworker.internal.engine.claim.ClaimTracker;
import dev.pgworker.internal.engine.claim.DirectTasks;
import dev.pgworker.internal.engine.run.JobExecutor;
import dev.pgworker.internal.store.JobStore;

/**
 * What the chains of direct batches of one worker share.
 *
 * @param rest the jobs of direct tasks that no batch runs
 * @param others what one chain says to the others
 */
record DirectContext(
        WorkerContext worker,
        ClaimPermission permission,
        JobStore store,
        ClaimTracker tracker,
        JobExecutor executor,
        DirectRest rest,
        Others others) {

    /** What one chain says to the others, on its thread. */
    interface Others {

        /** Returns how many chains there are. */
        int count();

        /** Returns whether the first chain has nothing to do. */
        boolean isFirstIdle();

        /** Has another chain look for jobs, if one has nothing to do. */
        void helpWanted();

        /** Says that handlers run: one that takes long is not to keep its batch. */
        void watch();
    }

    DirectTasks tasks() {
        return permission.tasks().direct();
    }

    String workerId() {
        return worker.workerId();
    }

    /** Publishes an event, which is made only if somebody listens. */
    void publish(Supplier<WorkerEvent> event) {
        worker.publish(event);
    }
}
