package dev.pgworker.engine;

import java.time.Instant;
import java.util.List;
import java.util.Set;

import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import dev.pgworker.job.Job;
import dev.pgworker.store.JobStore.Floor;

import static org.assertj.core.api.Assertions.assertThat;

@Tag("any-postgres")
class ClaimFloorTest {

    private static final Instant PAST = Instant.parse("2026-01-01T00:00:00Z");

    private boolean needed = true;
    private final ClaimFloor floor = new ClaimFloor(() -> needed);

    @Test
    void isTheFirstJobOfTheLastPriorityOfAFullClaim() {
        assertThat(floor.claimed(List.of(job(0, 5, null), job(1, 7, "queue"), job(1, 8, null), job(1, 9, null)), 4))
                .isTrue();

        assertThat(floor.current()).isEqualTo(new Floor(1, PAST.plusSeconds(8)));
    }

    @Test
    void isDroppedByAShortClaimWhichThenHasNotSeenAllJobs() {
        assertThat(floor.claimed(List.of(job(0, 5, null)), 1)).isTrue();
        assertThat(floor.claimed(List.of(), 1)).isFalse();
        assertThat(floor.current()).isNull();
        assertThat(floor.claimed(List.of(), 1)).isTrue();
    }

    @Test
    void isNotThereWhenJobsOfQueuesEndTheClaimOrNobodyNeedsIt() {
        assertThat(floor.claimed(List.of(job(0, 5, null), job(1, 7, "queue")), 2))
                .isTrue();
        assertThat(floor.current()).isNull();
        needed = false;
        assertThat(floor.claimed(List.of(job(0, 5, null)), 1)).isTrue();
        assertThat(floor.current()).isNull();
    }

    private static Job job(int priority, int second, @Nullable String queueName) {
        return new Job(
                1,
                "task",
                "{}",
                queueName,
                priority,
                PAST.plusSeconds(second),
                1,
                25,
                null,
                PAST,
                PAST,
                null,
                PAST,
                "w",
                0,
                Set.of());
    }
}
