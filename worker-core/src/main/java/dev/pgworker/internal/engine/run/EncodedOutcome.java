package dev.pgworker.internal.engine.run;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.store.Claim;
import dev.pgworker.internal.store.Release;
import dev.pgworker.internal.store.RunRecord;
import dev.pgworker.job.Job;

/**
 * A claim that has ended, with all that is to be written about it. Made by {@link OutcomeEncoder} on the thread on which it
 * ended, so that nothing of the handler's is asked for anything later.
 *
 * @param release what to write if the job did not succeed; null otherwise
 * @param error what to log if it failed, which can be logged safely; null otherwise
 * @param trace the trace that a run that failed belongs to; null if none is known
 * @param run what the history gets; null for nothing
 */
public record EncodedOutcome(
        Job job,
        JobOutcome outcome,
        @Nullable Release release,
        @Nullable Throwable error,
        @Nullable JobTrace trace,
        @Nullable RunRecord run) {

    /** Returns this with another text of what is to be written. */
    public EncodedOutcome withRelease(Release release) {
        return new EncodedOutcome(job, outcome, release, error, trace, run);
    }

    /** Returns this as a run that belongs to the given trace. */
    public EncodedOutcome withTrace(@Nullable JobTrace trace) {
        return new EncodedOutcome(job, outcome, release, error, trace, run);
    }

    /** Returns this with what the history gets of the run. */
    public EncodedOutcome withRun(@Nullable RunRecord run) {
        return run == null ? this : new EncodedOutcome(job, outcome, release, error, trace, run);
    }

    /** Returns this without anything for the history. */
    public EncodedOutcome withoutRun() {
        return new EncodedOutcome(job, outcome, release, error, trace, null);
    }

    /** Returns how much memory its longest texts take, about. */
    public int size() {
        String result = run == null ? null : run.result();
        String payload = release == null ? null : release.payload();
        return (result == null ? 0 : result.length()) + (payload == null ? 0 : payload.length());
    }

    public Claim claim() {
        return Claim.of(job);
    }
}
