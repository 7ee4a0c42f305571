package dev.pgworker.internal.engine.run;

import java.time.Duration;
import java.util.Collection;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.store.Claim;
import dev.pgworker.job.Job;

/**
 * Outcomes on their way to the {@code JobCompleter}, and the claims whose outcomes it has not written yet. Filled by many
 * threads, emptied by one.
 */
public final class OutcomeInbox {

    private final BlockingQueue<EncodedOutcome> waiting = new LinkedBlockingQueue<>();

    private final Set<Claim> unwritten = ConcurrentHashMap.newKeySet();

    private final OutcomeEncoder encoder;

    /**
     * Creates an empty inbox.
     *
     * @param interruptedRetryDelay when a job runs again that was interrupted by a stop
     */
    public OutcomeInbox(Duration interruptedRetryDelay) {
        encoder = new OutcomeEncoder(interruptedRetryDelay);
    }

    /**
     * Encodes an outcome on the calling thread, that of the handler if one has run. Never throws.
     *
     * @param trace the trace in which a handler ran; null for the one that the payload carries
     */
    EncodedOutcome encode(Job job, JobOutcome outcome, @Nullable JobTrace trace) {
        return encoder.encode(job, outcome, trace);
    }

    /** Takes the outcome of a job that no handler has decided. May be called from any thread. */
    void submit(Job job, JobOutcome outcome) {
        submit(encode(job, outcome, null));
    }

    /** Takes an outcome; returns before it is written. May be called from any thread. */
    void submit(EncodedOutcome outcome) {
        unwritten.add(outcome.claim());
        waiting.add(outcome);
    }

    /** Returns true if the outcome of this claim is to be written. */
    boolean isPending(Claim claim) {
        return unwritten.contains(claim);
    }

    public boolean isEmpty() {
        return waiting.isEmpty();
    }

    /** Takes the next outcome out, and waits for one if there is none. */
    public EncodedOutcome take() throws InterruptedException {
        return waiting.take();
    }

    /** Takes the next outcome out; null if there is none within the limit. */
    public @Nullable EncodedOutcome poll(Duration limit) throws InterruptedException {
        return waiting.poll(limit.toMillis(), TimeUnit.MILLISECONDS);
    }

    /** Moves so many outcomes at most. */
    public void drainTo(Collection<EncodedOutcome> target, int most) {
        waiting.drainTo(target, most);
    }

    /** Forgets an outcome that is written, or that nobody writes any more. */
    public void forget(Claim claim) {
        unwritten.remove(claim);
    }
}
