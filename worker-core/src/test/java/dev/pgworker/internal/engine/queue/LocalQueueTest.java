package dev.pgworker.internal.engine.queue;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;

import org.awaitility.Awaitility;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import dev.pgworker.internal.engine.HeldBack;
import dev.pgworker.internal.engine.queue.RunnerSlots.Runner;
import dev.pgworker.internal.store.Claim;
import dev.pgworker.job.Job;
import dev.pgworker.testing.TestJob;

import static org.assertj.core.api.Assertions.assertThat;

@Tag("any-postgres")
class LocalQueueTest {

    private static final Instant PAST = Instant.parse("2026-01-01T00:00:00Z");
    private static final long FAST = 1_000;
    private static final long SLOW = TimeUnit.SECONDS.toNanos(1);
    private static final Duration LONG = Duration.ofMinutes(1);

    private int told;
    private final HeldBack held = new HeldBack();
    private final LocalQueue queue = new LocalQueue(2, 100, LONG, 10, held, () -> told++);
    private final Deque<Runner> idle = new ArrayDeque<>();
    private final IdentityHashMap<Job, Runner> runners = new IdentityHashMap<>();
    private long ids = 1_000_000;
    private static int claims;

    @Test
    void claimsNothingAheadOfSlowHandlers() {
        run(100, SLOW, null);

        assertThat(queue.free()).isEqualTo(2);
    }

    @Test
    void claimsMoreTheMoreFastRunsAreMeasuredUpToItsSize() {
        assertThat(queue.free()).isEqualTo(2);
        run(40, FAST, null);
        assertThat(queue.free()).isEqualTo(2 + 10);
        run(1000, FAST, null);
        assertThat(queue.free()).isEqualTo(2 + 100);
    }

    /** A pass returns as many jobs as had been settled when nothing was left. */
    @Test
    void nothingIsInFlightThatIsNotCounted() throws InterruptedException {
        for (int round = 0; round < 2_000; round++) {
            LocalQueue one = new LocalQueue(2, 100, LONG, 10, held, () -> {});
            List<Job> jobs = plainJobs(1);
            one.add(jobs);
            Thread settling = new Thread(() -> one.settled(jobs));
            settling.start();
            LocalQueue.Progress progress = one.progress();
            while (!progress.idle()) {
                progress = one.progress();
            }
            assertThat(progress.settled()).isEqualTo(1);
            settling.join();
        }
    }

    @Test
    void jobsOfATaskWithALimitOfStartsStartAtOnceOrAreGivenBack() {
        HeldBack held = new HeldBack();
        LocalQueue rated = new LocalQueue(2, 100, LONG, 10, held, () -> told++);
        List<Job> jobs = plainJobs(5);
        held.rate(Set.of(jobs.get(0).taskIdentifier()));

        assertThat(rated.add(jobs)).hasSize(2);

        assertThat(rated.takeExpired()).containsExactlyElementsOf(jobs.subList(2, 5));
    }

    @Test
    void claimsNothingAheadWhileJobsOfATaskWithALimitOfStartsCome() {
        run(1000, FAST, null);
        assertThat(queue.free()).isEqualTo(2 + 100);

        List<Job> jobs = plainJobs(1);
        held.rate(Set.of(jobs.get(0).taskIdentifier()));
        add(jobs);

        assertThat(queue.free()).isEqualTo(1);
    }

    @Test
    void claimsNothingMoreWhileEnoughJobsWait() {
        run(1000, FAST, null);
        add(plainJobs(51));

        assertThat(queue.free()).isZero();
        Job first = Objects.requireNonNull(next(null, 0));
        assertThat(queue.free()).isEqualTo(2 + 100 - 51);
        assertThat(first.id()).isPositive();
    }

    @Test
    void tellsOnceThatThereIsRoom() {
        run(1000, FAST, null);
        told = 0;
        add(plainJobs(100));
        Job job = next(null, 0);
        for (int i = 0; i < 98; i++) {
            job = next(job, FAST);
        }

        assertThat(told).isEqualTo(1);
    }

    @Test
    void tellsThatThereIsRoomWhenAJobEndsAfterItsOutcomeIsWritten() {
        List<Job> jobs = plainJobs(2);
        add(jobs);
        next(null, 0);
        next(null, 0);
        told = 0;
        settle(jobs.get(0));
        assertThat(queue.free()).isZero();

        next(jobs.get(0), SLOW);

        assertThat(queue.free()).isEqualTo(1);
        assertThat(told).isEqualTo(1);
    }

    @Test
    void startsJobsByPriorityAndOneOfAQueueAtATime() {
        Job first = job(1, "q", 0);
        Job second = job(2, "q", 0);
        Job plain = job(3, null, 1);
        add(List.of(first, second, plain));

        assertThat(next(null, 0)).isEqualTo(first);
        assertThat(next(null, 0)).isEqualTo(plain);
        assertThat(next(null, 0)).isNull();
        assertThat(next(first, FAST)).isEqualTo(second);
        settle(first);
        assertThat(next(second, FAST)).isNull();
    }

