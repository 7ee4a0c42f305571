package dev.pgworker;

import java.io.IOException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.jdbc.support.JdbcTransactionManager;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobSnoozed;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.JobWait;
import dev.pgworker.job.Task;
import dev.pgworker.step.JobStep;
import dev.pgworker.step.StepSettings;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Each role of the guide does with steps and signals what it is for, and nothing else. */
@Tag("any-postgres")
class StepRolesTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final RecordingListener events = new RecordingListener();

    private final List<String> names = new ArrayList<>();
    private final List<HikariDataSource> pools = new ArrayList<>();
    private final List<Worker> workers = new ArrayList<>();

    private HikariDataSource role(String inGuide) throws IOException, SQLException {
        String name = GuideRoles.create(db.dataSource(), db.schema(), inGuide);
        names.add(name);
        HikariConfig config = TestSchema.poolConfig(TestPostgres.jdbcUrl(), 6);
        config.setConnectionInitSql("set role " + name);
        HikariDataSource pool = new HikariDataSource(config);
        pools.add(pool);
        return pool;
    }

    @AfterEach
    void drop() {
        workers.forEach(Worker::stop);
        pools.forEach(HikariDataSource::close);
        for (String name : names) {
            db.sql("drop owned by " + name).update();
            db.sql("drop role " + name).update();
        }
    }

    private static void refuses(HikariDataSource role, String statement) throws SQLException {
        try (Connection connection = role.getConnection();
                Statement sql = connection.createStatement()) {
            assertThatThrownBy(() -> sql.execute(statement)).as(statement).hasMessageContaining("permission denied");
        }
    }

    private String in(String statement) {
        return db.schema().in(statement);
    }

    @Test
    void eachDoesWhatItIsForAndNothingElse() throws Exception {
        HikariDataSource worker = role("worker");
        HikariDataSource adder = role("adder");
        HikariDataSource operator = role("operator");
        HikariDataSource viewer = role("viewer");
        Worker running = Worker.builder(worker)
                .schema(db.schema())
                .transactionManager(new JdbcTransactionManager(worker))
                .task(WORK, (n, context) -> {
                    String unused = context.steps().run("secret", String.class, step -> "secret");
                    context.steps().inTransaction("nothing", () -> {});
                    context.steps().await("go", Duration.ofDays(1));
                })
                .listener(events)
                .build();
        workers.add(running);
        running.start();
        JobSpec spec = JobSpec.builder().jobKey("k").build();
        Job job = WorkerClient.jobScheduler(adder, db.schema(), db.codec()).addJob(WORK, 1, spec);
        JobSnoozed snoozed = events.await(JobSnoozed.class);
        assertThat(snoozed.job().id()).isEqualTo(job.id());

        assertThat(WorkerClient.jobQueries(viewer, db.schema()).steps(job.id(), false))
                .extracting(JobStep::name)
                .containsExactly("secret", "nothing", "go");
        assertThat(WorkerClient.jobQueries(viewer, db.schema())
                        .waitOf(job.id())
                        .orElseThrow()
                        .reason())
                .isEqualTo(JobWait.Reason.SIGNAL);
        assertThatThrownBy(() -> WorkerClient.jobQueries(viewer, db.schema()).steps(job.id(), true))
                .hasMessageContaining("permission denied");
        assertThat(WorkerClient.jobQueries(operator, db.schema()).steps(job.id(), true))
                .extracting(JobStep::result)
                .contains("\"secret\"");
        refuses(viewer, in("select {schema}.pgworker_signal('go')"));
        refuses(adder, in("select * from {schema}.pgworker_steps"));
        refuses(adder, in("select * from {schema}.pgworker_signals"));
        refuses(adder, in("delete from {schema}.pgworker_signals"));
        refuses(operator, in("update {schema}.pgworker_steps set result = null"));

        // What the role has no right on goes on with the job all the same.
        Job same = WorkerClient.jobScheduler(adder, db.schema(), db.codec())
                .addJob(
                        WORK,
                        2,
                        JobSpec.builder()
                                .jobKey("k")
                                .jobKeyMode(JobKeyMode.UNSAFE_DEDUPE)
                                .build());
        assertThat(same.revision()).isEqualTo(1);
        assertThat(WorkerClient.jobQueries(operator, db.schema()).steps(job.id(), false))
                .hasSize(3);

        WorkerClient.jobSignals(adder, db.schema(), db.codec(), StepSettings.DEFAULT)
                .send("go", null);
        events.await(JobCompleted.class);
        WorkerClient.jobSignals(operator, db.schema(), db.codec(), StepSettings.DEFAULT)
                .send("go", null);
    }

    @Test
    void theTriggerOfStepsDoesNothingForTablesOfOthers() {
        db.sql("create table {schema}.other (id bigint, revision int)").update();
        db.sql("create trigger other after update on {schema}.other for each row execute function"
                        + " {schema}.pgworker_keep_steps()")
                .update();
        db.sql("insert into {schema}.other values (1, 1)").update();

        assertThatThrownBy(
                        () -> db.sql("update {schema}.other set revision = 2").update())
                .rootCause()
                .hasMessageContaining("Only jobs keep their steps");
    }
}
