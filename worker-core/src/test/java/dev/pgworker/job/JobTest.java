package dev.pgworker.job;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import dev.pgworker.testing.TestJob;

import static org.assertj.core.api.Assertions.assertThat;

@Tag("any-postgres")
class JobTest {

    @Test
    void anotherPayloadLeavesEverythingElseAsItIs() {
        Job job = TestJob.withId(1).build().withRecoveries(3);

        Job other = job.withPayload("[1]");

        assertThat(other.payload()).isEqualTo("[1]");
        assertThat(other.withPayload(job.payload())).isEqualTo(job);
    }
}
