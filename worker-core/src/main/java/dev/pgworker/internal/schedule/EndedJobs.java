package dev.pgworker.internal.schedule;

import java.util.HashSet;
import java.util.Set;

import com.google.errorprone.annotations.concurrent.GuardedBy;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.job.Job;

/**
 * The jobs of schedules that have ended in this worker, for whose end a schedule may wait. It receives all jobs, and
 * takes those whose payload looks like that of a schedule: what it misses is found in the database a little later.
 */
final class EndedJobs implements WorkerEventListener {

    /** So many are remembered until they are read. */
    private static final int MOST = 1_000;

    /** The text of longer payloads is not looked through. */
    private static final int LONGEST_PAYLOAD = 100_000;

    private final Runnable onEnd;

    @GuardedBy("this") private Set<Long> ids = new HashSet<>();

    /**
     * Creates the jobs of one worker.
     *
     * @param onEnd called when there is one to ask for; must return at once
     */
    EndedJobs(Runnable onEnd) {
        this.onEnd = onEnd;
    }

    @Override
    public void onEvent(WorkerEvent event) {
        if (event instanceof WorkerEvent.JobCompleted completed) {
            ended(completed.job());
        } else if (event instanceof WorkerEvent.JobFailed failed && failed.permanently()) {
            ended(failed.job());
        } else if (event instanceof WorkerEvent.JobSuperseded superseded) {
            ended(superseded.job());
        } else if (event instanceof WorkerEvent.JobCancelled cancelled) {
            ended(cancelled.job());
        }
    }

    private void ended(Job job) {
        String payload = job.payload();
        if (payload.length() <= LONGEST_PAYLOAD && payload.contains("\"_cron\"") && add(job.id())) {
            onEnd.run();
        }
    }

    private synchronized boolean add(long id) {
        return ids.size() < MOST && ids.add(id);
    }

    /** Returns the jobs that have ended since the last call. */
    synchronized Set<Long> take() {
        Set<Long> taken = ids;
        ids = new HashSet<>();
        return taken;
    }
}
