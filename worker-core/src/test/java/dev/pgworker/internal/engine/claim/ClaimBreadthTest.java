package dev.pgworker.internal.engine.claim;

import java.util.List;
import java.util.stream.IntStream;

import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import dev.pgworker.job.Job;
import dev.pgworker.testing.TestJob;

import static org.assertj.core.api.Assertions.assertThat;

@Tag("any-postgres")
class ClaimBreadthTest {

    private final ClaimBreadth breadth = new ClaimBreadth();

    @Test
    void isWideForSomeClaimsAfterOneThatBroughtFewJobsOfEachQueue() {
        breadth.claimed(jobs(8, 4), 8);

        for (int i = 0; i < 16; i++) {
            assertThat(breadth.isWide()).as("claim %d", i).isTrue();
            breadth.claimed(jobs(8, 1), 8);
        }
        assertThat(breadth.isWide()).isFalse();
    }

    @Test
    void isNarrowAfterLongRunsShortClaimsAndJobsWithoutQueues() {
        breadth.claimed(jobs(8, 2), 8);
        assertThat(breadth.isWide()).as("four jobs of each queue").isFalse();
        breadth.claimed(jobs(8, 8), 9);
        assertThat(breadth.isWide()).as("there are no more").isFalse();
        breadth.claimed(jobs(8, 0), 8);
        assertThat(breadth.isWide()).as("no queues").isFalse();
        breadth.claimed(List.of(), 8);
        assertThat(breadth.isWide()).as("no jobs").isFalse();
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
