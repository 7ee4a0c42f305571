package dev.pgworker;

import java.sql.Connection;
import java.sql.Statement;
import java.util.concurrent.CountDownLatch;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobStarted;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** Somebody has locked the table of queues, as one who creates an index on it, or holds rows of queues or of their jobs. */
@Tag("thorough")
class LockedQueuesTest {

    private static final Task<Integer> TASK = Task.of("task", Integer.class);

    private static final int QUEUES = 200;

    @RegisterExtension
    final TestSchema db = new TestSchema(10);

    private final RecordingListener events = new RecordingListener();

    @Test
    void jobsWithoutAQueueRunMeanwhile() throws Exception {
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            for (int i = 0; i < QUEUES; i++) {
                JobSpec.Builder first =
                        JobSpec.builder().queueName("queue-" + i).priority(-1);
                db.scheduler().addJob(TASK, i, first.build());
            }
            Job other = db.scheduler().addJob(TASK, QUEUES);
            connection.setAutoCommit(false);
            statement.execute(db.schema().in("lock table {schema}._private_job_queues in share mode"));

            db.start(db.worker().task(TASK, (n, context) -> {}).listener(events));

            events.await(JobCompleted.class, e -> e.job().id() == other.id());
            assertThat(db.jobs()).isEqualTo(QUEUES);

            connection.commit();
            events.await(JobCompleted.class, QUEUES + 1);
        }
    }

    /** There are more of these than one claim asks for, and they come first. */
    @ParameterizedTest
    @ValueSource(strings = {"_private_jobs", "_private_job_queues"})
    void queuesOfWhichRowsAreHeldKeepNoOthersWaiting(String table) throws Exception {
        int others = 20;
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            addToQueues(0, QUEUES);
            connection.setAutoCommit(false);
            statement.execute(db.schema().in("select from {schema}." + table + " for update"));
            addToQueues(QUEUES, others);

            db.start(db.worker().task(TASK, (n, context) -> {}).listener(events));

            events.await(JobCompleted.class, others);
            assertThat(events.all(JobCompleted.class))
                    .allMatch(e -> Integer.parseInt(e.job().queueName().substring("queue-".length())) >= QUEUES);

            connection.commit();
            events.await(JobCompleted.class, QUEUES + others);
        }
    }

    /** Nobody but a sweep frees that queue later, which looks at the registered workers first. */
    @Test
    void aWorkerThatCannotFreeAQueueStaysRegisteredWhenItStops() throws Exception {
        CountDownLatch mayEnd = new CountDownLatch(1);
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            addToQueues(0, 1);
            Worker worker = db.start(
                    db.worker().task(TASK, (n, context) -> mayEnd.await()).listener(events));
            events.await(JobStarted.class);
            connection.setAutoCommit(false);
            statement.execute(db.schema().in("lock table {schema}._private_job_queues in share mode"));
            mayEnd.countDown();
            events.await(JobCompleted.class);

            worker.stop();

            assertThat(db.sql(
                                    "select count(*) from {schema}._private_job_queues q join {schema}._private_workers w on w.id = q.locked_by")
                            .query(Long.class)
                            .single())
                    .isOne();
        }
    }

    private void addToQueues(int first, int amount) {
        for (int i = first; i < first + amount; i++) {
            db.scheduler()
                    .addJob(TASK, i, JobSpec.builder().queueName("queue-" + i).build());
        }
    }
}
