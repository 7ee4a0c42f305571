package dev.pgworker.internal.engine.run;

import java.time.Duration;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

import com.google.errorprone.annotations.CanIgnoreReturnValue;
import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.store.Claim;
import dev.pgworker.job.Job;

/**
 * Outcomes on their way to the {@code JobCompleter}, and the claims whose outcomes it has not written yet. Filled by many
 * threads, emptied by one.
 */
public final class OutcomeInbox {

    private final BlockingQueue<EncodedOutcome> waiting = new LinkedBlockingQueue<>();

    /** How much memory those take together that are not written, before handlers wait: results may be large. */
    private static final long ROOM = Math.max(1 << 20, Runtime.getRuntime().maxMemory() / 16);

    /** The same for those that are written together, of which the driver makes several copies. */
    public static final long ROOM_TOGETHER = ROOM / 4;

    /** How long a handler waits at most: nothing is written during an outage. */
    private static final Duration LONGEST_WAIT = Duration.ofSeconds(5);

    /** The claims whose outcomes are not written, and the size of each. */
    private final Map<Claim, Integer> unwritten = new ConcurrentHashMap<>();

    private final AtomicLong size = new AtomicLong();
    private final Object room = new Object();

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
        Integer before = unwritten.put(outcome.claim(), outcome.size());
        size.addAndGet(outcome.size() - (before == null ? 0L : before));
        waiting.add(outcome);
    }

    /**
     * Waits for a while, so that no more results are made than can be written. Called by those who run handlers.
     *
     * @return whether there is room now
     */
    @CanIgnoreReturnValue
    boolean awaitRoom() throws InterruptedException {
        if (size.get() <= ROOM) {
            return true;
        }
        long deadline = System.nanoTime() + LONGEST_WAIT.toNanos();
        synchronized (room) {
            while (size.get() > ROOM) {
                long left = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
                if (left <= 0) {
                    return false;
                }
                room.wait(left);
            }
            return true;
        }
    }

    /** Returns true if the outcome of this claim is to be written. */
    boolean isPending(Claim claim) {
        return unwritten.containsKey(claim);
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

    /** Takes the next outcome out; null if there is none. */
    public @Nullable EncodedOutcome poll() {
        return waiting.poll();
    }

    /** Forgets an outcome that is written, or that is no longer to be written. */
    public void forget(Claim claim) {
        Integer forgotten = unwritten.remove(claim);
        if (forgotten != null && forgotten > 0) {
            size.addAndGet(-forgotten);
            synchronized (room) {
                room.notifyAll();
            }
        }
    }
}
