package dev.pgworker.internal.store;

import java.util.Collections;
import java.util.List;

/**
 * What a write of outcomes does with the queues of the jobs.
 *
 * @param aheads how many jobs to claim of the queue of each job, in the order of the jobs; empty for none at all
 * @param goingOn ids of the jobs whose queue stays locked because this worker has more jobs of it
 */
public record LanePlan(List<Integer> aheads, List<Long> goingOn) {

    /** For jobs without queues. */
    public static final LanePlan NONE = new LanePlan(List.of(), List.of());

    /** Returns this plan without any claims. */
    public LanePlan withoutClaims() {
        return new LanePlan(Collections.nCopies(aheads.size(), 0), goingOn);
    }

    /** Returns true if any job is to be claimed. */
    public boolean claims() {
        return wanted() > 0;
    }

    int wanted() {
        return aheads.stream().mapToInt(Integer::intValue).sum();
    }
}
