package dev.pgworker.internal.engine.run;

import java.time.Instant;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Predicate;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;

import dev.pgworker.flow.PredecessorResults;
import dev.pgworker.internal.engine.queue.RunnerSlots;
import dev.pgworker.internal.store.Claim;
import dev.pgworker.internal.store.EndStore;
import dev.pgworker.internal.store.RunRecord;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.step.JobSteps;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.PayloadException;
import dev.pgworker.task.ScheduledRun;

/**
 * One run of a handler. Ends exactly once, either by the handler or by a worker that waits for it no longer, and never
 * interrupts a thread that has continued to another job.
 */
final class Attempt implements JobContext, AttemptSteps.Owner {

    private final Job job;

    /** The job with the payload that interceptors let the handler see. */
    private volatile Job shown;

    private final String workerId;
    private final HandlerServices services;
    private final Predicate<Job> owned;
    private final RunnerSlots.@Nullable Runner runner;
    private final boolean direct;

    /** Made when the handler asks for them first. */
    private volatile @Nullable AttemptSteps steps;

    private volatile @Nullable PredecessorResults predecessors;

    /** The thread that runs the handler; null once the attempt has ended. */
    @GuardedBy("this") private @Nullable Thread thread = Thread.currentThread();

    private final long begun = System.nanoTime();

    /** Owned by the thread that runs the handler. */
    private @Nullable JobTrace trace;

    /** The latest report of the handler; null before the first. */
    private volatile @Nullable Progress progress;

    /** JSON; may be set by any thread that the handler uses. */
    private volatile @Nullable String result;

    private volatile boolean claimed;
    private volatile boolean stopping;
    private volatile boolean timedOut;

    /** Whether the job has been cancelled; the handler may be interrupted later, for that. */
    private volatile boolean cancelled;

    private volatile boolean interruptedToCancel;

    /**
     * Begins an attempt on the calling thread.
     *
     * @param services what the handler gets from its context
     * @param owned whether the job is still this worker's
     * @param direct whether the job is of a direct task
     * @param runner whose thread this is; null if it is that of a direct batch
     */
    Attempt(
            Job job,
            String workerId,
            HandlerServices services,
            Predicate<Job> owned,
            boolean direct,
            RunnerSlots.@Nullable Runner runner) {
        this.services = services;
        this.owned = owned;
        this.direct = direct;
        this.runner = runner;
        claimed = runner != null;
        this.job = job;
        this.shown = job;
        this.workerId = workerId;
    }

    @Override
    public Job job() {
        return shown;
    }

    /** Returns the job as it was claimed. */
    Job claimed() {
        return job;
    }

    Claim claim() {
        return Claim.of(job);
    }

    /** Returns the runner whose thread runs the handler; null in a direct batch. */
    RunnerSlots.@Nullable Runner runner() {
        return runner;
    }

    /** Returns false while the job is only locked by the transaction of a direct batch. */
    boolean isClaimed() {
        return claimed;
    }

    /** Notes that the job is claimed as others are, although a direct batch has begun it. */
    void setClaimed() {
        claimed = true;
    }

    /** Notes in which trace the calling thread, that of the handler, is. */
    void noteTrace() {
        trace = JobTrace.current();
    }

    /** Returns the trace in which the handler has run; null if it was in none. Called on its thread. */
    @Nullable JobTrace trace() {
        return trace;
    }

    /** Returns what the history gets of the run so far; null if nothing is recorded. Called on its thread. */
    @Nullable RunRecord ran() {
        return services.results().areKept() || isAwaited()
                ? new RunRecord(nanos() / 1_000, result, trace == null ? null : trace.storable())
                : null;
    }

    /** Returns true if the trace of a run that succeeds is used. */
    boolean isRecorded() {
        return services.results().areKept();
    }

    @Override
    public void result(@Nullable Object value) {
        try {
            result = services.results().encode(job.taskIdentifier(), value, isAwaited());
        } catch (RuntimeException | Error e) {
            String told = e instanceof PayloadException ? e.getMessage() : null;
            result =
                    isAwaited() ? RunResults.missing(told == null ? e.getClass().getName() : told) : null;
            throw e;
        }
    }

    /** Returns whether the result was asked for. */
    private boolean isAwaited() {
        return job.flags().contains(EndStore.RESULT_FLAG);
    }

