package dev.pgworker.internal.engine.claim;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.jspecify.annotations.Nullable;
import org.postgresql.util.PSQLException;
import org.postgresql.util.ServerErrorMessage;
import org.slf4j.Logger;

import dev.pgworker.internal.failure.ErrorText;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.store.ClaimStore.First;

/**
 * The jobs that the server does not let this worker claim, because of a user's trigger for example. Claims leave them, and
 * their queues, out until it is time to try again: after a second at first, after a minute at last. With more than 1,000 of them
 * the first are tried again, and may keep the worker from those behind.
 *
 * <p>Owned by the thread that claims, but for {@link #example}.
 */
final class PassedOver {

    private static final Logger log = WorkerLog.of(PassedOver.class);

    private static final int MOST = 1_000;

    /** So many are tried again together. */
    private static final int RETRIES = 64;

    private static final long SHORTEST_PAUSE_NANOS = Duration.ofSeconds(1).toNanos();
    private static final long LONGEST_PAUSE_NANOS = Duration.ofMinutes(1).toNanos();

    /** So many jobs are logged within the longest pause, each once an hour. */
    private static final int MOST_LOGGED = 10;

    private static final long LOG_AGAIN_NANOS = Duration.ofHours(1).toNanos();

    private final Map<Long, Refusal> refusals = new LinkedHashMap<>();
    private volatile @Nullable String example;
    private int logged;
    private long loggedSince = System.nanoTime();

    /** A job that was refused. */
    private static final class Refusal {

        private long pauseNanos = SHORTEST_PAUSE_NANOS / 2;
        private long retryAt;
        private boolean retried;
        private @Nullable Long loggedAt;
    }

    /** Returns one of the jobs, and why it cannot be claimed; null if there is none. May be called from any thread. */
    @Nullable String example() {
        return example;
    }

    /** Returns the ids of the jobs to leave out now. */
    List<Long> ids() {
        return refusals.entrySet().stream()
                .filter(one -> !one.getValue().retried)
                .map(Map.Entry::getKey)
                .toList();
    }

    /** Has some jobs tried again whose time has come; returns whether there are any. */
    boolean retry() {
        if (refusals.isEmpty()) {
            return false;
        }
        long now = System.nanoTime();
        // What was tried again and not refused again has been claimed, by any worker, or is gone.
        refusals.values().removeIf(one -> one.retried && now - one.retryAt > LONGEST_PAUSE_NANOS);
        int left = RETRIES;
        for (Refusal refusal : refusals.values()) {
            if (!refusal.retried && left > 0 && now - refusal.retryAt >= 0) {
                refusal.retried = true;
                left--;
            }
        }
        if (refusals.isEmpty()) {
            example = null;
        }
        return left < RETRIES;
    }

    /** Takes note of jobs that have been claimed. */
    void claimed(Iterable<Long> ids) {
        if (!refusals.isEmpty()) {
            ids.forEach(refusals::remove);
            if (refusals.isEmpty()) {
                example = null;
            }
        }
    }

    /** Takes note of a job that cannot be claimed. */
    void add(First job, Throwable why) {
        long now = System.nanoTime();
        Refusal refusal = refusals.remove(job.jobId());
        if (refusal == null) {
            refusal = new Refusal();
        }
        refusal.retried = false;
        refusal.pauseNanos = Math.min(2 * refusal.pauseNanos, LONGEST_PAUSE_NANOS);
        refusal.retryAt = now + refusal.pauseNanos;
        example = job.jobId() + " of task \"" + job.task() + "\" cannot be claimed: " + reason(why);
        log(job, why, refusal, now);
        refusals.put(job.jobId(), refusal);
        if (refusals.size() > MOST) {
            refusals.remove(refusals.keySet().iterator().next());
        }
    }

    /** The server's message, without where. */
    private static String reason(Throwable why) {
        ServerErrorMessage answer = why instanceof PSQLException e ? e.getServerErrorMessage() : null;
        return answer == null
                ? ErrorText.headline(why)
                : answer.getMessage() + " (SQLSTATE " + answer.getSQLState() + ")";
    }

    private void log(First job, Throwable why, Refusal refusal, long now) {
        if (refusal.loggedAt != null && now - refusal.loggedAt < LOG_AGAIN_NANOS) {
            return;
        }
        if (now - loggedSince > LONGEST_PAUSE_NANOS) {
            loggedSince = now;
            logged = 0;
        }
        refusal.loggedAt = now;
        logged++;
        if (logged <= MOST_LOGGED) {
            log.warn(
                    "Job {} of task \"{}\" cannot be claimed. It is skipped, with its queue if it has one, and retried from time to"
                            + " time. The cause may be a trigger or a constraint on the job tables, or data corruption; remove the"
                            + " cause, or the job",
                    job.jobId(),
                    job.task(),
                    why);
        } else if (logged == MOST_LOGGED + 1) {
            log.warn("More jobs cannot be claimed; they are logged at level debug");
        } else {
            log.debug("Job {} of task \"{}\" cannot be claimed: {}", job.jobId(), job.task(), reason(why));
        }
    }
}
