package dev.pgworker.engine;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import dev.pgworker.job.Job;
import dev.pgworker.store.JobStore.PassedOver;
import dev.pgworker.store.JobStore.Refused;

/**
 * The jobs that the server does not let this worker claim, because of a trigger of somebody's for instance. Claims pass over
 * them, and over their queues, until it is time to try again: after a second at first, after a minute at last, and at once
 * when one of them could be claimed after all. Each is told once an hour at most.
 *
 * <p>Owned by the thread that claims.
 */
final class Refusals {

    private static final Logger log = LoggerFactory.getLogger(Refusals.class);

    /** With more, those that were refused first are forgotten, and tried again. */
    private static final int MOST = 20_000;

    /** So many are tried again with each claim, so that these do not keep it from others for long. */
    private static final int RETRIES = 64;

    private static final long SHORTEST_PAUSE_NANOS = Duration.ofSeconds(1).toNanos();
    private static final long LONGEST_PAUSE_NANOS = Duration.ofMinutes(1).toNanos();

    private static final long TELL_AGAIN_NANOS = Duration.ofHours(1).toNanos();

    /** So many jobs are told one by one within the longest pause. */
    private static final int MOST_TOLD = 10;

    /** By the ids of the jobs, the last refused last. */
    private final Map<Long, Refusal> refusals = new LinkedHashMap<>();

    private int told;
    private long toldSince = System.nanoTime();

    /** A job that was refused. */
    private static final class Refusal {

        private @Nullable Integer queueId;

        /** False while it is tried again. */
        private boolean passedOver;

        private long pauseNanos = SHORTEST_PAUSE_NANOS / 2;

        /** When to try again, and when it was told, by {@link System#nanoTime}. */
        private long retryAt;

        private @Nullable Long toldAt;
    }

    /** Returns what the next claim is to pass over. */
    PassedOver passedOver() {
        long now = System.nanoTime();
        int retries = RETRIES;
        List<Long> jobIds = new ArrayList<>();
        Set<Integer> queueIds = new LinkedHashSet<>();
        for (Map.Entry<Long, Refusal> entry : refusals.entrySet()) {
            Refusal refusal = entry.getValue();
            if (refusal.passedOver && retries > 0 && now - refusal.retryAt >= 0) {
                refusal.passedOver = false;
                retries--;
            }
            if (refusal.passedOver) {
                jobIds.add(entry.getKey());
                if (refusal.queueId != null) {
                    queueIds.add(refusal.queueId);
                }
            }
        }
        return new PassedOver(jobIds, List.copyOf(queueIds));
    }

    /** Returns whether there is anything to pass over. */
    boolean isAny() {
        return refusals.values().stream().anyMatch(refusal -> refusal.passedOver);
    }

    /**
     * Takes note of what a claim brought.
     *
     * @return whether a claim that passes over what was refused for the first time may bring others; false when there is too
     *     much of it, as where all jobs are refused
     */
    boolean note(List<Job> claimed, List<Refused> refused) {
        long now = System.nanoTime();
        boolean mended = false;
        for (Job job : claimed) {
            mended |= refusals.remove(job.id()) != null;
        }
        if (mended) {
            refusals.values().forEach(refusal -> refusal.retryAt = now);
        }
        boolean any = false;
        for (Refused job : refused) {
            Refusal refusal = refusals.remove(job.jobId());
            if (refusal == null) {
                any = true;
                refusal = new Refusal();
            }
            refusal.queueId = job.queueId();
            refusal.passedOver = true;
            refusal.pauseNanos = Math.min(2 * refusal.pauseNanos, LONGEST_PAUSE_NANOS);
            refusal.retryAt = now + refusal.pauseNanos;
            tell(job, refusal, now);
            refusals.put(job.jobId(), refusal);
        }
        boolean tooMany = refusals.size() > MOST;
        forgetFirst();
        return any && !tooMany;
    }

    private void forgetFirst() {
        var oldest = refusals.keySet().iterator();
        for (int i = refusals.size() - MOST; i > 0; i--) {
            oldest.next();
            oldest.remove();
        }
    }

    private void tell(Refused job, Refusal refusal, long now) {
        if (refusal.toldAt != null && now - refusal.toldAt < TELL_AGAIN_NANOS) {
            return;
        }
        if (now - toldSince > LONGEST_PAUSE_NANOS) {
            toldSince = now;
            told = 0;
        }
        told++;
        refusal.toldAt = now;
        if (told <= MOST_TOLD) {
            log.warn(
                    "Job {} of task \"{}\"{} cannot be claimed: {} (SQLSTATE {}). It is passed over{} and tried again from"
                            + " time to time. A trigger or a constraint on the tables of the jobs may be the reason, or"
                            + " damage; remove that, or the job",
                    job.jobId(),
                    job.task(),
                    job.queueName() == null ? "" : " in queue \"" + job.queueName() + "\"",
                    job.reason(),
                    job.state(),
                    job.queueName() == null ? "" : ", with its queue,");
        } else if (told == MOST_TOLD + 1) {
            log.warn("More jobs cannot be claimed; they are told at level debug");
        }
        if (told > MOST_TOLD) {
            log.debug("Job {} of task \"{}\" cannot be claimed: {}", job.jobId(), job.task(), job.reason());
        }
    }
}
