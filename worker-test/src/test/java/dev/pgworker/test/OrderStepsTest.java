package dev.pgworker.test;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.jdbc.support.JdbcTransactionManager;

import dev.pgworker.job.Job;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.step.JobStep;
import dev.pgworker.step.JobSuspended;
import dev.pgworker.task.JobHandlerMethods;
import dev.pgworker.test.OrderSteps.Approval;
import dev.pgworker.test.OrderSteps.Approvals;
import dev.pgworker.test.OrderSteps.Charge;
import dev.pgworker.test.OrderSteps.Order;
import dev.pgworker.test.OrderSteps.OrderHandler;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

class OrderStepsTest {

    private static WorkerSchema schema;

    private final List<String> done = new ArrayList<>();
    private boolean mailFails;

    private final OrderHandler handler = new OrderHandler(
            (order, key) -> {
                done.add("charge " + order.id());
                return new Charge(key);
            },
            (order, charge, approval) -> done.add("book " + order.id() + " for " + approval.by()),
            order -> {
                done.add("thank " + order.id());
                if (mailFails) {
                    throw new IllegalStateException("no mail today");
                }
            });

    private TestWorker worker;

    @BeforeAll
    static void install() {
        schema = WorkerDatabase.newSchema();
    }

    @AfterAll
    static void uninstall() {
        WorkerDatabase.drop(schema);
    }

    @BeforeEach
    void create() {
        worker = TestWorker.create(
                WorkerDatabase.dataSource(),
                schema,
                builder -> builder.tasks(JobHandlerMethods.find(handler))
                        .transactionManager(new JdbcTransactionManager(WorkerDatabase.dataSource())));
        worker.clear();
    }

    @AfterEach
    void stop() {
        worker.close();
    }

    @Test
    void anOrderIsChargedOnceAndGoesOnWhenItIsApproved() {
        Job job = worker.jobScheduler().addJob("order", new Order(7, 1_000));

        assertThat(worker.runDue()).hasRun("order").isSnoozed();
        assertThat(worker.steps(job)).extracting(JobStep::name).containsExactly("charge", "approval-7");
        assertThat(worker.runDue()).isEmpty();

        new Approvals(worker.signals()).approve(7, "ann");
        JobRuns afterApproval = worker.runDue();
        assertThat(worker.steps(afterApproval.list().get(0)))
                .isEqualTo(new RunSteps(List.of("book", "cool-down"), List.of("charge", "approval-7")));

        mailFails = true;
        worker.advance(Duration.ofHours(1));
        assertThat(worker.runDue()).hasRun("order").isRetrying();
        mailFails = false;
        worker.advance(Duration.ofMinutes(1));
        assertThat(worker.runDue()).allCompleted();
        assertThat(done).containsExactly("charge 7", "book 7 for ann", "thank 7", "thank 7");
    }

    @Test
    void withoutADatabaseTheRecordIsWhatTheTestSays() throws Exception {
        TestJobContext begun = TestJobContext.of("order", new Order(7, 1_000));
        assertThatThrownBy(() -> begun.run(handler)).isInstanceOf(JobSuspended.class);
        assertThat(begun.runSteps().ran()).containsExactly("charge");

        TestJobContext later = TestJobContext.builder("order", new Order(7, 1_000))
                .recorded("charge", new Charge("c1"))
                .recorded("approval-7", new Approval("ann"))
                .recorded("cool-down", null)
                .build();
        later.run(handler);

        assertThat(later.runSteps())
                .isEqualTo(new RunSteps(List.of("book", "thank"), List.of("charge", "approval-7", "cool-down")));
        assertThat(done).containsExactly("charge 7", "book 7 for ann", "thank 7");
    }
}
