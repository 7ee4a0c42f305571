package dev.pgworker;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.PauseBegan;
import dev.pgworker.job.PauseTarget;
import dev.pgworker.job.Task;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testing.WorkerProcess;

import static org.assertj.core.api.Assertions.assertThat;

/** A process is killed while its task is paused. */
@Tag("thorough")
class PauseKillTest {

    private static final Task<Integer> OTHER = Task.of("other", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema(20);

    private final RecordingListener events = new RecordingListener();

    @Test
    void aPauseOutlivesKilledProcesses() throws Exception {
        WorkerProcess.createLedger(db);
        try (WorkerProcess process = WorkerProcess.start(db.schema(), "pause-1")) {
            db.scheduler().addJob(WorkerProcess.SLEEP, 60_000);
            Awaitility.await().until(() -> ledger() == 1);
            db.operations().pause(PauseTarget.task("sleep"), "the partner is down");
            process.kill();
        }
        db.scheduler().addJob(WorkerProcess.SLEEP, 0);
        db.start(WorkerProcess.worker(db.dataSource(), db.schema())
                .task(OTHER, (n, context) -> {})
                .listener(events));
        events.await(PauseBegan.class);
        // The job of the killed worker is recovered, and paused like the others.
        Awaitility.await().until(() -> locked() == 0);
        db.scheduler().addJob(OTHER, 1);
        events.await(JobCompleted.class, event -> event.job().taskIdentifier().equals("other"));

        assertThat(ledger()).isEqualTo(1);
        db.sql("update {schema}._private_jobs set payload = '0', run_at = now()")
                .update();
        db.operations().resume(PauseTarget.task("sleep"));
        events.await(JobCompleted.class, 3);
    }

    private int ledger() {
        return db.sql("select count(*) from {schema}.ledger where what = 'start'")
                .query(Integer.class)
                .single();
    }

    private int locked() {
        return db.sql("select count(*) from {schema}._private_jobs where locked_at is not null")
                .query(Integer.class)
                .single();
    }
}
