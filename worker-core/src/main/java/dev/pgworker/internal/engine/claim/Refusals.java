package dev.pgworker.internal.engine.claim;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import dev.pgworker.internal.store.PassedOver;
import dev.pgworker.internal.store.Refused;
import dev.pgworker.job.Job;

/**
 * The jobs that the server does not let this worker claim, because of a trigger of somebody's for instance. Claims pass over
 * them, and over their queues, until it is time to try again: after a second at first, after a minute at last, and at once
 * when one of them could be claimed after all. Each is told once an hour at most.
 *
 * <p>There may be too many to remember. Then the task that has the most of them is crowded: only one claim every few seconds
 * looks for its jobs, or every other one while that brings any, so that those of other tasks run.
 *
 * <p>Owned by the thread that claims, but for {@link #example}.
 */
final class Refusals {

    private static final Logger log = LoggerFactory.getLogger(Refusals.class);

    /** With more, a task is crowded; if it is the only one, those that were refused first are forgotten, and tried again. */
    private static final int MOST = 20_000;

    /** How long claims pass over crowded tasks after one that brought none of their jobs. */
    private static final long CROWDED_PAUSE_NANOS = Duration.ofSeconds(5).toNanos();

    /** So many are tried again with each claim, so that these do not keep it from others for long. */
    private static final int RETRIES = 64;

    private static final long SHORTEST_PAUSE_NANOS = Duration.ofSeconds(1).toNanos();
    private static final long LONGEST_PAUSE_NANOS = Duration.ofMinutes(1).toNanos();

    private static final long TELL_AGAIN_NANOS = Duration.ofHours(1).toNanos();

    /** So many jobs are told one by one within the longest pause. */
    private static final int MOST_TOLD = 10;

    /** By the ids of the jobs, the last refused last. */
    private final Map<Long, Refusal> refusals = new LinkedHashMap<>();

    /** Identifiers of the crowded tasks, whose refused jobs were forgotten when they became so. */
    private final Set<String> crowded = new HashSet<>();

    /** When crowded tasks were told, by {@link System#nanoTime}. */
    private final Map<String, Long> crowdedToldAt = new HashMap<>();

    /** Whether the last claim looked for jobs of crowded tasks. */
    private boolean lookedAtCrowded;

    /** When to look for jobs of crowded tasks again, by {@link System#nanoTime}. */
    private long lookAtCrowdedAt;

    private volatile @Nullable String example;

    private int told;
    private long toldSince = System.nanoTime();

    /** A job that was refused. */
    private static final class Refusal {

        private final String task;

        private @Nullable Integer queueId;

        /** False while it is tried again. */
        private boolean passedOver;

        private long pauseNanos = SHORTEST_PAUSE_NANOS / 2;

        /** When to try again, and when it was told, by {@link System#nanoTime}. */
        private long retryAt;

        private @Nullable Long toldAt;

        Refusal(String task) {
            this.task = task;
        }
    }

