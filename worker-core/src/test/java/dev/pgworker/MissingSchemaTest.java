package dev.pgworker;

import java.time.Duration;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.internal.failure.Failures;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.job.Task;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.testing.LogCapture;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** A worker without a schema to work on. */
class MissingSchemaTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final RecordingListener events = new RecordingListener();

    /** As a schema of an older version lacks something. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "alter type {schema}.pgworker_request rename to former",
                "alter function {schema}.pgworker_look({schema}.pgworker_request, {schema}.pgworker_floor[]) rename to former"
            })
    void anOlderOneIsToldAsWell(String older) {
        db.sql(older).update();
        try (LogCapture log = new LogCapture(Outage.class)) {
            Worker worker = db.start(db.worker().task(WORK, (n, context) -> {}));
            Awaitility.await().until(() -> worker.status().stall() != null);
            assertThat(worker.status().stall()).contains("not up to date", "pgworker.schema.mode=migrate");
            assertThat(log.messages())
                    .singleElement()
                    .asString()
                    .startsWith("No job can run: the schema is not installed, or not up to date");
        }
    }

    @Test
    void isToldOnceWithTheRemedyAndWorksWhenThereIsOne() {
        db.sql("drop schema {schema} cascade").update();
        try (LogCapture log = new LogCapture(Outage.class);
                LogCapture failures = new LogCapture(Failures.class)) {
            Worker worker = db.start(db.worker()
                    .listener(events)
                    .settings(WorkerSettings.builder()
                            .pollInterval(Duration.ofMillis(200))
                            .build())
                    .task(WORK, (n, context) -> {}));
            Awaitility.await().until(() -> worker.status().stall() != null);

            assertThat(worker.status().outage()).isFalse();
            assertThat(worker.status().stall())
                    .contains("the schema is not installed", db.schema().name(), "pgworker.schema.mode=migrate");

            new SchemaMigrator(db.dataSource(), db.schema()).migrate();
            db.scheduler().addJob(WORK, 1);
            events.await(JobCompleted.class);
            Awaitility.await().until(() -> log.messages().size() == 2);

            assertThat(worker.status().stall()).isNull();
            assertThat(log.messages().get(0)).startsWith("No job can run: the schema is not installed");
            assertThat(log.messages().get(1)).isEqualTo("The schema can be used");
            assertThat(failures.messages()).isEmpty();
        }
    }
}
