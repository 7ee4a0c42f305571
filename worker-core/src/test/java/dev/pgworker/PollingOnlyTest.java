package dev.pgworker;

import java.time.Duration;
import java.util.List;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.ListenerConnecting;
import dev.pgworker.event.WorkerEvent.SchemaMigrated;
import dev.pgworker.event.WorkerEvent.WorkerStarted;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testing.LogCapture;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** A worker that does not listen. */
@Tag("any-postgres")
class PollingOnlyTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final RecordingListener events = new RecordingListener();

    private Worker start(TaskOptions options, Duration pollInterval) {
        TaskRegistration task = TaskRegistration.of(WORK, (n, context) -> {});
        Worker worker = db.start(db.worker()
                .settings(WorkerSettings.builder()
                        .listen(false)
                        .pollInterval(pollInterval)
                        .build())
                .listener(events)
                .tasks(List.of(task.with(options))));
        events.await(WorkerStarted.class);
        return worker;
    }

    @Test
    void findsJobsOfEachKindAtThePollInterval() {
        Worker worker = start(TaskOptions.DEFAULT, Duration.ofMillis(100));
        for (int round = 0; round < 5; round++) {
            db.scheduler().addJob(WORK, 1);
            db.scheduler().addJob(WORK, 2, JobSpec.builder().queueName("q").build());
            db.scheduler().addJob(WORK, 3, JobSpec.builder().priority(-round).build());
            // Lies below everything that claims have seen.
            db.sql("select {schema}.add_job('work', '4', run_at => now() - interval '1 day')")
                    .query()
                    .singleRow();
            db.scheduler()
                    .addJob(
                            WORK,
                            5,
                            JobSpec.builder().runIn(Duration.ofMillis(250)).build());
            events.await(JobCompleted.class, 5 * (round + 1));
        }

        assertThat(worker.status().listening()).isFalse();
        assertThat(worker.status().pollingOnly()).isTrue();
        assertThat(worker.isListeningOnDataSource()).isFalse();
        assertThat(events.all(ListenerConnecting.class)).isEmpty();
        assertThat(db.sql(
                                "select count(*) from pg_stat_activity where query like 'listen %' and datname = current_database()")
                        .query(Integer.class)
                        .single())
                .isZero();
    }

    @Test
    @Tag("thorough")
    void findsDirectJobsAndMigrations() {
        start(TaskOptions.DEFAULT.withDirect(true), Duration.ofMillis(100));

        db.scheduler().addJob(WORK, 1);
        events.await(JobCompleted.class);
        db.sql("insert into {schema}.migrations (id, breaking) values (23, false)")
                .update();

        assertThat(events.await(SchemaMigrated.class).migration()).isEqualTo(23);
    }

    @Test
    void saysSoOnce() {
        try (LogCapture log = new LogCapture(RunningWorker.class)) {
            start(TaskOptions.DEFAULT, Duration.ofSeconds(2));

            assertThat(log.messages())
                    .filteredOn(
                            line -> line.contains("does not listen for notifications (pgworker.listen.enabled=false)"))
                    .singleElement()
                    .asString()
                    .endsWith("it looks for jobs every 2000 ms");
        }
    }

    @Test
    void needsOneConnectionLess() {
        Worker.Builder builder = db.worker().task(WORK, (n, context) -> {});
        int listening = builder.build().connectionsNeeded();

        assertThat(builder.settings(WorkerSettings.builder().listen(false).build())
                        .build()
                        .connectionsNeeded())
                .isEqualTo(listening - 1);
    }
}
