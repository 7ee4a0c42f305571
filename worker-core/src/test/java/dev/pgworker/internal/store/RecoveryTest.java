package dev.pgworker.internal.store;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLWarning;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import dev.pgworker.internal.jdbc.Connections;
import dev.pgworker.internal.store.SweepStore.Request;
import dev.pgworker.internal.store.SweepStore.Result;
import dev.pgworker.job.DeadWorker;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.recovery.RecoverySettings;
import dev.pgworker.task.JobRecoveryHandler;
import dev.pgworker.task.RecoveryDecision;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** What a recovery reads, what it leaves, and by what it judges. */
class RecoveryTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);

    private static final Request USUAL = Request.of(RecoverySettings.DEFAULT);

    private static final Request WITH_ORPHANS =
            Request.of(RecoverySettings.builder().orphans(true).build());

    @RegisterExtension
    final TestSchema db = new TestSchema();

    /** The statistics make the table look nearly empty, so that any plan over all of it looks cheap. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "select {schema}.force_unlock_workers(array['dead'])",
                "select {schema}.recover_dead_worker_jobs(array['dead'])",
                "select {schema}.pgworker_release_old_locks()",
                "select * from {schema}.list_orphan_locked_workers('5 minutes')",
                "sweep"
            })
    @Tag("thorough")
    void readsTheJobsOnceWhateverTheStatisticsSay(String what) throws Exception {
        int held = 400;
        db.sql(
                        "select count(*) from {schema}.add_jobs(array(select ('work', null, 'q' || i % 200, null, null, null, null, null)"
                                + "::{schema}.job_spec from generate_series(1, 20000) i))")
                .query()
                .singleRow();
        db.sql(
                        "update {schema}._private_jobs set locked_at = now() - interval '5 hours', locked_by = 'dead', attempts = 1"
                                + " where id <= " + held)
                .update();
        db.sql("update {schema}._private_job_queues set locked_at = now() - interval '5 hours', locked_by = 'dead'")
                .update();
        db.sql("update pg_class set reltuples = 10, relpages = 100000 where oid = '{schema}._private_jobs'::regclass")
                .update();

        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            List<Long> before = reads(statement);
            if (what.equals("sweep")) {
                Result result = store().sweep(connection, WITH_ORPHANS, "me");
                assertThat(result.jobs()).hasSize(held);
            } else {
                statement.execute(db.schema().in(what));
            }
            List<Long> after = reads(statement);
            assertThat(after.get(0) - before.get(0)).as("scans").isEqualTo(1);
            assertThat(after.get(1) - before.get(1)).as("rows of scans").isLessThanOrEqualTo(20_000);
            assertThat(after.get(2) - before.get(2)).as("rows by index").isLessThanOrEqualTo(20L * held);
            connection.commit();
        }
        if (!what.contains("list_")) {
            assertThat(count("_private_jobs where locked_by is not null")).isZero();
            assertThat(count("_private_job_queues where locked_by is not null")).isZero();
        }
    }

    /** Returns how many scans of the table, rows of these, and rows found by an index the session has to report so far. */
    private List<Long> reads(Statement statement) throws SQLException {
        try (ResultSet read = statement.executeQuery(db.schema().in("""
                select seq_scan, seq_tup_read, idx_tup_fetch from pg_stat_xact_user_tables
                where relid = '{schema}._private_jobs'::regclass"""))) {
            read.next();
            return List.of(read.getLong(1), read.getLong(2), read.getLong(3));
        }
    }

    @Test
    void aJobThatIsSkippedKeepsItsQueueAndItsWorkersRegistrationUntilItIsTaken() throws Exception {
        Job skipped = add("a");
        add("b");
        claimAs("dead");
        db.sql(
                        "insert into {schema}._private_job_queues (queue_name, locked_at, locked_by) values ('idle', now(), 'dead')")
                .update();
        register("dead", null, "6 minutes");

        Result first = sweep(
                USUAL,
                (job, worker) -> job.id() == skipped.id() ? RecoveryDecision.skip() : RecoveryDecision.useDefault());

        assertThat(first.worthTelling()).isTrue();
        assertThat(first.jobs()).hasSize(1);
        assertThat(lockedQueues()).containsExactly("a");
        assertThat(row(skipped)).containsEntry("locked_by", "dead");
        assertThat(new WorkerStore(db.dataSource(), db.schema()).heartbeat("dead", "{}", false))
                .as("it is told")
                .isFalse();
        assertThat(sweep(USUAL.ofTheNewlyDead()).workers()).isEmpty();
        Result again = sweep(USUAL, (job, worker) -> RecoveryDecision.skip());
        assertThat(again.workerIds()).containsExactly("dead");
        assertThat(again.worthTelling()).isFalse();

        assertThat(sweep(USUAL).jobs()).hasSize(1);
        assertThat(lockedQueues()).isEmpty();
        assertThat(count("_private_workers")).isZero();
    }

    @Test
    void aJobWhoseRowSomebodyHoldsKeepsItsQueueUntilTheNextSweep() throws Exception {
        Job held = add("a");
        add("b");
        claimAs("dead");
        register("dead", "{\"pid\": 1}", "6 minutes");
        try (Connection other = db.dataSource().getConnection();
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute(
                    db.schema().in("select from {schema}._private_jobs where id = " + held.id() + " for update"));
            assertThat(sweep(USUAL).jobs()).hasSize(1);
            other.rollback();
        }
        assertThat(lockedQueues()).containsExactly("a");

        assertThat(sweep(USUAL).jobs()).hasSize(1);
        assertThat(lockedQueues()).isEmpty();
        assertThat(count("_private_workers")).isZero();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            nullValues = "none",
            value = {
                // Its own threshold, though the sweeping worker's is longer or shorter.
                "{'heartbeatIntervalMillis': 1000, 'sweepThresholdMillis': 60000, 'resilientSweepThresholdMillis': 60000} | 61 s | true",
                "{'heartbeatIntervalMillis': 1000, 'sweepThresholdMillis': 60000, 'resilientSweepThresholdMillis': 60000} | 50 s | false",
                "{'heartbeatIntervalMillis': 1000, 'sweepThresholdMillis': 7200000, 'resilientSweepThresholdMillis': 7200000} | 1 h | false",
                "{'heartbeatIntervalMillis': 1000, 'sweepThresholdMillis': 7200000, 'resilientSweepThresholdMillis': 7200000} | 3 h | true",
                // None, or none that makes sense: ten minutes, the greater one.
                "none | 9 min | false",
                "none | 11 min | true",
                "{'pid': 1} | 9 min | false",
                "{'pid': 1} | 11 min | true",
                "[] | 11 min | true",
                "\"text\" | 11 min | true",
                "{'sweepThresholdMillis': 60000} | 9 min | false",
                "{'heartbeatIntervalMillis': 1000, 'sweepThresholdMillis': 1e300, 'resilientSweepThresholdMillis': 1e300} | 11 min | true",
                "{'heartbeatIntervalMillis': 1000, 'sweepThresholdMillis': -5, 'resilientSweepThresholdMillis': 5} | 9 min | false",
                "{'heartbeatIntervalMillis': 30000, 'sweepThresholdMillis': 31000, 'resilientSweepThresholdMillis': 31000} | 9 min | false",
                "{'heartbeatIntervalMillis': '1', 'sweepThresholdMillis': [1], 'resilientSweepThresholdMillis': {}} | 9 min | false",
                "{'heartbeatIntervalMillis': 1000, 'sweepThresholdMillis': 60000, 'resilientSweepThresholdMillis': 5} | 9 min | false",
            })
    void aWorkerIsJudgedByWhatItPublishesIfThatMakesSense(String metadata, String age, boolean dead) throws Exception {
        Request request = Request.of(RecoverySettings.builder()
                .sweepThreshold(Duration.ofMinutes(2))
                .peerThreshold(Duration.ofMinutes(10))
                .build());
        register("w", metadata == null ? null : metadata.replace('\'', '"'), age);

        assertThat(sweep(request).workers())
                .isEqualTo(dead ? List.of(new DeadWorker("w", DeadWorker.Reason.NO_HEARTBEAT, "me")) : List.of());
    }

    @Test
    void anOrphanIsCalledOne() throws Exception {
        add("a");
        claimAs("orphan");
        db.sql("update {schema}._private_jobs set locked_at = now() - interval '6 minutes'")
                .update();

        assertThat(sweep(USUAL).workers()).isEmpty();
        List<DeadWorker> told = new ArrayList<>();
        Result result = sweep(WITH_ORPHANS, (job, worker) -> {
            told.add(worker);
            return RecoveryDecision.useDefault();
        });

        assertThat(result.workers())
                .containsExactly(new DeadWorker("orphan", DeadWorker.Reason.ORPHAN_LOCK, "me"))
                .isEqualTo(told);
    }

    @Test
    void theServerEndsAStatementBeforeItsClientGivesUp() throws Exception {
        Job job = add("a");
        claimAs("dead");
        register("dead", null, "6 minutes");
        SweepStore hurried =
                new SweepStore(db.dataSource(), db.schema(), List.of(), Duration.ofSeconds(5), Duration.ofMillis(200));
        try (Connection other = db.dataSource().getConnection();
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute(db.schema().in("lock table {schema}._private_jobs in exclusive mode"));
            assertThatThrownBy(() -> hurried.sweep(USUAL, "me"))
                    .isInstanceOf(SQLException.class)
                    .satisfies(e -> assertThat(((SQLException) e).getSQLState()).isEqualTo("57014"));
            other.rollback();
        }
        assertThat(row(job)).containsEntry("locked_by", "dead");
        assertThat(store().sweep(USUAL, "me").jobs()).hasSize(1);
    }

    @Test
    void aStatementThatMayReadAllJobsIsEndedByTheServerBeforeItsClientGivesUp() throws Exception {
        int seconds = Connections.call(
                db.dataSource(),
                "select 1",
                Duration.ofMinutes(1),
                (connection, statement) -> statement.getQueryTimeout());
        int brief = Connections.call(
                db.dataSource(),
                "select 1",
                Duration.ofSeconds(10),
                (connection, statement) -> statement.getQueryTimeout());

        assertThat(seconds).isEqualTo(59);
        assertThat(brief).isEqualTo(9);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "+10000-01-01T00:00:00Z",
                "+294276-12-31T23:59:59Z",
                "-4712-01-01T00:00:00Z",
                "0000-06-01T00:00:00Z"
            })
    void aTimeOfAnyYearThatTheDatabaseHoldsIsStored(String at) throws Exception {
        Job job = add("a");
        claimAs("dead");
        register("dead", null, "6 minutes");

        sweep(USUAL, (j, worker) -> RecoveryDecision.reschedule(Instant.parse(at)));

        assertThat(db.sql("select extract(epoch from run_at)::bigint from {schema}.jobs where id = ?")
                        .param(job.id())
                        .query(Long.class)
                        .single())
                .isEqualTo(Instant.parse(at).getEpochSecond());
    }

    @Test
    void aTimeThatTheDatabaseCannotHoldCostsItsOwnDecision() throws Exception {
        Job bad = add("a");
        Job good = add("b");
        claimAs("dead");
        register("dead", null, "6 minutes");

        Result result = sweep(
                USUAL,
                (job, worker) -> RecoveryDecision.reschedule(job.id() == bad.id() ? Instant.MAX : Instant.EPOCH));

        assertThat(result.jobs()).hasSize(2);
        assertThat(row(bad)).containsEntry("last_error", "Job recovered after worker interruption");
        assertThat(db.sql("select run_at from {schema}.jobs where id = ?")
                        .param(good.id())
                        .query(Instant.class)
                        .single())
                .isEqualTo(Instant.EPOCH);
    }

    /** A job is taken for retired here as soon as its row is locked, as one is that a Rust worker retires at the last moment. */
    @Test
    void whatARustWorkerHasRetiredIsReadWhenTheJobsAreLocked() throws Exception {
        db.sql("create view {schema}._private_job_retirements as"
                        + " select id from {schema}._private_jobs where xmax::text <> '0'")
                .update();
        add("a");
        claimAs("dead");
        db.sql("update {schema}._private_jobs set attempts = max_attempts, key = null")
                .update();
        // Which takes away what the update has locked.
        db.sql("vacuum (freeze) {schema}._private_jobs").update();
        assertThat(count("_private_job_retirements")).isZero();

        assertThat(db.sql("select outcome from {schema}.pgworker_recover(array['dead'],"
                                + " array(select id from {schema}._private_jobs), null, '0', 3)")
                        .query(String.class)
                        .list())
                .containsExactly("superseded");
    }

    @Test
    void anyNumberOfAttemptsHasABackOff() {
        Job job = add("a");
        claimAs("dead");
        db.sql("update {schema}._private_jobs set attempts = -32768").update();

        db.sql("select * from {schema}.pgworker_recover(array['dead'], array[?], null, '0', 3, array['fail'])")
                .param(job.id())
                .query()
                .listOfRows();

        assertThat(db.sql("select extract(epoch from run_at - updated_at)::int from {schema}.jobs")
                        .query(Integer.class)
                        .single())
                .isEqualTo(1);
    }

    /** A trigger or a constraint of somebody's stands in the way of unlocking one job. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "trigger refuse before||raise exception 'not this one'",
                "trigger refuse before||raise exception 'not this one' using errcode = '53100'",
                "trigger refuse before||return null",
                "constraint trigger refuse after|deferrable initially deferred|raise exception 'not this one'"
            })
    void aJobThatCannotBeUnlockedKeepsNoOtherLocked(String trigger) throws Exception {
        Job refused = add("a");
        Job other = add("b");
        claimAs("dead");
        register("dead", "{}", "1 hour");
        String[] parts = trigger.split("\\|", 3);
        db.sql("""
                create function {schema}.refuse() returns trigger language plpgsql as $$
                begin
                  if old.id = %s then %s; end if;
                  return new;
                end $$;
                create %s update on {schema}._private_jobs %s for each row execute function {schema}.refuse()
                """.formatted(refused.id(), parts[2], parts[0], parts[1])).update();

        assertThat(sweep(USUAL).jobs()).extracting(one -> one.job().id()).containsExactly(other.id());
        assertThat(lockedQueues()).containsExactly("a");
        db.sql("drop trigger refuse on {schema}._private_jobs").update();
        assertThat(sweep(USUAL).jobs()).extracting(one -> one.job().id()).containsExactly(refused.id());
        assertThat(lockedQueues()).isEmpty();
        assertThat(count("_private_workers")).isZero();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "force_unlock_workers(array['dead'])",
                "pgworker_release_old_locks()",
                "recover_dead_worker_jobs(array['dead'])"
            })
    void aJobThatCannotBeUnlockedKeepsNoOtherLockedWhoeverAsks(String call) throws SQLException {
        Job refused = add("a");
        add("b");
        claimAs("dead");
        db.sql("update {schema}._private_jobs set locked_at = now() - interval '5 hours'")
                .update();
        db.sql("""
                create function {schema}.refuse() returns trigger language plpgsql as $$
                begin
                  if old.id = %s then raise exception 'not this one'; end if;
                  return new;
                end $$;
                create trigger refuse before update on {schema}._private_jobs for each row execute function {schema}.refuse()
                """.formatted(refused.id())).update();

        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute(db.schema().in("select * from {schema}." + call));
            if (!call.startsWith("pgworker_")) {
                SQLWarning warning = statement.getWarnings();
                assertThat(warning.getMessage()).isEqualTo("Job " + refused.id() + " stays locked: not this one");
                assertThat(warning.getNextWarning() == null).isTrue();
            }
        }

        assertThat(db.sql("select id from {schema}.jobs where locked_by is not null")
                        .query(Long.class)
                        .list())
                .containsExactly(refused.id());
        assertThat(lockedQueues()).containsExactly("a");
    }

    /** They say something else when they are the server's own. */
    @ParameterizedTest
    @CsvSource({
        "force_unlock_workers(array['dead']), 40001",
        "force_unlock_workers(array['dead']), 40P01",
        "force_unlock_workers(array['dead']), 57014",
        "pgworker_release_old_locks(), 40001",
        "pgworker_release_old_locks(), 57014",
        "recover_dead_worker_jobs(array['dead']), 40001",
        "recover_dead_worker_jobs(array['dead']), 57014"
    })
    void aConflictOrCancellationThatATriggerRaisesKeepsNoOtherLocked(String call, String errorCode) {
        Job refused = add("a");
        for (String queue : List.of("b", "c", "d")) {
            add(queue);
        }
        claimAs("dead");
        db.sql("update {schema}._private_jobs set locked_at = now() - interval '5 hours'")
                .update();
        db.sql("update {schema}._private_job_queues set locked_at = now() - interval '5 hours'")
                .update();
        db.sql("""
                create function {schema}.refuse() returns trigger language plpgsql as $$
                begin raise exception 'not this one' using errcode = '%2$s'; end $$;
                create trigger refuse before update on {schema}._private_jobs
                  for each row when (old.id = %1$s) execute function {schema}.refuse();
                create trigger refuse before update on {schema}._private_job_queues
                  for each row when (old.queue_name = 'c') execute function {schema}.refuse()
                """.formatted(refused.id(), errorCode)).update();

        db.sql("select * from {schema}." + call).query().listOfRows();

        assertThat(db.sql("select id from {schema}.jobs where locked_by is not null")
                        .query(Long.class)
                        .list())
                .containsExactly(refused.id());
        assertThat(lockedQueues()).containsExactlyInAnyOrder("a", "c");
    }

    @ParameterizedTest
    @CsvSource({
        "force_unlock_workers(array['dead']), true",
        "force_unlock_workers(array['dead']), false",
        "recover_dead_worker_jobs(array['dead']), true",
        "recover_dead_worker_jobs(array['dead']), false"
    })
    void aCancellationEndsTheStatementWhateverATriggerIsAt(String call, boolean byLimit) throws Exception {
        for (String queue : List.of("a", "b", "c", "d")) {
            add(queue);
        }
        claimAs("dead");
        db.sql("""
                create function {schema}.wait() returns trigger language plpgsql as $$
                begin perform pg_sleep(300); return new; end $$;
                create trigger wait before update on {schema}._private_jobs for each row execute function {schema}.wait()
                """).update();
        long begin = System.nanoTime();
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            if (byLimit) {
                statement.execute("set statement_timeout = '300ms'");
            } else {
                new Thread(() -> Awaitility.await()
                                .until(() ->
                                        db.sql("""
                                        select pg_cancel_backend(pid) from pg_stat_activity
                                        where wait_event = 'PgSleep' and query like '%{schema}%'
                                        """).query(Boolean.class).list().size() == 1))
                        .start();
            }
            assertThatThrownBy(() -> statement.execute(db.schema().in("select {schema}." + call)))
                    .isInstanceOf(SQLException.class)
                    .satisfies(e -> assertThat(((SQLException) e).getSQLState()).isEqualTo("57014"));
            statement.execute("reset statement_timeout");
        }
        assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofMinutes(4));
        assertThat(lockedQueues()).hasSize(4);
    }

    /** The order in which the others start again is that of the claims. */
    @Test
    void severalOfManyJobsThatCannotBeUnlockedKeepNoOtherLocked() throws Exception {
        List<Long> ids = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            ids.add(add("q" + i % 3).id());
        }
        claimAs("dead");
        register("dead", "{}", "1 hour");
        List<Long> refused = List.of(ids.get(2), ids.get(3), ids.get(16));
        db.sql("""
                create function {schema}.refuse() returns trigger language plpgsql as $$
                begin
                  if old.id in (%s, %s, %s) then raise exception 'not this one'; end if;
                  return new;
                end $$;
                create trigger refuse before update on {schema}._private_jobs for each row execute function {schema}.refuse()
                """.formatted(refused.toArray())).update();
        List<Long> others = new ArrayList<>(ids);
        others.removeAll(refused);

        assertThat(sweep(USUAL).jobs()).extracting(one -> one.job().id()).containsExactlyInAnyOrderElementsOf(others);
        assertThat(db.sql("select id from {schema}.jobs where locked_by is null order by run_at, id")
                        .query(Long.class)
                        .list())
                .isEqualTo(others);

        claimAsUnless("dead", refused);
        db.sql("select {schema}.force_unlock_workers(array['dead'])").query().listOfRows();

        assertThat(db.sql("select id from {schema}.jobs where locked_by is not null order by id")
                        .query(Long.class)
                        .list())
                .isEqualTo(refused);
    }

    @ParameterizedTest
    @ValueSource(strings = {"force_unlock_workers(array['dead'])", "recover_dead_worker_jobs(array['dead'])"})
    void aQueueThatCannotBeFreedKeepsNoJobAndNoOtherQueueLocked(String call) {
        add("a");
        add("b");
        claimAs("dead");
        db.sql("""
                create function {schema}.refuse() returns trigger language plpgsql as $$
                begin
                  if new.locked_by is null and old.queue_name = 'a' then raise exception 'not this one'; end if;
                  return new;
                end $$;
                create trigger refuse before update on {schema}._private_job_queues for each row execute function {schema}.refuse()
                """).update();

        db.sql("select {schema}." + call).query().listOfRows();

        assertThat(db.sql("select count(*) from {schema}.jobs where locked_by is not null")
                        .query(Integer.class)
                        .single())
                .isZero();
        assertThat(lockedQueues()).containsExactly("a");
    }

    private void claimAsUnless(String worker, List<Long> ids) {
        db.sql("update {schema}._private_jobs set locked_at = now(), locked_by = :worker where id not in (:ids)")
                .param("worker", worker)
                .param("ids", ids)
                .update();
    }

    private SweepStore store(JobRecoveryHandler... handlers) {
        return new SweepStore(db.dataSource(), db.schema(), List.of(handlers));
    }

    private Result sweep(Request request, JobRecoveryHandler... handlers) throws SQLException {
        return store(handlers).sweep(request, "me");
    }

    private Job add(String queue) {
        return db.scheduler().addJob(WORK, 1, JobSpec.builder().queueName(queue).build());
    }

    private void claimAs(String worker) {
        db.sql("update {schema}._private_jobs set locked_at = now(), locked_by = ?, attempts = 1")
                .param(worker)
                .update();
        db.sql("update {schema}._private_job_queues set locked_at = now(), locked_by = ?")
                .param(worker)
                .update();
    }

    private void register(String worker, String metadata, String age) {
        db.sql("""
                        insert into {schema}._private_workers (id, last_heartbeat_at, metadata)
                        values (?, now() - ?::interval, ?::jsonb)""").params(worker, age, metadata).update();
    }

    private List<String> lockedQueues() {
        return db.sql("select queue_name from {schema}._private_job_queues where locked_by is not null")
                .query(String.class)
                .list();
    }

    private Map<String, Object> row(Job job) {
        return db.sql("select attempts, last_error, locked_by from {schema}.jobs where id = ?")
                .param(job.id())
                .query()
                .singleRow();
    }

    private long count(String from) {
        return db.sql("select count(*) from {schema}." + from).query(Long.class).single();
    }
}
