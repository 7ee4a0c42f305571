package dev.pgworker.internal.engine.run;

import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Predicate;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.engine.queue.LocalQueue;
import dev.pgworker.internal.engine.queue.RunnerSlots.Runner;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.ErrorText;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.store.Claim;
import dev.pgworker.internal.store.Claimed;
import dev.pgworker.internal.store.Claimed.Unreadable;
import dev.pgworker.internal.store.ClaimedJob;
import dev.pgworker.job.Job;

/**
 * Has claimed jobs run: takes them into the local queue, starts runners for them, lets each runner take one job after the other
 * through the {@link JobPipeline}, and passes the outcomes on. Thread-safe.
 */
public final class JobExecutor {

    private static final Logger log = WorkerLog.of(JobExecutor.class);

    /** How long the handler executor may take to begin a task before the task is taken for lost. */
    private static final Duration LONGEST_HAND_OVER = Duration.ofSeconds(10);

    private final WorkerContext context;
    private final LocalQueue localQueue;
    private final HandlerCalls calls;
    private final HandlerThreads threads;
    private final RunningAttempts attempts;
    private final Ownership ownership;
    private final OutcomeInbox inbox;

    /** The claims whose payloads are being read. */
    private final Set<Claim> reading = ConcurrentHashMap.newKeySet();

    private final AttemptSupervisor supervisor;
    private final JobPipeline pipeline;

    /** Creates an executor for one worker. */
    public JobExecutor(
            WorkerContext context,
            LocalQueue localQueue,
            HandlerCalls calls,
            HandlerThreads threads,
            RunningAttempts attempts,
            Ownership ownership,
            OutcomeInbox inbox) {
        this.context = context;
        this.localQueue = localQueue;
        this.calls = calls;
        this.threads = threads;
        this.attempts = attempts;
        this.ownership = ownership;
        this.inbox = inbox;
        supervisor = new AttemptSupervisor(context, calls.cancelling(), attempts, this::abandon);
        pipeline = new JobPipeline(context, calls, supervisor, inbox);
    }

    // Claimed jobs come in

    /** Takes claimed jobs over; returns before they run. Gives them back if the worker is stopping. */
    public void submit(Claimed claimed) {
        if (!claimed.unreadable().isEmpty()) {
            localQueue.addEnded(
                    claimed.unreadable().stream().map(Unreadable::job).toList());
            claimed.unreadable().forEach(one -> failUnreadable(one.job().job(), one.error()));
        }
        if (localQueue.add(claimed.jobs())) {
            startRunners();
        } else {
            giveBack(claimed.readable());
        }
    }

    private void failUnreadable(Job job, Throwable error) {
        inbox.submit(job, JobOutcome.Failure.of(new UnreadableJobException(error)));
    }

    /** The row of a job could not be read. */
    private static final class UnreadableJobException extends RuntimeException {

        private static final long serialVersionUID = 1L;

        UnreadableJobException(Throwable cause) {
            super("The job could not be read: " + ErrorText.headline(cause), ErrorText.loggable(cause));
        }
    }

    /** Starts the runners that the handler executor refused, or has not begun, before. */
    public void startMissingRunners() {
        int unbegun = localQueue.runnersLost(LONGEST_HAND_OVER);
        if (unbegun > 0) {
            threads.tell(
                    "The handler executor has not started " + unbegun + " tasks within " + LONGEST_HAND_OVER.toSeconds()
                            + " s; it has lost them, or has too few threads",
                    null);
        }
        startRunners();
    }

    private void startRunners() {
        for (int i = localQueue.missingRunners(); i > 0; i--) {
            threads.start(this::runJobs);
        }
    }

    // Jobs run

    private void runJobs() {
        Runner runner = localQueue.begin();
        if (runner == null) {
            return;
        }
        try {
            Job job = localQueue.next(runner, 0);
            while (job != null) {
                long start = System.nanoTime();
                if (!ownership.mayStart()) {
                    giveBack(job);
                } else if (!runJob(runner, job)) {
                    return; // another thread has signed this runner off
                }
                job = localQueue.next(runner, System.nanoTime() - start);
            }
        } catch (Throwable e) {
            // A job at hand is found by the reconciler.
            threads.tell("A job runner failed; others continue", e);
        } finally {
            localQueue.signOff(runner);
        }
    }

