package dev.pgworker.internal.engine.claim;

import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;

import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import dev.pgworker.internal.store.IndexPosition;
import dev.pgworker.internal.store.QueueFront;
import dev.pgworker.job.Job;
import dev.pgworker.testing.TestJob;

import static org.assertj.core.api.Assertions.assertThat;

@Tag("any-postgres")
class ClaimFrontTest {

    private final AtomicLong news = new AtomicLong();

    private final ClaimFront front = new ClaimFront(news::get);

    @Test
    void isBroadForSomeClaimsAfterOneThatBroughtFewJobsOfEachQueue() {
        front.claimed(jobs(16, 4), 16);

        for (int i = 0; i < 16; i++) {
            assertThat(front.next(32).queues())
                    .as("claim %d: a quarter of what is wanted, and a margin", i)
                    .isEqualTo(10);
            front.claimed(jobs(16, 1), 16);
        }
        assertThat(front.next(32).queues()).isZero();
    }

    @Test
    void isNarrowAfterLongRunsShortClaimsAndJobsWithoutQueues() {
        front.claimed(jobs(16, 2), 16);
        assertThat(front.next(16).queues()).as("eight jobs of each queue").isZero();
        front.claimed(jobs(8, 8), 9);
        assertThat(front.next(16).queues()).as("there are no more").isZero();
        front.claimed(jobs(8, 0), 8);
        assertThat(front.next(16).queues()).as("no queues").isZero();
        front.claimed(List.of(), 8);
        assertThat(front.next(16).queues()).as("no jobs").isZero();
    }

    @Test
    void beginsAtTheFirstJobOfTheLastClaimUntilOtherJobsAreAnnounced() {
        assertThat(front.next(8)).isEqualTo(QueueFront.UNKNOWN);
        List<Job> jobs = jobs(8, 1);
        front.claimed(jobs, 8);
        IndexPosition place = new IndexPosition(jobs.get(0).runAt(), jobs.get(0).id());
        assertThat(front.next(8)).isEqualTo(new QueueFront(0, jobs.get(0).priority(), place));

        news.incrementAndGet();
        assertThat(front.next(8))
                .as("the last claim was full")
                .isEqualTo(new QueueFront(0, jobs.get(0).priority(), null));
        assertThat(front.next(8).place()).as("looked at all").isEqualTo(place);
    }

    @Test
    void beginsAtTheFirstJobOfAllAfterAClaimThatWasNotFull() {
        assertThat(front.next(8)).isEqualTo(QueueFront.UNKNOWN);
        front.claimed(jobs(8, 1), 9);
        assertThat(front.next(8)).isEqualTo(QueueFront.UNKNOWN);
        front.claimed(jobs(8, 0), 8);
        assertThat(front.next(8).place()).as("without queues").isNull();
    }

    /** So many jobs spread over so many queues. */
    private static List<Job> jobs(int count, int queues) {
        return IntStream.range(0, count)
                .mapToObj(i -> job(i, queues == 0 ? null : "queue " + i % queues))
                .toList();
    }

    private static Job job(long id, @Nullable String queueName) {
        return TestJob.withId(id).queueName(queueName).build();
    }
}
