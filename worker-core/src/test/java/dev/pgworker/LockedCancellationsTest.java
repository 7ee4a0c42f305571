package dev.pgworker;

import java.sql.Connection;
import java.sql.Statement;
import java.sql.Timestamp;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CountDownLatch;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.event.WorkerEvent.JobCancelled;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobStarted;
import dev.pgworker.internal.watch.CancelWatch;
import dev.pgworker.job.Task;
import dev.pgworker.recovery.RecoverySettings;
import dev.pgworker.testing.LogCapture;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** Somebody has locked the table of cancellations. */
@Tag("thorough")
class LockedCancellationsTest {

    private static final Task<Integer> TASK = Task.of("task", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema(10);

    private final RecordingListener events = new RecordingListener();

    @Test
    void workersLiveAndWorkOnAndSayWhatDoesNotHappen() throws Exception {
        CountDownLatch end = new CountDownLatch(1);
        Worker worker = db.start(db.worker()
                .settings(WorkerSettings.builder()
                        .recovery(RecoverySettings.builder()
                                .heartbeatInterval(Duration.ofMillis(200))
                                .build())
                        .build())
                .task(TASK, (n, context) -> {
                    if (n == 1) {
                        end.await();
                    }
                })
                .listener(events));
        String id = worker.id();
        long cancelled = db.scheduler().addJob(TASK, 1).id();
        events.await(JobStarted.class);
        try (LogCapture log = new LogCapture(CancelWatch.class);
                Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.execute(db.schema().in("lock table {schema}.pgworker_cancellations in access exclusive mode"));
            Awaitility.await()
                    .untilAsserted(() -> assertThat(log.messages())
                            .anyMatch(line -> line.contains("pgworker_cancellations cannot be read")));
            Instant told = db.queries().now();
            Awaitility.await()
                    .until(() -> db.sql("select last_heartbeat_at > ? from {schema}._private_workers where id = ?")
                            .params(Timestamp.from(told), id)
                            .query(Boolean.class)
                            .single());
            db.scheduler().addJob(TASK, 2);
            events.await(JobCompleted.class);
            connection.commit();
            assertThat(log.messages()).hasSize(1);
        }
        db.changes().cancel(List.of(cancelled));
        events.await(JobCancelled.class);
        assertThat(worker.id()).isEqualTo(id);
    }
}
