package dev.pgworker.step;

import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;

import com.zaxxer.hikari.HikariDataSource;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.condition.DisabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.jdbc.support.JdbcTransactionManager;

import dev.pgworker.Worker;
import dev.pgworker.WorkerSettings;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.job.Job;
import dev.pgworker.job.Task;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.JobContext;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testing.WorkerProcess;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

/** A process that is killed, or stands still for longer than its lease, at every point of a job of several steps, whose effects are counted. */
@DisabledOnOs(value = OS.WINDOWS, disabledReason = "needs the signals of kill")
@Tag("any-postgres")
@Tag("thorough")
class StepKillTest {

    private static final Task<String> ORDER = Task.of("order", String.class);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final RecordingListener events = new RecordingListener();

    @BeforeEach
    void createLedger() {
        WorkerProcess.createLedger(db);
    }

    /** Stops where the payload says, if this is a process to be killed, until it is. */
    private static void order(
            String place, JobContext context, JdbcClient sql, WorkerSchema schema, boolean stops, String url)
            throws InterruptedException {
        String note = schema.in("insert into {schema}.ledger (job, worker, what) values (?, ?, ?)");
        Point point = at -> {
            if (stops && at.equals(place)) {
                // Beside a transaction that is open.
                JdbcClient.create(new DriverManagerDataSource(url))
                        .sql(note)
                        .params(context.job().id(), context.workerId(), "at " + at)
                        .update();
                TimeUnit.MINUTES.sleep(10);
            }
        };
        JobSteps steps = context.steps();
        point.reach("before charge");
        String key = steps.run("charge", String.class, step -> {
            sql.sql(note)
                    .params(context.job().id(), step.idempotencyKey(), "charge")
                    .update();
            point.reach("after effect of charge");
            return step.idempotencyKey();
        });
        point.reach("after record of charge");
        steps.inTransaction("book", () -> {
            sql.sql(note).params(context.job().id(), key, "book").update();
            point.reach("in transaction of book");
        });
        point.reach("after book");
        steps.sleep("pause", Duration.ofMillis(1));
        point.reach("after sleep");
        steps.run("mail", step -> {
            sql.sql(note).params(context.job().id(), key, "mail").update();
            point.reach("after effect of mail");
        });
        point.reach("at the end");
    }

    @FunctionalInterface
    private interface Point {
        void reach(String place) throws InterruptedException;
    }

    private static Worker.Builder worker(HikariDataSource pool, WorkerSchema schema, boolean stops) {
        JdbcClient sql = JdbcClient.create(pool);
        return Worker.builder(pool)
                .schema(schema)
                .transactionManager(new JdbcTransactionManager(pool))
                .settings(WorkerSettings.builder()
                        .concurrency(1)
                        .recovery(WorkerProcess.recovery())
                        .build())
                .task(ORDER, (place, context) -> order(place, context, sql, schema, stops, pool.getJdbcUrl()));
    }

    /** A worker that stops where its jobs say. */
    public static void main(String[] args) {
        HikariDataSource pool = new HikariDataSource(TestSchema.poolConfig(args[0], 6));
        worker(pool, new WorkerSchema(args[1]), true).build().start();
    }

    private WorkerProcess start(String name) throws Exception {
        return WorkerProcess.start(
                StepKillTest.class,
                db.schema().name() + "-" + name,
                TestPostgres.jdbcUrl(),
                db.schema().name());
    }

    private List<String> ledger(String what) {
        return db.sql("select worker from {schema}.ledger where what = ?")
                .param(what)
                .query(String.class)
                .list();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "before charge",
                "after effect of charge",
                "after record of charge",
                "in transaction of book",
                "after book",
                "after sleep",
                "after effect of mail",
                "at the end"
            })
    void eachStepHasItsEffectsOnceUnlessTheProcessDiedBetweenEffectAndRecord(String place) throws Exception {
        try (WorkerProcess process = start("killed")) {
            Job job = db.scheduler().addJob(ORDER, place);
            awaitPlace(place);
            process.kill();
            db.start(worker(db.dataSource(), db.schema(), false).listener(events));
            assertThat(events.await(JobCompleted.class).job().id()).isEqualTo(job.id());
        }
        assertEffects(place.equals("after effect of charge"), place.equals("after effect of mail"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"after effect of charge", "in transaction of book", "after book"})
    void aProcessThatStoodStillForTooLongWritesNothingWhenItComesBack(String place) throws Exception {
        try (WorkerProcess process = start("paused")) {
            db.scheduler().addJob(ORDER, place);
            awaitPlace(place);
            process.pause();
            db.start(worker(db.dataSource(), db.schema(), false).listener(events));
            events.await(JobCompleted.class);
            long steps = db.sql("select count(*) from {schema}._private_workers")
                    .query(Long.class)
                    .single();
            process.resume();
            Awaitility.await("it starts over")
                    .until(() -> db.sql("select count(*) from {schema}._private_workers")
                                            .query(Long.class)
                                            .single()
                                    > steps
                            || !process.isAlive());
        }
        assertEffects(place.equals("after effect of charge"), false);
    }

    private void awaitPlace(String place) {
        Awaitility.await("process that is " + place)
                .until(() -> !ledger("at " + place).isEmpty());
    }

    private void assertEffects(boolean chargedTwice, boolean mailedTwice) {
        assertThat(ledger("charge")).hasSize(chargedTwice ? 2 : 1);
        assertThat(Set.copyOf(ledger("charge"))).as("idempotency keys").hasSize(1);
        assertThat(ledger("book")).isEqualTo(List.of(ledger("charge").get(0)));
        assertThat(ledger("mail")).hasSize(mailedTwice ? 2 : 1);
    }
}
