package dev.pgworker.samples.testing;

import java.time.Duration;

import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.test.context.bean.override.mockito.MockitoBean;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.test.AutoConfigureTestWorker;
import dev.pgworker.test.JobRuns;
import dev.pgworker.test.TestWorker;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.Mockito.doThrow;
import static org.mockito.Mockito.verify;

/** Failures, waiting and recurring jobs; in the same context as {@link EmbeddedPostgresTest}. */
@SpringBootTest
@AutoConfigureTestWorker(clearBeforeEach = true)
class OrderJobsTest implements OnEmbeddedPostgres {

    @Autowired
    TestWorker worker;

    @Autowired
    JobScheduler jobs;

    @Autowired
    RecurringJobs recurring;

    @MockitoBean
    Mailer mailer;

    @Test
    void triesAgainWhenMailFails() {
        doThrow(new IllegalStateException("no mail today")).when(mailer).send(any(), any());
        jobs.addJob(OrderService.CONFIRM, new Order(42, "ada@example.org"));

        JobRuns runs = worker.runDue();

        assertThat(runs)
                .hasRun(OrderService.CONFIRM)
                .isRetrying()
                .runsAgainIn(Duration.ofMillis(2718))
                .error()
                .hasMessage("no mail today");

        worker.advance(Duration.ofSeconds(3));

        assertThat(worker.runDue()).hasRun(OrderService.CONFIRM).isAttempt(2);
    }

    @Test
    void waitsForAJobThatTheStartedWorkerRuns() {
        worker.start();
        try {
            Job job = jobs.addJob(OrderService.CONFIRM, new Order(42, "ada@example.org"));

            assertThat(worker.await(job)).isCompleted();
        } finally {
            worker.stop();
        }
    }

    @Test
    void sendsTheReport() {
        Job job = recurring.trigger("report");

        assertThat(worker.await(job)).isCompleted();
        verify(mailer).send("office@example.org", "Orders of yesterday");
    }

    @Test
    void makesUpForTheReportOfADayWithoutAWorker() {
        worker.start();
        try {
            worker.advance(Duration.ofDays(1));

            assertThat(worker.await("report")).isCompleted();
        } finally {
            worker.stop();
        }
    }
}
