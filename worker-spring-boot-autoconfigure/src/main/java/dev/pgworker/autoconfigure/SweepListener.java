package dev.pgworker.autoconfigure;

import dev.pgworker.event.WorkerEvent;

/**
 * Is told what sweeps by hand have done. Not a listener by type: as a bean, it would be told everything that happens in the
 * worker, too.
 */
@FunctionalInterface
interface SweepListener {

    /** Takes in what happened, on the thread that asked for the sweep. */
    void onSweepEvent(WorkerEvent event);
}