    /** Returns what the next claim is to pass over. */
    PassedOver passedOver() {
        long now = System.nanoTime();
        lookedAtCrowded = mayLookAtCrowded(now);
        int retries = RETRIES;
        List<Long> jobIds = new ArrayList<>();
        Set<Integer> queueIds = new LinkedHashSet<>();
        for (Map.Entry<Long, Refusal> entry : refusals.entrySet()) {
            Refusal refusal = entry.getValue();
            if (!lookedAtCrowded && crowded.contains(refusal.task)) {
                continue;
            }
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
        return new PassedOver(jobIds, List.copyOf(queueIds), lookedAtCrowded ? Set.of() : Set.copyOf(crowded));
    }

    private boolean mayLookAtCrowded(long now) {
        return crowded.isEmpty() || (!lookedAtCrowded && now - lookAtCrowdedAt >= 0);
    }

    /** Returns whether there is anything to pass over. */
    boolean isAny() {
        return !crowded.isEmpty() || refusals.values().stream().anyMatch(refusal -> refusal.passedOver);
    }

    /** Returns one of the jobs that are passed over, and why; null if there is none. May be called from any thread. */
    @Nullable String example() {
        return example;
    }

    /**
     * Takes note of what a claim brought.
     *
     * @param served the identifiers of the tasks that it looked for, or that it passed over
     * @return whether a claim that passes over what was refused for the first time may bring others; false when there is too
     *     much of it, as where all jobs are refused
     */
    boolean note(Collection<String> served, List<Job> claimed, List<Refused> refused) {
        long now = System.nanoTime();
        noteCrowded(claimed, refused, now);
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
                refusal = new Refusal(job.task());
            }
            refusal.queueId = job.queueId();
            refusal.passedOver = true;
            refusal.pauseNanos = Math.min(2 * refusal.pauseNanos, LONGEST_PAUSE_NANOS);
            refusal.retryAt = now + refusal.pauseNanos;
            tell(job, refusal, now);
            refusals.put(job.jobId(), refusal);
        }
        boolean tooMany = refusals.size() > MOST && !crowd(served, refused.get(refused.size() - 1), now);
        forgetFirst();
        if (!refused.isEmpty()) {
            example = describe(refused.get(0));
        } else if (!isAny()) {
            example = null;
        }
        return (any && !tooMany) || (!crowded.isEmpty() && mayLookAtCrowded(now));
    }

    private void noteCrowded(List<Job> claimed, List<Refused> refused, long now) {
        if (crowded.isEmpty() || !lookedAtCrowded) {
            return;
        }
        boolean brought = claimed.stream().anyMatch(job -> crowded.contains(job.taskIdentifier()));
        boolean met = refused.stream().anyMatch(job -> crowded.contains(job.task()));
        if (!met && (brought || claimed.isEmpty())) {
            crowded.clear();
        } else {
            lookAtCrowdedAt = brought ? now : now + CROWDED_PAUSE_NANOS;
        }
    }

    /** Passes over the task that has the most refused jobs; returns false if there is no other one. */
    private boolean crowd(Collection<String> served, Refused last, long now) {
        Map<String, Integer> counts = new HashMap<>();
        refusals.values().forEach(refusal -> counts.merge(refusal.task, 1, Integer::sum));
        String task =
                Collections.max(counts.entrySet(), Map.Entry.comparingByValue()).getKey();
        if (served.stream().allMatch(other -> other.equals(task) || crowded.contains(other))) {
            return false;
        }
        refusals.values().removeIf(refusal -> refusal.task.equals(task));
        crowded.add(task);
        lookAtCrowdedAt = now + CROWDED_PAUSE_NANOS;
        Long toldAt = crowdedToldAt.get(task);
        if (toldAt == null || now - toldAt >= TELL_AGAIN_NANOS) {
            crowdedToldAt.put(task, now);
            log.warn(
                    "Thousands of jobs of task \"{}\" cannot be claimed; the last one: {} (SQLSTATE {}). Most claims skip"
                            + " this task, so that jobs of other tasks run; its own jobs may wait for a long time. A trigger or a"
                            + " constraint on the job tables may be the cause; remove it, or these jobs",
                    task,
                    last.reason(),
                    last.state());
        }
        return true;
    }

    private void forgetFirst() {
        var oldest = refusals.keySet().iterator();
        for (int i = refusals.size() - MOST; i > 0; i--) {
            oldest.next();
            oldest.remove();
        }
    }

    /** What the server lacks it may have again soon; meanwhile that is an outage, or other services tell it. */
    private void tell(Refused job, Refusal refusal, long now) {
        if (job.isLack() && refusal.pauseNanos < LONGEST_PAUSE_NANOS) {
            log.debug("Job {} of task \"{}\" cannot be claimed: {}", job.jobId(), job.task(), job.reason());
            return;
        }
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
                    "Job {}. It is skipped{} and retried from time to time. The cause may be a trigger or a constraint on the"
                            + " job tables, or data corruption; remove the cause, or the job",
                    describe(job),
                    job.queueName() == null ? "" : ", with its queue,");
        } else if (told == MOST_TOLD + 1) {
            log.warn("More jobs cannot be claimed; they are logged at level debug");
        }
        if (told > MOST_TOLD) {
            log.debug("Job {} of task \"{}\" cannot be claimed: {}", job.jobId(), job.task(), job.reason());
        }
    }

    private static String describe(Refused job) {
        String queue = job.queueName() == null ? "" : " in queue \"" + job.queueName() + "\"";
        return job.jobId() + " of task \"" + job.task() + "\"" + queue + " cannot be claimed: " + job.reason()
                + " (SQLSTATE " + job.state() + ")";
    }
}