    /** Returns false if the attempt was abandoned. */
    private boolean runJob(Runner runner, Job claimed) throws InterruptedException {
        Job job = withPayload(claimed);
        if (job == null) {
            return true;
        }
        Attempt attempt = attempt(job, ownership::holds, calls.options(job).direct(), runner);
        EncodedOutcome outcome = pipeline.run(attempt);
        if (outcome != null) {
            end(attempt, outcome);
            inbox.awaitRoom();
        }
        return outcome != null;
    }

    private Attempt attempt(Job job, Predicate<Job> owned, boolean direct, @Nullable Runner runner) {
        return new Attempt(job, context.workerId(), calls.services(), owned, direct, runner);
    }

    /** Returns null if the payload cannot be read now, and decides what becomes of the job. */
    private @Nullable Job withPayload(Job job) {
        if (!ClaimedJob.lacksPayload(job)) {
            return job;
        }
        Claim claim = Claim.of(job);
        reading.add(claim);
        try {
            Job read = calls.payloads().read(job);
            if (!ClaimedJob.lacksPayload(read)) {
                return read;
            }
            inbox.submit(job, JobOutcome.Lost.INSTANCE);
        } catch (SQLException | RuntimeException | Error e) {
            if (DatabaseFailure.of(e) == DatabaseFailure.REFUSED || DatabaseFailure.of(e) == DatabaseFailure.INTERNAL) {
                failUnreadable(job, e);
            } else {
                threads.tell("The payload of a job cannot be read now; the job is released", e);
                giveBack(job);
            }
        } finally {
            reading.remove(claim);
        }
        return null;
    }

    /**
     * Passes an outcome on. Until then the attempt counts as running; the reconciler finds a claim that no thread has
     * any more.
     */
    private void end(Attempt attempt, EncodedOutcome outcome) {
        try {
            pipeline.report(attempt, outcome.outcome());
            inbox.submit(outcome);
        } finally {
            attempts.remove(attempt);
        }
    }

    /**
     * Runs a job of a direct batch on the calling thread. A handler that ignores its interruption is waited for, but its job is
     * not once {@link #takeOver} took it over.
     *
     * @param owned whether the job is still this worker's
     * @param end gets the outcome, if that is still the handler's to decide
     */
    public void runDirect(Job job, BooleanSupplier owned, Consumer<EncodedOutcome> end) {
        Attempt attempt = attempt(job, any -> owned.getAsBoolean(), true, null);
        try {
            EncodedOutcome outcome = pipeline.run(attempt);
            if (outcome != null) {
                pipeline.report(attempt, outcome.outcome());
                end.accept(outcome);
            }
        } finally {
            attempts.remove(attempt);
        }
    }

    /**
     * Takes jobs of a direct batch over that have been claimed when it ended.
     *
     * @param ended whose outcomes are to be written
     * @param running whose handler still runs; null if there is none
     */
    public void takeOver(List<EncodedOutcome> ended, @Nullable Job running) {
        List<ClaimedJob> held = new ArrayList<>();
        ended.forEach(outcome -> held.add(new ClaimedJob(outcome.job(), 0, null, false)));
        if (running != null) {
            held.add(new ClaimedJob(running, 0, null, false));
            Attempt attempt = attempts.of(Claim.of(running));
            if (attempt != null) {
                attempt.setClaimed();
            }
        }
        localQueue.addEnded(held);
        ended.forEach(inbox::submit);
    }

    /** Has the outcome of a job of a direct batch written that {@link #takeOver} took over. */
    public void ended(EncodedOutcome outcome) {
        inbox.submit(outcome);
    }

    /** Counts jobs of a direct batch as settled. */
    public void settledElsewhere(int jobs) {
        localQueue.inFlight().settledElsewhere(jobs);
    }

    /** Decides the outcome of an attempt whose handler does not react, and lets another runner take its place. */
    private void abandon(Attempt attempt, JobOutcome outcome) {
        Runner stuck = attempt.runner();
        if (!attempt.isClaimed()) {
            log.warn(
                    "{} does not respond to its interruption, so the direct batch that contains it continues, too",
                    attempt);
        } else if (attempt.end()) {
            log.warn(
                    "{} does not respond to its interruption; the worker continues without it while its handler is still running",
                    attempt);
            try {
                end(attempt, inbox.encode(attempt.claimed(), judged(attempt.claimed(), outcome), null));
            } finally {
                if (stuck != null) {
                    localQueue.abandon(stuck, attempt.nanos());
                    startRunners();
                }
            }
        }
    }

