package dev.pgworker;

import java.sql.Connection;
import java.sql.Statement;
import java.util.Objects;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.internal.watch.PauseWatch;
import dev.pgworker.job.Task;
import dev.pgworker.testing.LogCapture;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** Somebody has locked the table of pauses. */
@Tag("thorough")
class LockedPausesTest {

    private static final Task<Integer> TASK = Task.of("task", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema(10);

    private final RecordingListener events = new RecordingListener();

    private static WorkerStatus status(Worker worker) {
        return Objects.requireNonNull(worker.status());
    }

    @Test
    void aWorkerThatStartsMeanwhileStartsNoJobsAndSaysWhy() throws Exception {
        try (LogCapture log = new LogCapture(PauseWatch.class);
                Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.execute(db.schema().in("lock table {schema}.pgworker_pauses in access exclusive mode"));
            db.scheduler().addJob(TASK, 1);

            Worker worker = db.start(db.worker().task(TASK, (n, context) -> {}).listener(events));

            Awaitility.await()
                    .untilAsserted(() -> assertThat(log.messages())
                            .anyMatch(line -> line.contains(
                                    "pgworker_pauses cannot be read, so this worker starts no jobs yet")));
            assertThat(db.jobs()).isEqualTo(1);
            assertThat(status(worker).heldUp())
                    .singleElement()
                    .asString()
                    .contains("pgworker_pauses cannot be read", "pg_locks");
            Awaitility.await()
                    .untilAsserted(() -> assertThat(status(worker).stall()).contains("pgworker_pauses cannot be read"));

            connection.commit();
            events.await(JobCompleted.class);
            Awaitility.await().untilAsserted(() -> {
                assertThat(status(worker).heldUp()).isEmpty();
                assertThat(status(worker).stall()).isNull();
            });
        }
    }
}
