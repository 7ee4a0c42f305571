package dev.pgworker.engine;

import java.time.Duration;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

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

    private final String workerId;
    private final LocalQueue localQueue;
    private final JobRunner runner;
    private final JobScheduler jobScheduler;
    private final Executor executor;
    private final Ownership ownership;
    private final JobCompleter completer;

    /** Its thread starts with the first handler that has a timeout. */
    private final ScheduledThreadPoolExecutor timer;

    private final Set<Attempt> running = ConcurrentHashMap.newKeySet();

    /** Set before the running attempts are interrupted, so that one that is just beginning is, too. */
    private volatile boolean interrupting;

    /** Creates an executor whose handlers run on the given one. */
    public JobExecutor(
            String workerId,
            LocalQueue localQueue,
            JobRunner runner,
            JobScheduler jobScheduler,
            Executor executor,
            Ownership ownership,
            JobCompleter completer) {
        this.workerId = workerId;
        this.localQueue = localQueue;
        this.runner = runner;
        this.jobScheduler = jobScheduler;
        this.executor = executor;
        this.ownership = ownership;
        this.completer = completer;
        timer = new ScheduledThreadPoolExecutor(1, task -> {
            Thread thread = new Thread(task, "worker-timeout");
            thread.setDaemon(true);
            return thread;
        });
        timer.setRemoveOnCancelPolicy(true);
    }

    /** Takes claimed jobs over; returns before they run. Gives them back if the worker is stopping. */
    public void submit(List<Job> jobs) {
        int runners = localQueue.add(jobs);
        if (runners < 0) {
            giveBack(jobs);
            return;
        }
        startRunners(runners);
    }

    /** Starts the runners that the handler executor refused before. */
    void startMissingRunners() {
        startRunners(localQueue.missingRunners());
    }

    private void startRunners(int runners) {
        for (int i = 0; i < runners; i++) {
            startRunner();
        }
    }

    private void startRunner() {
        try {
            executor.execute(this::runJobs);
        } catch (RejectedExecutionException e) {
            // The jobs stay queued: the next poll tries again, and a stop gives them back.
            localQueue.signOff();
            log.error("The handler executor refuses work", e);
        }
    }

    private void runJobs() {
        Job job = localQueue.next(null, 0);
        while (job != null) {
            long start = System.nanoTime();
            if (!ownership.mayStart()) {
                completer.submit(job, new JobOutcome.Returned(false, null));
            } else if (!runJob(job)) {
                return; // somebody else has signed this runner off
            }
            job = localQueue.next(job, System.nanoTime() - start);
        }
    }

    /** Returns false if the attempt was abandoned. */
    private boolean runJob(Job job) {
        Attempt attempt = new Attempt(job, workerId, jobScheduler, ownership);
        running.add(attempt);
        if (interrupting) {
            interruptToStop(attempt);
        }
        Future<?> deadline = deadline(attempt);
        JobOutcome outcome = run(attempt);
        boolean mine = attempt.end();
        if (deadline != null) {
            deadline.cancel(false);
        }
        // An interrupt meant for this handler must not reach the next one.
        Thread.interrupted();
        running.remove(attempt);
        if (mine) {
            runner.report(attempt, outcome);
            completer.submit(job, outcome);
        } else {
            log.info("The handler of {} has ended {} s after it began", attempt, attempt.nanos() / 1_000_000_000);
        }
        return mine;
    }

    /** Turns even what goes wrong around the handler, memory for instance that cannot be had, into an outcome. */
    private JobOutcome run(Attempt attempt) {
        try {
            return runner.run(attempt);
        } catch (Throwable e) {
            return JobOutcome.Failure.of(e);
        }
    }

    private @Nullable Future<?> deadline(Attempt attempt) {
        Duration timeout = runner.options(attempt.claimed()).timeout();
        if (timeout == null) {
            return null;
        }
        return timer.schedule(() -> timeOut(attempt, timeout), timeout.toNanos(), TimeUnit.NANOSECONDS);
    }

    private void timeOut(Attempt attempt, Duration timeout) {
        if (attempt.interruptOnTimeout()) {
            runner.reportInterrupt(attempt, true);
        }
        Future<?> unused = timer.schedule(
                () -> abandon(attempt, JobOutcome.Failure.of(new JobTimeoutException(timeout, null))),
                AFTER_TIMEOUT.toNanos(),
                TimeUnit.NANOSECONDS);
    }

    private void interruptToStop(Attempt attempt) {
        if (attempt.interruptToStop()) {
            runner.reportInterrupt(attempt, false);
        }
    }

    /** Decides the outcome of an attempt whose handler does not react, and lets another runner take its place. */
    private void abandon(Attempt attempt, JobOutcome outcome) {
        if (attempt.end()) {
            log.warn(
                    "{} ignores its interruption; the worker goes on without it while its handler still runs", attempt);
            running.remove(attempt);
            runner.report(attempt, outcome);
            completer.submit(attempt.claimed(), outcome);
            if (localQueue.replaceRunner(attempt.claimed(), attempt.nanos())) {
                startRunner();
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
        for (Job job : jobs) {
            completer.submit(job, new JobOutcome.Returned(false, null));
        }
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
        running.forEach(attempt -> abandon(attempt, new JobOutcome.Returned(true, null)));
    }

    /** Interrupts all running handlers, and those that are just beginning, because the worker may not go on with them. */
    public void interruptAll() {
        interrupting = true;
        running.forEach(this::interruptToStop);
    }

    /** Returns true if a job runs that has one of the flags. */
    public boolean runsAnyFlagged(Collection<String> flags) {
        return running.stream()
                .anyMatch(attempt -> !Collections.disjoint(attempt.job().flags(), flags));
    }

    /** Returns the ids of the jobs that have been running for at least that long. */
    public List<Long> runningFor(Duration time) {
        return running.stream()
                .filter(attempt -> attempt.nanos() >= time.toNanos())
                .map(attempt -> attempt.job().id())
                .toList();
    }

    /** Ends the thread that watches timeouts. */
    public void shutDown() {
        timer.shutdownNow();
    }
}