    @Test
    void aLaterClaimOfBetterPriorityOvertakesThoseBehindInItsQueue() {
        Job running = job(1, "q", 0);
        add(List.of(running, job(2, "q", 0)));
        assertThat(next(null, 0)).isEqualTo(running);
        Job urgent = job(3, "q", -1);
        add(List.of(urgent));

        assertThat(next(running, FAST)).isEqualTo(urgent);
    }

    @Test
    void aJobWhoseSuccessorArrivesBeforeItsRunnerReturnsDoesNotOverlapIt() {
        Job first = job(1, "q", 0);
        add(List.of(first));
        assertThat(next(null, 0)).isEqualTo(first);
        settle(first);
        Job second = job(2, "q", 0);
        add(List.of(second, job(3, "q", 0)));
        assertThat(next(null, 0)).isEqualTo(second);

        assertThat(next(first, FAST)).isNull();
    }

    @Test
    void aJobClaimedAgainBeforeItsRunnerReturnsKeepsItsQueue() {
        Job first = job(1, "q", 0);
        add(List.of(first));
        assertThat(next(null, 0)).isEqualTo(first);
        Job again = job(1, "q", 0);
        add(List.of(again));
        settle(first);
        assertThat(queue.contains(Claim.of(again))).isTrue();
        assertThat(queue.containsQueue("q")).isTrue();

        assertThat(next(first, FAST)).isSameAs(again);
        add(List.of(job(2, "q", 0)));
        assertThat(next(null, 0)).isNull();
    }

    @Test
    void aJobThatWaitedTooLongIsNotStartedAndNeitherAreThoseBehindIt() throws Exception {
        LocalQueue impatient = new LocalQueue(2, 100, Duration.ofNanos(1), 10, new HeldBack(), () -> told++);
        Job first = job(1, "q", 0);
        Job second = job(2, "q", 0);
        Job plain = job(3, null, 0);
        told = 0;
        Runner runner = Objects.requireNonNull(impatient.add(List.of(first, second, plain)))
                .get(0);

        assertThat(impatient.next(runner, 0)).isNull();
        assertThat(told).isEqualTo(1);
        assertThat(impatient.nanosUntilExpired()).isZero();
        assertThat(impatient.takeExpired()).containsExactlyInAnyOrder(first, second, plain);
        // Until they are given back, a later job of their queue must not start.
        Job third = job(4, "q", 0);
        impatient.add(List.of(third));
        assertThat(told).isEqualTo(2);
        assertThat(impatient.takeExpired()).containsExactly(third);
        assertThat(impatient.plan(List.of(first)).aheads()).containsExactly(0);
        assertThat(impatient.isIdle()).isFalse();
    }

    @Test
    void jobsBehindAnotherOfTheirQueueTakeNoRoom() {
        Job slow = job(1, "q", 0);
        List<Job> jobs = new ArrayList<>(List.of(slow));
        for (int i = 2; i < 200; i++) {
            jobs.add(job(i, "q", 0));
        }
        add(jobs);
        assertThat(next(null, 0)).isEqualTo(slow);

        assertThat(queue.free()).isEqualTo(1);
        assertThat(queue.load().waiting()).isEqualTo(198);
    }

    @Test
    void thoseBehindASlowJobAreGivenBackAndThenItsQueueGoesOn() {
        LocalQueue impatient = new LocalQueue(2, 100, Duration.ofMillis(200), 10, new HeldBack(), () -> told++);
        Job slow = job(1, "q", 0);
        Job second = job(2, "q", 0);
        Job third = job(3, "q", 0);
        Runner runner = Objects.requireNonNull(impatient.add(List.of(slow, second, third)))
                .get(0);
        assertThat(impatient.next(runner, 0)).isEqualTo(slow);

        Awaitility.await().until(() -> impatient.nanosUntilExpired() == 0);
        assertThat(impatient.takeExpired()).containsExactlyInAnyOrder(second, third);
        assertThat(impatient.plan(List.of(second, third)).goingOn()).containsExactly(2L, 3L);
        assertThat(impatient.plan(List.of(slow)).aheads())
                .as("before they are given back")
                .containsExactly(0);
        impatient.settled(List.of(second, third));

        assertThat(impatient.next(runner, SLOW)).isNull();
        assertThat(impatient.plan(List.of(slow)).aheads()).containsExactly(1);
    }

    @Test
    void aQueueGoesOnWhileMoreOfItsJobsAreHere() {
        Job first = job(1, "q", 0);
        Job second = job(2, "q", 0);
        Job other = job(3, "r", 0);
        Job plain = job(4, null, 0);
        add(List.of(first, second, other, plain));

        assertThat(queue.plan(List.of(first)).goingOn()).containsExactly(1L);
        assertThat(queue.plan(List.of(first)).aheads()).containsExactly(0);
        assertThat(queue.plan(List.of(plain, first, other, second)).goingOn()).isEmpty();
        assertThat(queue.plan(List.of(plain, first, other, second)).aheads()).containsExactly(0, 1, 1, 0);
        assertThat(queue.plan(List.of(plain)).aheads()).isEmpty();
    }