    @Override
    public synchronized JobSteps steps() {
        if (direct) {
            throw new UnsupportedOperationException("Task \"" + job.taskIdentifier()
                    + "\" is direct: its jobs run in one transaction, in which no step can be recorded. Remove direct");
        }
        AttemptSteps made = steps;
        if (made == null) {
            made = new AttemptSteps(services.steps(), job, this);
            steps = made;
        }
        return made;
    }

    @Override
    public synchronized PredecessorResults predecessors() {
        PredecessorResults read = predecessors;
        if (read == null) {
            read = services.predecessors().apply(job);
            predecessors = read;
        }
        return read;
    }

    /** Returns until when the job waits at most for what its handler has asked for; null if the attempt has not been suspended. */
    @Nullable Instant suspendedUntil() {
        AttemptSteps made = steps;
        return made == null ? null : made.suspendedUntil();
    }

    /** Changes the payload that the handler sees. */
    void show(String payload) {
        shown = job.withPayload(payload);
    }

    /** An interceptor may show the handler a payload without it, or have deciphered the one that has it. */
    @Override
    public Optional<ScheduledRun> scheduledRun() {
        return ScheduledRun.of(shown).or(() -> ScheduledRun.of(job));
    }

    @Override
    public String workerId() {
        return workerId;
    }

    @Override
    public JobScheduler jobScheduler() {
        return services.jobScheduler();
    }

    @Override
    public boolean isInterrupted() {
        return stopping || timedOut || interruptedToCancel;
    }

    @Override
    public boolean isCancelled() {
        return cancelled;
    }

    @Override
    public void throwIfCancelled() {
        JobContext.super.throwIfCancelled();
    }

    @Override
    public boolean isOwned() {
        return !isEnded() && owned.test(job);
    }

    /** A direct batch that breaks leaves no change of the job, from which an ordinary run would take the time. */
    @Override
    public String fencingToken() {
        if (!direct) {
            return JobContext.super.fencingToken();
        }
        Instant taken = Objects.requireNonNull(job.lockedAt());
        return job.id() + "-" + attempt() + "-" + (taken.getEpochSecond() * 1_000_000 + taken.getNano() / 1_000);
    }

    @Override
    public void progress(long done, long total, @Nullable String text) {
        progress = Progress.of(done, total, text);
    }

    /** Returns how far the handler has come; null if it has not reported that. */
    @Nullable Progress progress() {
        return progress;
    }

    @Override
    public synchronized boolean isEnded() {
        return thread == null;
    }

    @Override
    public synchronized boolean isOnItsThread() {
        return Thread.currentThread().equals(thread);
    }

    /** Returns how long ago the attempt began. */
    long nanos() {
        return nanosAt(System.nanoTime());
    }

    /** Returns how long the attempt had been running at a time by {@link System#nanoTime}. */
    long nanosAt(long time) {
        return Math.max(0, time - begun);
    }

    /** Returns true if the handler was interrupted because the worker stops. */
    boolean isStopping() {
        return stopping;
    }

    /** Returns true if the handler was interrupted because its time is over. */
    boolean isTimedOut() {
        return timedOut;
    }

    /** Interrupts the handler because the worker stops; returns false if it has ended. */
    synchronized boolean interruptToStop() {
        if (thread == null) {
            return false;
        }
        stopping = true;
        thread.interrupt();
        return true;
    }

    /** Interrupts the handler because its time is over; returns false if it has ended. */
    synchronized boolean interruptOnTimeout() {
        if (thread == null) {
            return false;
        }
        timedOut = true;
        thread.interrupt();
        return true;
    }

    /** Notes that the job has been cancelled; returns false if that is known already, or the handler has ended. */
    synchronized boolean cancel() {
        if (thread == null || cancelled) {
            return false;
        }
        cancelled = true;
        return true;
    }

    /** Interrupts the handler because its job has been cancelled; returns false if it has ended. */
    synchronized boolean interruptToCancel() {
        if (thread == null) {
            return false;
        }
        interruptedToCancel = true;
        thread.interrupt();
        return true;
    }

    /** Returns true for the first caller only, who decides the outcome. No interrupt arrives afterwards. */
    synchronized boolean end() {
        boolean first = thread != null;
        thread = null;
        return first;
    }

    @Override
    public String toString() {
        return job.toString();
    }
}
