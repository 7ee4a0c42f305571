package dev.pgworker;

import java.io.IOException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobHandle;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobResultException;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.limit.JobLimits;
import dev.pgworker.limit.Limit;
import dev.pgworker.testing.ClaimSql;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Each role of the guide does all that it is for, and nothing else. */
@Tag("any-postgres")
class GuideRolesTest {

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private String name;
    private HikariDataSource role;

    private void role(String inGuide) throws IOException, SQLException {
        name = GuideRoles.create(db.dataSource(), db.schema(), inGuide);
        HikariConfig config = TestSchema.poolConfig(TestPostgres.jdbcUrl(), 10);
        config.setConnectionInitSql("set role " + name);
        role = new HikariDataSource(config);
    }

    @AfterEach
    void drop() {
        role.close();
        db.sql("drop owned by " + name).update();
        db.sql("drop role " + name).update();
    }

    private void refuses(String... statements) throws SQLException {
        try (Connection connection = role.getConnection();
                Statement statement = connection.createStatement()) {
            for (String text : statements) {
                assertThatThrownBy(() -> statement.execute(db.schema().in(text)))
                        .as(text)
                        .isInstanceOf(SQLException.class)
                        .hasMessageContaining("permission denied");
            }
        }
    }

    private void refusesToChangeTheSchema() throws SQLException {
        refuses(
                "create table {schema}.mine (id int)",
                "truncate {schema}._private_jobs",
                "insert into {schema}.migrations (id) values (99)",
                "update {schema}.worker_flyway_history set success = false");
        try (Connection connection = role.getConnection();
                Statement statement = connection.createStatement()) {
            for (String text : List.of(
                    "alter table {schema}._private_jobs disable row level security",
                    "create policy mine on {schema}._private_jobs using (true)",
                    "drop function {schema}.pgworker_wake(bigint, timestamptz, text)",
                    "create or replace function {schema}.pgworker_wake(job_count bigint, earliest timestamptz default null, priorities text default null) returns void language sql as ''")) {
                assertThatThrownBy(() -> statement.execute(db.schema().in(text)))
                        .as(text)
                        .isInstanceOf(SQLException.class);
            }
        }
    }

    @Test
    void whoAddsJobsDoesNothingElse() throws Exception {
        role("adder");

        GuideRoles.add(role, db.schema());

        refusesToChangeTheSchema();
        refuses(
                "select * from " + ClaimSql.claim("'me'", "1") + " c",
                "update {schema}._private_jobs set locked_by = 'me', locked_at = now()",
                "update {schema}._private_job_queues set locked_by = 'me'",
                "update {schema}._private_tasks set identifier = 'other'",
                "delete from {schema}._private_jobs",
                "delete from {schema}._private_tasks",
                "select {schema}.complete_jobs(array[1])",
                "select {schema}.remove_job('k')",
                "select {schema}.pgworker_cancel_jobs(array[1])",
                "select {schema}.pgworker_cancel_key('k')",
                "select {schema}.pgworker_tend_cancellations()",
                "select {schema}.reschedule_jobs(array[1])",
                "select {schema}.force_unlock_workers(array['w'])",
                "select {schema}.worker_heartbeat('me')",
                "select * from {schema}._private_workers",
                "select * from {schema}._private_known_crontabs",
                "insert into {schema}.pgworker_paused_crontabs (identifier) values ('nightly')",
                "select {schema}.pgworker_pause('queue', 'q')",
                "select {schema}.pgworker_resume('task', 'work')",
                "select {schema}.pgworker_put_schedule('nightly', 'work', cron => '@daily')",
                "select * from {schema}.pgworker_schedules",
                "do $$ begin lock table {schema}._private_jobs in access exclusive mode; end $$");
    }

    @Test
    void whoAddsJobsNeedsNoRightOnTheSequence() throws Exception {
        role("adder");
        db.sql("revoke usage on all sequences in schema {schema} from " + name).update();

        GuideRoles.add(role, db.schema());
    }

