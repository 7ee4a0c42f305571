package dev.pgworker.internal.store;

import java.util.Collections;
import java.util.List;

/**
 * What a write of outcomes does with the queues of the jobs.
 *
 * @param aheads how many jobs to claim of the queue of each job, in the order of the jobs; empty for none at all
 * @param goingOn ids of the jobs whose queue stays locked because this worker has more jobs of it
 */
public record Lanes(List<Integer> aheads, List<Long> goingOn) {

    /** For jobs without queues. */
    public static final Lanes NONE = new Lanes(List.of(), List.of());

    /** Returns these lanes without any claims. */
    public Lanes withoutClaims() {
        return new Lanes(Collections.nCopies(aheads.size(), 0), goingOn);
    }

    /** Returns true if any job is to be claimed. */
    public boolean claims() {
        return wanted() > 0;
    }

    int wanted() {
        return aheads.stream().mapToInt(Integer::intValue).sum();
    }
}
