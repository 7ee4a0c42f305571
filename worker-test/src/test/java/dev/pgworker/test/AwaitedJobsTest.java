package dev.pgworker.test;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

import org.junit.jupiter.api.Test;

import dev.pgworker.job.JobHandle;
import dev.pgworker.job.JobResultException;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Jobs in memory end for those who wait for them when the test says so. */
class AwaitedJobsTest {

    record Report(int customer, int orders) {}

    @Test
    void aWaitEndsWithTheResultThatTheTestGives() throws Exception {
        TestJobScheduler jobs = new TestJobScheduler();
        JobHandle<Report> handle = jobs.addJobForResult("report", 7, Report.class);
        jobs.succeed(handle.jobId(), new Report(7, 3));

        assertThat(handle.await(Duration.ofMinutes(2))).isEqualTo(new Report(7, 3));
        assertThat(jobs.resultOf(handle.jobId(), Report.class).future().get(2, TimeUnit.MINUTES))
                .isEqualTo(new Report(7, 3));
        assertThat(jobs.jobs()).hasEnqueued("report");
    }

    @Test
    void aWaitEndsWithTheErrorThatTheTestGives() {
        TestJobScheduler jobs = new TestJobScheduler();
        JobHandle<Report> handle = jobs.addJobForResult("report", 7, Report.class);

        assertThatThrownBy(() -> handle.await(Duration.ofMillis(10))).isInstanceOf(TimeoutException.class);
        jobs.fail(handle.jobId(), "no such customer");

        assertThatThrownBy(() -> handle.await(Duration.ofMinutes(2)))
                .isInstanceOf(JobResultException.class)
                .hasMessageContaining("Job " + handle.jobId() + " has failed: no such customer");
    }
}
