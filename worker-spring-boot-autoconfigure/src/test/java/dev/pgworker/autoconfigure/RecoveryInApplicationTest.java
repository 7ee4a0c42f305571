package dev.pgworker.autoconfigure;

import java.util.List;
import javax.sql.DataSource;

import org.assertj.core.api.Assertions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

import dev.pgworker.autoconfigure.testing.Greetings;
import dev.pgworker.autoconfigure.testing.RecordedEvents;
import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.event.RecoveryOutcome;
import dev.pgworker.event.WorkerEvent.JobRecovered;
import dev.pgworker.event.WorkerEvent.WorkersRecovered;
import dev.pgworker.job.DeadWorker;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.SweepOptions;
import dev.pgworker.job.WorkerOperations;
import dev.pgworker.task.JobRecoveryHandler;
import dev.pgworker.task.RecoveryDecision;

import static org.assertj.core.api.Assertions.assertThat;

/** Recovery as an application configures it. */
@ExtendWith(OutputCaptureExtension.class)
class RecoveryInApplicationTest {

    private static final String ADVICE = "pgworker.recovery.enabled is false";

    @RegisterExtension
    final TestDatabase db = new TestDatabase().installed();

    private final RecordedEvents events = new RecordedEvents();

    @Configuration(proxyBeanMethods = false)
    static class Decisions {

        /** Uses the operations, which use it. */
        @Bean
        JobRecoveryHandler payments(JobQueries queries, WorkerOperations operations) {
            return (job, worker) -> {
                assertThat(queries.find(job.id())).isPresent();
                return job.taskIdentifier().equals("payment")
                        ? RecoveryDecision.failWithBackoff()
                        : RecoveryDecision.useDefault();
            };
        }
    }

    private ApplicationContextRunner application() {
        return db.runner()
                .withBean(Greetings.class)
                .withBean(RecordedEvents.class, () -> events)
                .withUserConfiguration(Decisions.class);
    }

    @Test
    void aWorkerRecoversUnlessToldOtherwiseAndAsksTheBeans(CapturedOutput output) {
        application()
                .withPropertyValues(
                        "pgworker.recovery.sweep-interval=100ms",
                        "pgworker.recovery.heartbeat-interval=100ms",
                        "pgworker.recovery.sweep-threshold=2s")
                .run(context -> {
                    killWorkerWithPayment(context.getBean(JobScheduler.class));

                    assertThat(events.await(JobRecovered.class).outcome()).isEqualTo(RecoveryOutcome.FAILED);
                });
        assertThat(output).doesNotContain(ADVICE);
    }

    @Test
    void aSweepByHandAsksTheBeansAndTellsThemWhenItIsCommitted() {
        application().withPropertyValues("pgworker.enabled=false").run(context -> {
            killWorkerWithPayment(context.getBean(JobScheduler.class));
            WorkerOperations operations = context.getBean(WorkerOperations.class);

            new TransactionTemplate(new JdbcTransactionManager(context.getBean(DataSource.class)))
                    .executeWithoutResult(status -> {
                        assertThat(operations.sweep(SweepOptions.DEFAULT).recoveredJobs())
                                .isEqualTo(1);
                        status.setRollbackOnly();
                    });
            assertThat(events.all(JobRecovered.class)).as("rolled back").isEmpty();
            assertThat(operations.sweep(SweepOptions.DEFAULT).recoveredJobs()).isEqualTo(1);

            DeadWorker dead = new DeadWorker("dead", DeadWorker.Reason.NO_HEARTBEAT, "admin");
            assertThat(events.all(JobRecovered.class))
                    .extracting(JobRecovered::workerId, JobRecovered::deadWorker)
                    .containsExactly(Assertions.tuple("admin", dead));
            assertThat(events.all(WorkersRecovered.class))
                    .containsExactly(new WorkersRecovered("admin", List.of(dead), 1));
            assertThat(db.sql("select attempts from {schema}.jobs")
                            .query(Integer.class)
                            .single())
                    .isEqualTo(1);
        });
    }

    @Test
    void withRecoveryDisabledTheStartSaysWhatThatMeans(CapturedOutput output) {
        application().withPropertyValues("pgworker.recovery.enabled=false").run(context -> {
            context.stop();
            context.start();
        });
        assertThat(output.getOut().split(ADVICE, -1)).hasSize(2);
    }

    private void killWorkerWithPayment(JobScheduler jobs) {
        jobs.addJob("payment");
        db.sql("update {schema}._private_jobs set locked_by = 'dead', locked_at = now(), attempts = 1")
                .update();
        db.sql(
                        "insert into {schema}._private_workers (id, last_heartbeat_at) values ('dead', now() - interval '1 hour')")
                .update();
    }
}
