package dev.pgworker.samples.testing;

import java.time.Duration;

import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.test.context.bean.override.mockito.MockitoBean;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.test.AutoConfigureTestWorker;
import dev.pgworker.test.JobRuns;
import dev.pgworker.test.TestWorker;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.Mockito.doThrow;
import static org.mockito.Mockito.verify;

@SpringBootTest
@AutoConfigureTestWorker(clearBeforeEach = true)
class EmbeddedPostgresTest implements OnEmbeddedPostgres {

    @Autowired
    TestWorker worker;

    @Autowired
    OrderService orders;

    @Autowired
    JobScheduler jobs;

    @MockitoBean
    Mailer mailer;

    @Test
    void confirmsAtOnceAndRemindsAfterThreeDays() {
        orders.place(new Order(42, "ada@example.org"));

        assertThat(worker.runDue()).hasSize(1).allCompleted();
        verify(mailer).send("ada@example.org", "We have your order 42");

        worker.advance(Duration.ofDays(3));

        assertThat(worker.runDue()).hasRun(OrderService.REMIND).isCompleted();
        verify(mailer).send("ada@example.org", "Your order 42 is ready");
    }

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
}
