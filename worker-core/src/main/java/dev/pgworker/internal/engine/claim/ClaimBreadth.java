package dev.pgworker.internal.engine.claim;

import java.util.HashSet;
import java.util.List;
import java.util.Set;

import dev.pgworker.job.Job;

/**
 * In how many queues the next claim looks for jobs. Where handlers are fast, a claim expects to be filled by runs of jobs of
 * a few queues, and looks in many only when that fails; after a claim that brought few jobs of each queue the next ones
 * look in many at once.
 *
 * <p>Each chain of claims owns one.
 */
final class ClaimBreadth {

    private static final int SHORT_RUN = 4;
    private static final int CLAIMS = 16;

    private int wideClaims;

    /** Returns true if the next claim is to look in many queues at once. */
    boolean isWide() {
        return wideClaims > 0;
    }

    /**
     * Takes note of a claim that looked as {@link #isWide} said.
     *
     * @param jobs what it returned
     * @param wanted how many it asked for
     */
    void claimed(List<Job> jobs, int wanted) {
        if (wideClaims > 0) {
            wideClaims--;
            return;
        }
        int queued = 0;
        Set<String> queues = new HashSet<>();
        for (Job job : jobs) {
            if (job.queueName() != null) {
                queued++;
                queues.add(job.queueName());
            }
        }
        if (jobs.size() == wanted && queued > 0 && queued < SHORT_RUN * queues.size()) {
            wideClaims = CLAIMS;
        }
    }
}
