package dev.pgworker.internal.engine.direct;

import java.util.function.Function;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.engine.claim.ClaimPermission;
import dev.pgworker.internal.engine.claim.ClaimTracker;
import dev.pgworker.internal.engine.claim.DirectTasks;
import dev.pgworker.internal.engine.claim.DueJobs;
import dev.pgworker.internal.engine.run.JobExecutor;
import dev.pgworker.internal.store.DirectStore;

/** What the chains of direct batches of one worker share. */
record DirectContext(
        WorkerContext worker,
        ClaimPermission permission,
        DirectStore store,
        DueJobs due,
        ClaimTracker tracker,
        JobExecutor executor,
        DirectRest rest) {

    DirectTasks tasks() {
        return permission.tasks().direct();
    }

    /** Publishes an event of this worker, which is created from its id only if there is a listener. */
    void publish(Function<String, WorkerEvent> event) {
        worker.publish(() -> event.apply(worker.workerId()));
    }
}
