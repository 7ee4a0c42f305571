package dev.pgworker;

import java.sql.Connection;
import java.sql.Statement;
import java.time.Duration;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobSnoozed;
import dev.pgworker.event.WorkerEvent.ListenerConnected;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.step.JobSignals;
import dev.pgworker.step.StepSettings;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

/** Somebody has locked the table of steps. */
@Tag("thorough")
class LockedStepsTest {

    private static final Task<Integer> STEPS = Task.of("steps", Integer.class);

    private static final Task<Integer> OTHER = Task.of("other", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema(20);

    private final RecordingListener events = new RecordingListener();

    @Test
    void jobsWithoutStepsRunAndTheOthersGoOnAfterwards() throws Exception {
        db.start(db.worker()
                .task(STEPS, (n, context) -> context.steps().await("go", Duration.ofDays(1)))
                .task(OTHER, (n, context) -> {})
                .listener(events));
        events.await(ListenerConnected.class);
        db.scheduler().addJob(STEPS, 1);
        events.await(JobSnoozed.class);
        JobSignals signals = WorkerClient.jobSignals(db.dataSource(), db.schema(), db.codec(), StepSettings.DEFAULT);
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.execute(db.schema().in("lock table {schema}.pgworker_steps in access exclusive mode"));

            signals.send("go", null);
            for (int i = 0; i < 3; i++) {
                db.scheduler()
                        .addJob(
                                OTHER,
                                i,
                                JobSpec.builder()
                                        .jobKey("k")
                                        .jobKeyMode(JobKeyMode.REPLACE)
                                        .build());
                events.await(JobCompleted.class, i + 1);
            }
            connection.commit();
            events.await(JobCompleted.class, 4);
        }
    }
}