    @Test
    void claimsAsManyOfAQueueAsItsHandlerIsMeasuredToFinishUpToTheLimit() {
        run(12, FAST, "other");
        Job job = job(1, "q", 0);
        add(List.of(job));
        assertThat(next(null, 0)).isEqualTo(job);
        assertThat(queue.plan(List.of(job)).aheads()).containsExactly(3);
        run(200, FAST, "other");
        assertThat(queue.plan(List.of(job)).aheads()).containsExactly(10);
        run(200, SLOW, "other");
        assertThat(queue.plan(List.of(job)).aheads()).containsExactly(1);
    }

    @Test
    void aQueueThatHasHadManyJobsInARowEndsIfOthersWait() {
        Job before = job(ids++, "q", 0);
        add(List.of(before));
        for (int i = 1; i < 100; i++) {
            assertThat(queue.plan(List.of(before)).aheads()).containsExactly(1);
            Job next = job(ids++, "q", 0);
            add(List.of(next));
            settle(before);
            before = next;
            queue.othersWait(true);
        }
        assertThat(queue.plan(List.of(before)).aheads()).containsExactly(0);
        assertThat(queue.plan(List.of(before)).goingOn()).isEmpty();

        queue.othersWait(false);
        assertThat(queue.plan(List.of(before)).aheads()).containsExactly(1);
    }

    @Test
    void aQueueEndsAfterARunOfFastJobsIfOthersWait() {
        run(12, FAST, "other");
        assertThat(queue.runOf("task")).isEqualTo(3);
        Job job = job(ids++, "q", 0);
        add(List.of(job));
        queue.othersWait(true);
        assertThat(queue.plan(List.of(job)).aheads()).containsExactly(0);
        queue.othersWait(false);
        assertThat(queue.plan(List.of(job)).aheads()).containsExactly(3);
    }

    @Test
    void aClosedQueueStartsAndClaimsNothing() {
        Job first = job(1, "q", 0);
        Job second = job(2, "q", 0);
        Job plain = job(3, null, 1);
        add(List.of(first, second, plain));
        assertThat(next(null, 0)).isEqualTo(first);

        assertThat(queue.close()).containsExactlyInAnyOrder(second, plain);

        assertThat(queue.free()).isZero();
        assertThat(queue.plan(List.of(first, second)).aheads()).containsExactly(0, 0);
        assertThat(next(first, FAST)).isNull();
        assertThat(queue.add(List.of(job(4, null, 0)))).isNull();
    }

    /** An executor that is always late by more than it is given would otherwise never run a job. */
    @Test
    void aClaimThatHangsLeavesHalfOfTheRoom() {
        LocalQueue queue = new LocalQueue(10, 0, Duration.ofMinutes(1), 1, new HeldBack(), () -> told++);
        assertThat(queue.reserve(1)).isEqualTo(10);
        assertThat(queue.free()).isEqualTo(5);
        queue.unreserve(10);
        assertThat(queue.free()).isEqualTo(10);
    }

    @Test
    void aRunnerThatWasTakenForLostBeginsInPlaceOfAnotherOne() {
        LocalQueue single = new LocalQueue(1, 100, LONG, 10, new HeldBack(), () -> told++);
        Job job = job(1, null, 0);
        Runner late = Objects.requireNonNull(single.add(List.of(job))).get(0);
        single.signOffUnbegun(Duration.ofNanos(-1));
        Runner replacement = single.missingRunners().get(0);

        assertThat(single.begin(late)).isTrue();
        assertThat(single.next(late, 0)).isEqualTo(job);
        assertThat(single.begin(replacement)).isFalse();
        assertThat(single.next(late, 0)).isNull();
        assertThat(single.begin(late)).isFalse();
    }

    private void run(int jobs, long nanos, @Nullable String queueName) {
        for (int i = 0; i < jobs; i++) {
            Job job = job(ids++, queueName, 0);
            add(List.of(job));
            assertThat(next(null, 0)).isEqualTo(job);
            next(job, nanos);
            settle(job);
        }
    }

    private void add(List<Job> jobs) {
        idle.addAll(Objects.requireNonNull(queue.add(jobs)));
    }

    /** Lets a runner that has run a job, or an idle one, ask for the next. */
    private @Nullable Job next(@Nullable Job ended, long nanos) {
        Runner runner = ended == null ? idle.poll() : runners.remove(ended);
        if (ended == null && runner != null) {
            assertThat(queue.begin(runner)).isTrue();
        }
        Job job = queue.next(runner == null ? new Runner() : runner, nanos);
        if (job != null) {
            runners.put(job, Objects.requireNonNull(runner));
        }
        return job;
    }

    private void settle(Job job) {
        queue.settled(List.of(job));
    }

    private List<Job> plainJobs(int amount) {
        List<Job> jobs = new ArrayList<>();
        for (int i = 0; i < amount; i++) {
            jobs.add(job(ids++, null, 0));
        }
        return jobs;
    }

    private static Job job(long id, @Nullable String queueName, int priority) {
        return TestJob.withId(id)
                .queueName(queueName)
                .priority(priority)
                .lockedAt(PAST.plusNanos(1_000L * claims++))
                .build();
    }
}
