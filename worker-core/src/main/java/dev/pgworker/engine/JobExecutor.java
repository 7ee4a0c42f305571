package dev.pgworker.engine;

import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobScheduler;

/**
 * Runs claimed jobs on the handler executor and passes their outcomes on.
 *
 * <p>Owned state: the set of running attempts. Jobs enter from {@code worker-fetch} and {@code worker-complete}.
 */
public final class JobExecutor {

    private static final Logger log = LoggerFactory.getLogger(JobExecutor.class);

    private final String workerId;
    private final LocalQueue localQueue;
    private final JobRunner runner;
    private final JobScheduler jobScheduler;
    private final Executor executor;
    private final JobCompleter completer;

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
            JobCompleter completer) {
        this.workerId = workerId;
        this.localQueue = localQueue;
        this.runner = runner;
        this.jobScheduler = jobScheduler;
        this.executor = executor;
        this.completer = completer;
    }

    /** Takes claimed jobs over; returns before they run. Gives them back if the worker is stopping. */
    public void submit(List<Job> jobs) {
        int runners = localQueue.add(jobs);
        if (runners < 0) {
            giveBack(jobs);
            return;
        }
        for (int i = 0; i < runners; i++) {
            startRunner();
        }
    }

    private void startRunner() {
        try {
            executor.execute(this::runJobs);
        } catch (RejectedExecutionException e) {
            // The jobs stay queued; a later runner takes them, or the stop gives them back.
            localQueue.signOff();
            log.error("The handler executor refuses work", e);
        }
    }

    private void runJobs() {
        for (Job job = localQueue.next(); job != null; job = localQueue.next()) {
            runJob(job);
        }
    }

    private void runJob(Job job) {
        Attempt attempt = new Attempt(job, workerId, jobScheduler);
        running.add(attempt);
        if (interrupting) {
            attempt.interrupt();
        }
        JobOutcome outcome = runner.run(attempt);
        boolean mine = attempt.end();
        // An interrupt meant for this handler must not reach the next one.
        Thread.interrupted();
        running.remove(attempt);
        if (mine) {
            completer.submit(job, outcome);
        }
    }

    /** Lets no further job start and gives those back that have not started. */
    public void close() {
        giveBack(localQueue.close());
    }

    private void giveBack(List<Job> jobs) {
        for (Job job : jobs) {
            completer.submit(job, new JobOutcome.Returned(false));
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
        interrupting = true;
        running.forEach(Attempt::interrupt);
        if (localQueue.awaitNoRunners(afterInterrupt)) {
            return;
        }
        for (Attempt attempt : running) {
            if (attempt.end()) {
                log.warn("{} ignores its interruption; it is given back while its handler still runs", attempt);
                completer.submit(attempt.job(), new JobOutcome.Returned(true));
            }
        }
    }
}