    @Test
    void whoAddsJobsWaitsForTheirResultsAndReadsNoOthers() throws Exception {
        role("adder");
        JobHandle<Void> handle =
                WorkerClient.jobScheduler(role, db.schema(), db.codec()).addJobForResult("work", null, Void.class);

        db.changes().remove(List.of(handle.jobId()));

        assertThatThrownBy(() -> handle.await(Duration.ofMinutes(2)))
                .isInstanceOf(JobResultException.class)
                .hasMessageContaining("has been removed");
        refuses(
                "select * from {schema}.pgworker_ends",
                "update {schema}.pgworker_ends set outcome = null",
                "select {schema}.pgworker_tend_ends()",
                "select {schema}.pgworker_awaited(1, 2)",
                "select {schema}.pgworker_write_ends(true, array[1], null, null, null)");
    }

    @Test
    void whoOnlyLooksSeesNoResults() throws Exception {
        role("viewer");

        refuses("select * from {schema}.pgworker_ends", "select {schema}.pgworker_results(array[1])");
    }

    @Test
    void whoAddsJobsMayCancelTheRunningHolderOfAKey() throws Exception {
        role("adder");
        JobSpec keyed = JobSpec.builder()
                .jobKey("k")
                .jobKeyMode(JobKeyMode.REPLACE_AND_CANCEL)
                .build();
        Job running = db.scheduler().addJob("work", null, keyed);
        db.sql("update {schema}._private_jobs set locked_at = now(), locked_by = 'w', attempts = 1")
                .update();

        WorkerClient.jobScheduler(role, db.schema(), db.codec()).addJob("work", null, keyed);

        assertThat(db.queries().cancellations(List.of(running.id()))).hasSize(1);
    }

    @Test
    @Tag("thorough")
    void aWorkerDoesNothingElse() throws Exception {
        role("worker");

        GuideRoles.work(db.dataSource(), role, db.schema());
        GuideRoles.add(role, db.schema());

        refusesToChangeTheSchema();
        refuses(
                "insert into {schema}.pgworker_paused_crontabs (identifier) values ('nightly')",
                "select {schema}.pgworker_pause('task', 'work')",
                "select {schema}.pgworker_pause('queue', 'q')",
                "delete from {schema}._private_tasks",
                "delete from {schema}._private_job_queues",
                "delete from {schema}._private_known_crontabs",
                "select setval(pg_get_serial_sequence('{schema}._private_jobs', 'id'), 1)");
    }

    @Test
    void anOperatorDoesNothingElse() throws Exception {
        role("operator");

        GuideRoles.operate(db.dataSource(), role, db.schema());

        refusesToChangeTheSchema();
        db.scheduler().addJob("known", null, JobSpec.DEFAULT);
        refuses(
                "select {schema}.add_job('known')",
                "select {schema}.add_job('another')",
                "insert into {schema}._private_tasks (identifier) values ('mine')",
                "update {schema}._private_tasks set identifier = 'mine'",
                "insert into {schema}._private_known_crontabs values ('mine', now(), null)",
                "select {schema}.pgworker_put_schedule('nightly', 'work', cron => '@daily')",
                "update {schema}.pgworker_schedules set task_identifier = 'mine'",
                "select {schema}.worker_heartbeat('me')");
    }

    @Test
    void whoManagesSchedulesDoesNothingElse() throws Exception {
        role("scheduler");

        GuideRoles.schedule(role, db.schema());

        refusesToChangeTheSchema();
        refuses(
                "select {schema}.add_job('known')",
                "select * from {schema}._private_jobs",
                "insert into {schema}.pgworker_paused_crontabs (identifier) values ('nightly')",
                "select {schema}.worker_heartbeat('me')");
    }

