package dev.pgworker;

import java.util.List;
import java.util.concurrent.TimeUnit;

import com.zaxxer.hikari.HikariDataSource;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.DisabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.jdbc.core.simple.JdbcClient;

import dev.pgworker.job.JobRequest;
import dev.pgworker.job.Task;
import dev.pgworker.limit.Limit;
import dev.pgworker.limit.LimitStatus.Phase;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testing.WorkerProcess;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

/** Processes that are killed while limits hold: a ledger says when each job ran. */
@DisabledOnOs(value = OS.WINDOWS, disabledReason = "needs the signals of kill")
@Tag("any-postgres")
@Tag("thorough")
class LimitKillTest {

    private static final Task<Work> WORK = Task.of("work", Work.class);
    private static final Limit LIMIT =
            Limit.concurrency("per tenant", 3, "work").per("tenant");

    @RegisterExtension
    final TestSchema db = new TestSchema(20);

    record Work(String tenant, int millis) {}

    /** A process that runs such jobs and notes when. */
    public static void main(String[] args) {
        HikariDataSource pool = new HikariDataSource(TestSchema.poolConfig(args[0], 12));
        worker(pool, new WorkerSchema(args[1])).build().start();
    }

    private static Worker.Builder worker(HikariDataSource pool, WorkerSchema schema) {
        JdbcClient sql = JdbcClient.create(pool);
        String begin = schema.in("insert into {schema}.ledger (job, tenant, worker) values (?, ?, ?)");
        String end = schema.in(
                "update {schema}.ledger set ended = clock_timestamp() where job = ? and worker = ? and ended is null");
        return Worker.builder(pool)
                .schema(schema)
                .limits(List.of(LIMIT))
                .settings(WorkerSettings.builder()
                        // So few that it takes all three to use all permits.
                        .concurrency(2)
                        .recovery(WorkerProcess.recovery())
                        .build())
                .task(WORK, (work, context) -> {
                    sql.sql(begin)
                            .params(context.job().id(), work.tenant, context.workerId())
                            .update();
                    TimeUnit.MILLISECONDS.sleep(work.millis);
                    sql.sql(end).params(context.job().id(), context.workerId()).update();
                });
    }

    private WorkerProcess start(String name) throws Exception {
        return WorkerProcess.start(
                LimitKillTest.class,
                db.schema().name() + "-" + name,
                TestPostgres.jdbcUrl(),
                db.schema().name());
    }

    @Test
    void permitsOfAKilledProcessComeBackAndNoneIsGivenTwice() throws Exception {
        db.sql("""
                create table {schema}.ledger (id int generated always as identity, job bigint, tenant text, worker text,
                  began timestamptz not null default clock_timestamp(), ended timestamptz, killed timestamptz)
                """).update();
        Worker here = db.start(worker(db.dataSource(), db.schema()));
        Awaitility.await()
                .until(() -> WorkerClient.jobLimits(db.dataSource(), db.schema())
                        .find(LIMIT.name())
                        .filter(status -> status.phase() == Phase.ACTIVE)
                        .isPresent());
        try (WorkerProcess first = start("first");
                WorkerProcess second = start("second")) {
            await("select count(*) = 3 from {schema}._private_workers");
            for (int round = 0; round < 25; round++) {
                db.scheduler()
                        .addJobs(List.of(
                                JobRequest.of(WORK, new Work("a", 400)),
                                JobRequest.of(WORK, new Work("a", 400)),
                                JobRequest.of(WORK, new Work("b", 250))));
            }
            await("select count(distinct worker) = 3 and count(*) > 10 from {schema}.ledger");
            await("select count(*) > 0 from {schema}.ledger where ended is null and worker <> '" + here.id() + "'");
            first.kill();
            second.kill();
            db.sql("update {schema}.ledger set killed = clock_timestamp() where ended is null and worker <> ?")
                    .param(here.id())
                    .update();
        }
        await("select count(*) = 0 from {schema}.jobs");
        assertThat(db.sql("select count(distinct job) from {schema}.ledger where ended is not null")
                        .query(Integer.class)
                        .single())
                .isEqualTo(75);
        assertThat(db.sql("select count(*) from {schema}.ledger where killed is not null")
                        .query(Integer.class)
                        .single())
                .isPositive();
        int most = db.sql("""
                with runs as (select l.tenant, l.began, coalesce(l.ended, l.killed) as ended from {schema}.ledger l)
                select max((select count(*) from runs o where o.tenant = r.tenant and o.began <= r.began and o.ended > r.began))
                from runs r
                """).query(Integer.class).single();
        assertThat(most).isEqualTo(3);
        assertThat(WorkerClient.jobLimits(db.dataSource(), db.schema()).list())
                .allMatch(totals -> totals.used() == 0 && totals.waiting() == 0);
    }

    private void await(String condition) {
        Awaitility.await().until(() -> db.sql(condition).query(Boolean.class).single());
    }
}