    /** What an abandoned handler would have thrown is retried as if it had: no more, and no sooner. */
    private JobOutcome judged(Job job, JobOutcome outcome) {
        return outcome instanceof JobOutcome.Failure failure
                ? JobPipeline.judge(job, calls.options(job), failure.error())
                : outcome;
    }

    // Jobs are given back

    /** Gives the jobs back that have waited too long for a handler, or are held back. */
    public void giveBackExpired() {
        List<Job> expired = localQueue.takeExpired();
        if (!expired.isEmpty()) {
            log.info(
                    "{} jobs are released that have not started: they have waited too long for a handler of this worker, or are paused",
                    expired.size());
            giveBack(expired);
        }
    }

    private void giveBack(List<Job> jobs) {
        jobs.forEach(this::giveBack);
    }

    /** Gives a job back that has not started. */
    public void giveBack(Job job) {
        inbox.submit(job, new JobOutcome.Returned(false, null));
    }

    /**
     * Ends jobs that have been cancelled: those that wait for a handler do not start, and handlers that run are
     * notified, interrupted and in the end abandoned. Takes the place of what was given before.
     *
     * @param held the jobs that are cancelled, each with the time that its lock has, which may have been renewed
     * @return false if one of them is not here yet, or about to begin: to be called again
     */
    public boolean cancel(Set<Claim> held) {
        Set<Claim> claims = new HashSet<>();
        boolean all = true;
        for (Claim one : held) {
            Claim claim = localQueue.inFlight().claimOf(one.jobId(), one.lockedAt());
            all &= claim != null && hasBegun(claim);
            claims.add(claim == null ? one : claim);
        }
        supervisor.cancel(claims);
        for (Job job : localQueue.remove(claims)) {
            inbox.submit(job, new JobOutcome.Cancelled(null));
        }
        startRunners();
        return all;
    }

    /** Returns true if the payload of this claim is read, its handler runs, or its outcome is to be written. */
    public boolean isAttendedTo(Claim claim) {
        return hasBegun(claim) || reading.contains(claim);
    }

    private boolean hasBegun(Claim claim) {
        return attempts.of(claim) != null || inbox.isPending(claim);
    }

    // The worker stops

    /** Lets no further job start and gives those back that have not started. */
    public void close() {
        List<Job> waiting = localQueue.close();
        if (!waiting.isEmpty()) {
            log.info("{} jobs are released that have not started: the worker stops", waiting.size());
            giveBack(waiting);
        }
    }

    /**
     * Waits for the running handlers, interrupts those that take longer, and gives back the jobs of those that do not
     * react to it. Call after {@link #close}.
     *
     * @param grace how long handlers may continue undisturbed
     * @param afterInterrupt how long interrupted handlers may take to end
     */
    public void finish(Duration grace, Duration afterInterrupt) throws InterruptedException {
        if (localQueue.awaitNoRunners(grace)) {
            return;
        }
        log.info(
                "Interrupting {} running jobs after the grace period of {}",
                attempts.all().size(),
                grace);
        interruptAll();
        if (localQueue.awaitNoRunners(afterInterrupt)) {
            return;
        }
        abandonRunning();
    }

    /** Gives the jobs back whose handlers do not react to their interruption. */
    public void abandonRunning() {
        attempts.all().forEach(attempt -> abandon(attempt, new JobOutcome.Returned(true, null)));
    }

    /** Interrupts all running handlers, and those that are just beginning, because the worker may not continue with them. */
    public void interruptAll() {
        supervisor.interruptAll();
    }

    /** Returns true if {@code worker-timeout} has been at one thing for longer than that; never waits. */
    public boolean isTimerStuck(Duration longerThan) {
        return supervisor.isStuck(longerThan);
    }

    /** Ends the threads that watch timeouts, hand runners over and run handlers, the last when their handlers have ended. */
    public void shutDown() {
        supervisor.shutDown();
        threads.shutDown();
    }
}
