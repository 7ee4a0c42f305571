package dev.pgworker.internal.engine.run;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.store.Claim;
import dev.pgworker.internal.store.Release;
import dev.pgworker.job.Job;

/**
 * A claim that has ended, with all that is to be written about it. Made by {@link OutcomeEncoder} on the thread on which it
 * ended, so that nothing of the handler's is asked for anything later.
 *
 * @param release what to write if the job did not succeed; null otherwise
 * @param error what to log if it failed, which can be logged safely; null otherwise
 */
public record EncodedOutcome(
        Job job,
        JobOutcome outcome,
        @Nullable Release release,
        @Nullable Throwable error) {

    public Claim claim() {
        return Claim.of(job);
    }
}
