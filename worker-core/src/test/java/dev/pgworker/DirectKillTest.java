package dev.pgworker;

import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;

import com.zaxxer.hikari.HikariDataSource;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.jdbc.core.simple.JdbcClient;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.recovery.RecoverySettings;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testing.WorkerProcess;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

/** Real processes that die in the middle of a direct batch. */
@Tag("any-postgres")
@Tag("thorough")
class DirectKillTest {

    private static final Task<Integer> DIRECT = Task.of("direct", Integer.class);

    /** The payload of a job that ends its process. */
    private static final int POISON = -1;

    /** The same before the job is noted: a note may take so long that the batch goes on without the handler. */
    private static final int POISON_AT_ONCE = -2;

    @RegisterExtension
    final TestSchema db = new TestSchema();

    @BeforeEach
    void createLedger() {
        WorkerProcess.createLedger(db);
    }

    /** What the processes run. */
    public static void main(String[] args) {
        HikariDataSource pool = new HikariDataSource(TestSchema.poolConfig(args[0], 12));
        WorkerSchema schema = new WorkerSchema(args[1]);
        JdbcClient sql = JdbcClient.create(pool);
        String note = schema.in("insert into {schema}.ledger (job, worker, what) values (?, ?, ?)");
        RecoverySettings recovery = WorkerProcess.recovery();
        Worker.builder(pool)
                .schema(schema)
                .settings(WorkerSettings.builder()
                        .recovery(RecoverySettings.builder()
                                .enabled(true)
                                .heartbeatInterval(recovery.heartbeatInterval())
                                .sweepInterval(recovery.sweepInterval())
                                .sweepThreshold(recovery.sweepThreshold())
                                .recoveryDelay(Duration.ZERO)
                                .maxRecoveries(1)
                                .build())
                        .build())
                .tasks(List.of(TaskRegistration.of(DIRECT, (payload, context) -> {
                            if (payload == POISON_AT_ONCE) {
                                Runtime.getRuntime().halt(9);
                            }
                            sql.sql(note)
                                    .params(
                                            context.job().id(),
                                            context.workerId(),
                                            Thread.currentThread().getName())
                                    .update();
                            if (payload == POISON) {
                                Runtime.getRuntime().halt(9);
                            }
                        })
                        .with(TaskOptions.DEFAULT.withDirect(true))))
                .build()
                .start();
    }

    private WorkerProcess start(String name) throws Exception {
        return WorkerProcess.start(
                DirectKillTest.class,
                db.schema().name() + "-" + name,
                TestPostgres.jdbcUrl(),
                db.schema().name());
    }

    private int count(String sql) {
        return db.sql(sql).query(Integer.class).single();
    }

    /** Returns jobs of which one is special: that at the place. */
    private static List<JobRequest> jobs(int number, int place, int special) {
        return IntStream.range(0, number)
                .mapToObj(i -> JobRequest.of(
                        DIRECT,
                        i == place ? special : i,
                        JobSpec.builder().maxAttempts(i == place ? 1 : 25).build()))
                .toList();
    }

    @Test
    void aJobThatEndsItsProcessIsBlamedAlone() throws Exception {
        List<Job> jobs = db.scheduler().addJobs(jobs(60, 30, POISON));
        long poison = jobs.get(30).id();
        int processes = 0;
        while (count("select count(*) from {schema}._private_jobs where is_available or locked_at is not null") > 0) {
            assertThat(++processes)
                    .as(() -> "processes; ledger "
                            + db.sql("select worker || ' ' || job || ' ' || what from {schema}.ledger order by id")
                                    .query(String.class)
                                    .list())
                    .isLessThanOrEqualTo(4);
            try (WorkerProcess process = start("poison-" + processes)) {
                Awaitility.await()
                        .until(() -> !process.isAlive()
                                || count("select count(*) from {schema}._private_jobs"
                                                + " where is_available or locked_at is not null")
                                        == 0);
            }
        }

        assertThat(db.sql("select id || ' ' || attempts || ' ' || left(last_error, 14) from {schema}._private_jobs")
                        .query(String.class)
                        .list())
                .containsExactly(poison + " 1 WorkerCrashed:");
        assertThat(count("select count(distinct job) from {schema}.ledger")).isEqualTo(60);
        assertThat(count("select count(*) from {schema}.ledger where job = " + poison + " and what like '%direct%'"))
                .as("runs of the poison in a batch")
                .isEqualTo(1);
        assertThat(count("select max(n) from (select count(*) n from {schema}.ledger where job <> " + poison
                        + " group by job) c"))
                .as("runs of any other")
                .isLessThanOrEqualTo(2);
    }

    @Test
    void theJobsOfAKilledProcessAreFreeAtOnceAndRunOneAfterTheOther() throws Exception {
        int killed = 0;
        do {
            db.sql("truncate {schema}._private_jobs, {schema}.pgworker_batches, {schema}._private_workers")
                    .update();
            // The first job takes long in a new process, and over 100 ms it goes on without its batch, claimed.
            db.scheduler().addJob(DIRECT, 0);
            try (WorkerProcess process = start("killed-" + ++killed)) {
                Awaitility.await().until(() -> db.jobs() == 0);
                db.scheduler().addJobs(jobs(10, 0, POISON_AT_ONCE));
                Awaitility.await().until(() -> !process.isAlive());
            }
            // So may any other on a machine that stands still: such a death is no death in a batch.
        } while (killed < 20 && count("select count(*) from {schema}._private_jobs where attempts > 0") > 0);
        db.sql("update {schema}._private_workers set last_heartbeat_at = now()").update();
        Awaitility.await()
                .until(() -> count("with f as (select from {schema}._private_jobs for update skip locked)"
                                + " select count(*) from f")
                        == 10);
        assertThat(count("select count(*) from {schema}._private_jobs where attempts = 0 and locked_at is null"))
                .isEqualTo(10);
        db.sql("update {schema}._private_jobs set payload = '1'").update();
        // A worker whose jobs have taken long takes few at a time.
        List<Long> broken = db.sql("select unnest(job_ids) from {schema}.pgworker_batches")
                .query(Long.class)
                .list();
        assertThat(broken).isNotEmpty();

        try (WorkerProcess process = start("next")) {
            Awaitility.await().until(() -> db.jobs() == 0);
            assertThat(process.isAlive()).isTrue();
        }
        assertThat(db.sql("select job from {schema}.ledger where worker = (select worker from {schema}.ledger"
                                + " order by id desc limit 1) and what not like '%direct%'")
                        .query(Long.class)
                        .list())
                .as("runs in the ordinary way")
                .containsAll(broken);
    }
}
