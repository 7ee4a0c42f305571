package dev.pgworker.internal.engine;

import java.time.Duration;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import dev.pgworker.internal.engine.LocalQueue.Runner;
import dev.pgworker.internal.failure.ErrorText;
import dev.pgworker.internal.lifecycle.Activity;
import dev.pgworker.internal.store.Claim;
import dev.pgworker.internal.store.Claimed;
import dev.pgworker.internal.store.Unreadable;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.task.JobTimeoutException;

/**
 * Runs claimed jobs on the handler executor and passes their outcomes on.
 *
 * <p>Owned state: the set of running attempts. Jobs enter from {@code worker-fetch} and {@code worker-complete}.
 */
public final class JobExecutor {

    private static final Logger log = LoggerFactory.getLogger(JobExecutor.class);

    /** How long a handler may take to end after its timeout interrupted it. */
    private static final Duration AFTER_TIMEOUT = Duration.ofSeconds(5);

    /** A timeout beyond this never comes. */
    private static final Duration LONGEST_TIMEOUT = Duration.ofDays(36_500);

    /** How long the handler executor may take to begin a task before the task is taken for lost. */
    private static final Duration LONGEST_HAND_OVER = Duration.ofSeconds(10);

    private static final Duration TELL_PAUSE = Duration.ofSeconds(10);

    private final String workerId;
    private final LocalQueue localQueue;
    private final JobRunner runner;
    private final JobScheduler jobScheduler;
    private final Executor executor;

    /** Runs what hands tasks to the executor: at once, or on {@code worker-hand-over} where that may take long. */
    private final Executor handOvers;

    private final Ownership ownership;
    private final OutcomeEncoder encoder;
    private final JobCompleter completer;

    /** Its thread starts with the first handler that has a timeout. */
    private final ScheduledThreadPoolExecutor timer;

    private final Activity timing = new Activity();

    private final Map<Claim, Attempt> running = new ConcurrentHashMap<>();

    private final AtomicLong tellAgainAt = new AtomicLong(System.nanoTime());

    /** Set before the running attempts are interrupted, so that one that is just beginning is, too. */
    private volatile boolean interrupting;

    /**
     * Creates an executor whose handlers run on the given one.
     *
     * @param mayBlock whether {@code execute} of the given one may take long
     * @param interruptedRetryDelay when a job runs again that was interrupted by a stop
     */
    public JobExecutor(
            String workerId,
            LocalQueue localQueue,
            JobRunner runner,
            JobScheduler jobScheduler,
            Executor executor,
            boolean mayBlock,
            Ownership ownership,
            Duration interruptedRetryDelay,
            JobCompleter completer) {
        this.workerId = workerId;
        this.localQueue = localQueue;
        this.runner = runner;
        this.jobScheduler = jobScheduler;
        this.executor = executor;
        handOvers = mayBlock ? handOverThread() : Runnable::run;
        this.ownership = ownership;
        encoder = new OutcomeEncoder(interruptedRetryDelay);
        this.completer = completer;
        timer = new ScheduledThreadPoolExecutor(1, task -> {
            Thread thread = new Thread(task, "worker-timeout");
            thread.setDaemon(true);
            return thread;
        });
        timer.setRemoveOnCancelPolicy(true);
    }