    @Test
    void aViewerDoesNothingElse() throws Exception {
        role("viewer");
        db.scheduler().addJob("work", "secret", JobSpec.builder().jobKey("k").build());
        JobLimits limits = WorkerClient.jobLimits(db.dataSource(), db.schema());
        limits.put(Limit.concurrency("one", 1, "limited").per("tenant"));
        long limited =
                db.scheduler().addJob("limited", Map.of("tenant", "secret")).id();

        GuideRoles.view(role, db.schema());

        assertThat(WorkerClient.jobQueries(role, db.schema()).backlog().ready()).isEqualTo(1);
        assertThat(WorkerClient.jobQueries(role, db.schema())
                        .waitOf(limited)
                        .orElseThrow()
                        .text())
                .contains("limit \"one\"")
                .doesNotContain("secret");
        JobLimits seen = WorkerClient.jobLimits(role, db.schema());
        assertThat(seen.list()).hasSize(1);
        assertThatThrownBy(() -> seen.usage("one", null, 10)).hasMessageContaining("permission denied");
        refusesToChangeTheSchema();
        refuses(
                "select payload from {schema}._private_jobs",
                "select * from {schema}._private_jobs",
                "select {schema}.add_job('work')",
                "select {schema}.add_job('another')",
                "select {schema}.remove_job('k')",
                "select {schema}.complete_jobs(array[1])",
                "select * from " + ClaimSql.claim("'me'", "1") + " c",
                "update {schema}._private_jobs set priority = 1",
                "delete from {schema}._private_jobs",
                "delete from {schema}._private_workers",
                "update {schema}.pgworker_schedules set paused_at = now()",
                "insert into {schema}.pgworker_paused_crontabs (identifier) values ('nightly')");
        assertThatThrownBy(() -> WorkerClient.jobQueries(role, db.schema()).find(1))
                .isInstanceOf(DataAccessException.class)
                .hasMessageContaining("permission denied");
    }

    @Test
    void readingNeitherWritesNorLocks() throws Exception {
        role("viewer");
        db.sql("grant select (payload) on {schema}._private_jobs to " + name).update();
        db.scheduler()
                .addJob(
                        "work",
                        "secret",
                        JobSpec.builder().jobKey("k").queueName("q").build());
        TransactionTemplate readOnly = new TransactionTemplate(new JdbcTransactionManager(role));
        readOnly.setReadOnly(true);

        readOnly.executeWithoutResult(status -> {
            assertThat(JdbcClient.create(role)
                            .sql("show transaction_read_only")
                            .query(String.class)
                            .single())
                    .isEqualTo("on");
            GuideRoles.look(WorkerClient.jobQueries(role, db.schema()), null);
            GuideRoles.view(role, db.schema());
            assertThat(JdbcClient.create(role)
                            .sql("select count(*) from pg_locks where pid = pg_backend_pid() and locktype = 'relation'"
                                    + " and mode <> 'AccessShareLock'")
                            .query(Long.class)
                            .single())
                    .isZero();
        });
    }

    /** As the other Graphile Workers leave their tables, and whatever default privileges say. */
    @Test
    void whatIsGrantedToARoleByDefaultShowsItNoJob() throws Exception {
        role("viewer");
        db.scheduler().addJob("work", "secret", JobSpec.DEFAULT);
        db.sql("select name from {schema}.pgworker_put_limit('l', '{work}', max_running => 1)")
                .query()
                .listOfRows();
        for (int i = 0; i < 3; i++) {
            db.sql("select {schema}.pgworker_apply_limits()").query().listOfRows();
        }
        db.sql("drop owned by " + name).update();
        db.sql("grant usage on schema {schema} to " + name).update();
        db.sql("grant select, insert, update, delete on all tables in schema {schema} to " + name)
                .update();
        db.sql("grant execute on all functions in schema {schema} to " + name).update();

        try (Connection connection = role.getConnection();
                Statement statement = connection.createStatement();
                var rows = statement.executeQuery(db.schema().in("select count(*) from {schema}._private_jobs"))) {
            rows.next();
            assertThat(rows.getInt(1)).isZero();
            try (var claimed = statement.executeQuery(db.schema()
                    .in(
                            "select count(c.id) from {schema}.pgworker_claim_limited(row('me', array[1], null, null, null, true,"
                                    + " null, null)::{schema}.pgworker_request, 10) c"))) {
                claimed.next();
                assertThat(claimed.getInt(1)).isZero();
            }
        }
        assertThat(db.sql("select count(*) from {schema}._private_jobs where {schema}.pgworker_parked(locked_at)")
                        .query(Integer.class)
                        .single())
                .isOne();
    }