    /** Its thread is there while tasks are handed over. */
    private static ExecutorService handOverThread() {
        ThreadPoolExecutor service =
                new ThreadPoolExecutor(1, 1, 10, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), task -> {
                    Thread thread = new Thread(task, "worker-hand-over");
                    thread.setDaemon(true);
                    return thread;
                });
        service.allowCoreThreadTimeOut(true);
        return service;
    }

    /**
     * Lets the audit know which claims are attended to, and give back those that are not.
     *
     * @param stallCheck asked when no job has started for a while although a handler is free
     */
    public void audited(Reconciler audit, Reconciler.StallCheck stallCheck) {
        audit.connect(claim -> isRunning(claim) || completer.isPending(claim), this::giveBack, stallCheck);
    }

    /** Takes claimed jobs over; returns before they run. Gives them back if the worker is stopping. */
    public void submit(Claimed claimed) {
        if (!claimed.unreadable().isEmpty()) {
            localQueue.addEnded(
                    claimed.unreadable().stream().map(Unreadable::job).toList());
            claimed.unreadable().forEach(one -> failUnreadable(one.job(), one.error()));
        }
        List<Runner> runners = localQueue.add(claimed.jobs());
        if (runners == null) {
            giveBack(claimed.jobs());
            return;
        }
        runners.forEach(this::start);
    }

    private void failUnreadable(Job job, Throwable error) {
        completer.submit(encoder.encode(job, JobOutcome.Failure.of(new UnreadableJobException(error))));
    }

    /** The row of a job could not be read. */
    private static final class UnreadableJobException extends RuntimeException {

        private static final long serialVersionUID = 1L;

        UnreadableJobException(Throwable cause) {
            super("The job could not be read: " + ErrorText.headline(cause), ErrorText.loggable(cause));
        }
    }

    /** Starts the runners that the handler executor refused, or has not begun, before. */
    void startMissingRunners() {
        int unbegun = localQueue.signOffUnbegun(LONGEST_HAND_OVER);
        if (unbegun > 0) {
            tell(
                    "The handler executor has not begun " + unbegun + " tasks within " + LONGEST_HAND_OVER.toSeconds()
                            + " s; it has lost them, or has too few threads",
                    null);
        }
        localQueue.missingRunners().forEach(this::start);
    }

    private void start(Runner runner) {
        try {
            handOvers.execute(() -> handOver(runner));
        } catch (Throwable e) {
            localQueue.signOffRefused(runner);
            tell("A task could not be handed to the handler executor", e);
        }
    }

    /** Hands a runner over. Where that fails its jobs stay queued: the next poll tries again, or they are given back. */
    private void handOver(Runner runner) {
        if (!localQueue.isSignedOn(runner)) {
            return; // the executor has been busy with others for so long
        }
        HandOver handOver = new HandOver(runner);
        try {
            executor.execute(handOver);
        } catch (RejectedExecutionException e) {
            localQueue.signOffRefused(runner);
            tell("The handler executor refuses work", e);
        } catch (Throwable e) {
            localQueue.signOffRefused(runner);
            tell("The handler executor failed", e);
        } finally {
            handOver.isHandedOver = true;
        }
    }

    /** What the handler executor runs. It must not do so on the thread that hands it over, which has other work to do. */
    private final class HandOver implements Runnable {

        private final Runner runner;
        private final Thread handsOver = Thread.currentThread();
        private volatile boolean isHandedOver;

        HandOver(Runner runner) {
            this.runner = runner;
        }

        @Override
        public void run() {
            if (!isHandedOver && Thread.currentThread() == handsOver) {
                tell(
                        "The handler executor runs tasks on the thread of the caller; threads of their own run them",
                        null);
                Thread thread = new Thread(() -> runJobs(runner), "worker-job");
                thread.setDaemon(true);
                thread.start();
            } else {
                runJobs(runner);
            }
        }
    }

    /** Logs what is wrong with the handler executor, but not so often that it does harm. */
    private void tell(String what, @Nullable Throwable error) {
        long time = System.nanoTime();
        long again = tellAgainAt.get();
        if (time - again >= 0 && tellAgainAt.compareAndSet(again, time + TELL_PAUSE.toNanos())) {
            log.error(what, error == null ? null : ErrorText.loggable(error));
        }
    }

    private void runJobs(Runner runner) {
        if (!localQueue.begin(runner)) {
            return;
        }
        try {
            Job job = localQueue.next(runner, 0);
            while (job != null) {
                long start = System.nanoTime();
                if (!ownership.mayStart()) {
                    giveBack(job);
                } else if (!runJob(runner, job)) {
                    return; // somebody else has signed this runner off
                }
                job = localQueue.next(runner, System.nanoTime() - start);
            }
        } catch (Throwable e) {
            // A job at hand is found by the audit.
            tell("A runner of jobs failed; others go on", e);
        } finally {
            localQueue.signOff(runner);
        }
    }

    /** Returns false if the attempt was abandoned. */
    private boolean runJob(Runner runner, Job job) {
        boolean direct = this.runner.options(job).direct();
        Attempt attempt = new Attempt(job, workerId, jobScheduler, ownership::holds, direct, runner);
        EncodedOutcome ended = attempt(attempt);
        boolean mine = ended != null;
        if (ended != null) {
            end(attempt, ended);
        } else {
            tellOfEnd(attempt);
        }
        return mine;
    }

    /**
     * Runs a job of a direct batch on the calling thread. A handler that ignores its interruption is waited for, but its job is
     * not once it is {@link #claimed}.
     *
     * @param owned whether the job is still this worker's
     * @param end gets the outcome, if that is still the handler's to decide
     */
    void runDirect(Job job, BooleanSupplier owned, Consumer<EncodedOutcome> end) {
        Attempt attempt = new Attempt(job, workerId, jobScheduler, any -> owned.getAsBoolean(), true, null);
        try {
            EncodedOutcome ended = attempt(attempt);
            if (ended != null) {
                runner.report(attempt, ended.outcome());
                end.accept(ended);
            } else {
                tellOfEnd(attempt);
            }
        } finally {
            running.remove(attempt.claim());
        }
    }

    /** Says that a job of a direct batch, whose handler runs, has been claimed as others are. */
    void claimed(Job job) {
        Attempt attempt = running.get(Claim.of(job));
        if (attempt != null) {
            attempt.setClaimed();
        }
    }

    private static void tellOfEnd(Attempt attempt) {
        log.info("The handler of {} has ended {} s after it began", attempt, attempt.nanos() / 1_000_000_000);
    }

    /** Runs a handler; returns null if the attempt was abandoned meanwhile. */
    private @Nullable EncodedOutcome attempt(Attempt attempt) {
        JobOutcome outcome;
        Future<?> deadline = null;
        try {
            running.put(attempt.claim(), attempt);
            if (interrupting) {
                interruptToStop(attempt);
            }
            deadline = deadline(attempt);
            outcome = this.runner.run(attempt);
        } catch (Throwable e) {
            // What goes wrong around the handler, memory for instance that cannot be had, is an outcome, too.
            outcome = JobOutcome.Failure.of(e);
        }
        // Within the handler's time: it reads what the handler has thrown.
        EncodedOutcome ended = encoder.encode(attempt.claimed(), outcome);
        boolean mine = attempt.end();
        if (deadline != null) {
            deadline.cancel(false);
        }
        // An interrupt meant for this handler must not reach the next one.
        Thread.interrupted();
        return mine ? ended : null;
    }

    /** Passes an outcome on. Until then the attempt counts as running; a claim that nobody has any more the audit finds. */
    private void end(Attempt attempt, EncodedOutcome ended) {
        try {
            runner.report(attempt, ended.outcome());
            completer.submit(ended);
        } finally {
            running.remove(attempt.claim());
        }
    }

    private @Nullable Future<?> deadline(Attempt attempt) {
        Duration timeout = runner.options(attempt.claimed()).timeout();
        if (timeout == null) {
            return null;
        }
        long nanos = timeout.compareTo(LONGEST_TIMEOUT) < 0 ? timeout.toNanos() : LONGEST_TIMEOUT.toNanos();
        return later(() -> timeOut(attempt, timeout), nanos);
    }

    private Future<?> later(Runnable task, long nanos) {
        return timer.schedule(
                () -> {
                    timing.begin();
                    try {
                        task.run();
                    } finally {
                        timing.end();
                    }
                },
                nanos,
                TimeUnit.NANOSECONDS);
    }

    /** Returns true if {@code worker-timeout} has been at one thing for longer than that; never waits. */
    public boolean isTimerStuck(Duration longerThan) {
        return timing.isStuck(longerThan);
    }

    private void timeOut(Attempt attempt, Duration timeout) {
        if (attempt.interruptOnTimeout()) {
            runner.reportInterrupt(attempt, true);
        }
        Future<?> unused = later(
                () -> abandon(attempt, JobOutcome.Failure.of(new JobTimeoutException(timeout, null))),
                AFTER_TIMEOUT.toNanos());
    }

    private void interruptToStop(Attempt attempt) {
        if (attempt.interruptToStop()) {
            runner.reportInterrupt(attempt, false);
        }
    }

    /** Decides the outcome of an attempt whose handler does not react, and lets another runner take its place. */
    private void abandon(Attempt attempt, JobOutcome outcome) {
        Runner stuck = attempt.runner();
        if (!attempt.isClaimed()) {
            log.warn("{} ignores its interruption, and with it the direct batch goes on that it is part of", attempt);
        } else if (attempt.end()) {
            log.warn(
                    "{} ignores its interruption; the worker goes on without it while its handler still runs", attempt);
            try {
                end(attempt, encoder.encode(attempt.claimed(), outcome));
            } finally {
                Runner replacement = stuck == null ? null : localQueue.replace(stuck, attempt.nanos());
                if (replacement != null) {
                    start(replacement);
                }
            }
        }
    }

    /** Gives the jobs back that have waited too long for a handler. */
    void giveBackExpired() {
        List<Job> expired = localQueue.takeExpired();
        if (!expired.isEmpty()) {
            log.info("{} jobs have waited too long for a handler of this worker; they are given back", expired.size());
            giveBack(expired);
        }
    }

    /** Lets no further job start and gives those back that have not started. */
    public void close() {
        giveBack(localQueue.close());
    }

    private void giveBack(List<Job> jobs) {
        jobs.forEach(this::giveBack);
    }

    /** Gives a job back that has not started. */
    void giveBack(Job job) {
        completer.submit(encoder.encode(job, new JobOutcome.Returned(false, null)));
    }

    /** Returns true if the handler of this claim runs. */
    boolean isRunning(Claim claim) {
        return running.containsKey(claim);
    }

    /**
     * Waits for the running handlers, interrupts those that take longer, and gives back the jobs of those that do not
     * react to it. Call after {@link #close}.
     *
     * @param grace how long handlers may go on undisturbed
     * @param afterInterrupt how long interrupted handlers may take to end
     */
    public void finish(Duration grace, Duration afterInterrupt) throws InterruptedException {
        if (localQueue.awaitNoRunners(grace)) {
            return;
        }
        log.info("Interrupting {} running jobs after the grace period of {}", running.size(), grace);
        interruptAll();
        if (localQueue.awaitNoRunners(afterInterrupt)) {
            return;
        }
        abandonRunning();
    }

    /** Gives the jobs back whose handlers do not react to their interruption. */
    public void abandonRunning() {
        running.values().forEach(attempt -> abandon(attempt, new JobOutcome.Returned(true, null)));
    }

    /** Interrupts all running handlers, and those that are just beginning, because the worker may not go on with them. */
    public void interruptAll() {
        interrupting = true;
        running.values().forEach(this::interruptToStop);
    }

    /** Returns true if a handler calls this, on the thread that runs it. */
    public boolean isOnHandlerThread() {
        return running.values().stream().anyMatch(Attempt::isOnItsThread);
    }

    /** Returns true if a job runs that has one of the flags. */
    public boolean runsAnyFlagged(Collection<String> flags) {
        return running.values().stream()
                .anyMatch(attempt -> !Collections.disjoint(attempt.job().flags(), flags));
    }

    /** Ends the threads that watch timeouts and hand tasks over. */
    public void shutDown() {
        timer.shutdownNow();
        if (handOvers instanceof ExecutorService service) {
            service.shutdownNow();
        }
    }
}