    @Test
    void whoAddsJobsOfLimitedTasksSeesNothingOfOtherJobs() throws Exception {
        role("adder");
        WorkerClient.jobLimits(db.dataSource(), db.schema())
                .put(Limit.concurrency("l", 1, "work").per("card"));
        JobSpec keyed = JobSpec.builder().jobKey("k").build();

        for (int i = 0; i < 2; i++) {
            WorkerClient.jobScheduler(role, db.schema(), db.codec()).addJob("work", new Card("4711"), keyed);
        }

        assertThat(db.sql("select count(*) from {schema}._private_jobs where {schema}.pgworker_parked(locked_at)")
                        .query(Integer.class)
                        .single())
                .isOne();
        refuses(
                "select * from {schema}.pgworker_limit_arrivals",
                "select * from {schema}.pgworker_limit_lanes",
                "select * from {schema}.pgworker_limit_buckets",
                "select * from {schema}.pgworker_limit_salt",
                "select * from {schema}.pgworker_limit_usage('l')",
                "select * from {schema}.pgworker_job_limits(1)",
                "select {schema}.pgworker_put_limit('m', '{work}', max_running => 1)",
                "select {schema}.pgworker_delete_limit('l')",
                "select {schema}.pgworker_apply_limits()",
                "select {schema}.pgworker_claim_limited(null, 1)");
    }

    /** They have the rights of the owner, and what a table of somebody's is made of may be functions of theirs. */
    @Test
    void triggersOfLimitsDoNothingForTablesOfOthers() throws Exception {
        role("worker");
        try (Connection connection = role.getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute(
                    "create temp table mine (id int, task_id int, attempts int, max_attempts int, payload json)");
            statement.execute("insert into mine values (1)");
            statement.execute(db.schema()
                    .in("create trigger park before insert on mine for each row execute function"
                            + " {schema}.pgworker_park()"));
            statement.execute(db.schema()
                    .in("create trigger keep before delete on mine for each row execute function"
                            + " {schema}.pgworker_keep_task()"));
            for (String change : List.of("insert into mine values (1)", "delete from mine")) {
                assertThatThrownBy(() -> statement.execute(change)).hasMessageContaining("Only ");
            }
        }
    }

    record Card(String card) {}

    /** A worker whose role may not put a limit that its application declares leaves the limit's tasks to others, and says so. */
    @Test
    void whoMayNotPutALimitRunsNoJobOfItsTasks() throws Exception {
        role("worker");
        String right = "execute on function {schema}.pgworker_put_limit";
        db.sql("revoke " + right + " from " + name).update();
        AtomicInteger running = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        RecordingListener events = new RecordingListener();
        Worker worker = db.start(Worker.builder(role)
                .schema(db.schema())
                .listener(events)
                .limits(List.of(Limit.concurrency("one", 1, "limited")))
                .task(Task.of("limited", Integer.class), (number, context) -> {
                    most.accumulateAndGet(running.incrementAndGet(), Math::max);
                    TimeUnit.MILLISECONDS.sleep(5);
                    running.decrementAndGet();
                })
                .task(Task.of("free", Integer.class), (number, context) -> {}));
        for (int i = 0; i < 20; i++) {
            Job unused = db.scheduler().addJob("limited", i, JobSpec.DEFAULT);
            unused = db.scheduler().addJob("free", i, JobSpec.DEFAULT);
        }
        events.await(JobCompleted.class, 20);
        Awaitility.await()
                .untilAsserted(
                        () -> assertThat(Objects.requireNonNull(worker.status()).heldUp())
                                .singleElement()
                                .asString()
                                .contains("\"one\"", "[limited]", "permission denied", "docs/schema.md"));
        assertThat(most).hasValue(0);

        db.sql("grant " + right + " to " + name).update();

        events.await(JobCompleted.class, 40);
        assertThat(most).hasValue(1);
        assertThat(Objects.requireNonNull(worker.status()).heldUp()).isEmpty();
    }
}
