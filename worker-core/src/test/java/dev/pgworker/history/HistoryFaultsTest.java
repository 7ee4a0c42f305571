package dev.pgworker.history;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import org.awaitility.Awaitility;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.jdbc.support.JdbcTransactionManager;

import dev.pgworker.Worker;
import dev.pgworker.WorkerClient;
import dev.pgworker.WorkerSettings;
import dev.pgworker.WorkerStatus;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.event.WorkerEvent.JobStarted;
import dev.pgworker.internal.watch.HistoryKeeper;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.Task;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.TaskHandler;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testing.LogCapture;
import dev.pgworker.testing.OwnDatabase;
import dev.pgworker.testing.OwnThread;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** The history never keeps a job from ending, and is kept for a time and a number. */
@Tag("thorough")
@Tag("any-postgres")
class HistoryFaultsTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final RecordingListener events = new RecordingListener();

    private void start(TaskHandler<Integer> handler) {
        HistorySettings on = HistorySettings.builder().enabled(true).build();
        db.start(db.worker()
                .settings(WorkerSettings.builder().history(on).build())
                .listener(events)
                .tasks(List.of(TaskRegistration.of(WORK, handler))));
    }

    private Job run(int payload) {
        Job job = db.scheduler().addJob(WORK, payload);
        events.await(JobCompleted.class, event -> event.job().id() == job.id());
        return job;
    }

    private List<HistoryEntry> of(Job job) {
        return db.queries().history().of(job.id());
    }

    private void update(String sql) {
        db.sql(sql).update();
    }

    private void keep(@Nullable String keepFor, @Nullable Long keepMost) {
        db.sql("select {schema}.pgworker_keep_history(true, ?::text::interval, ?::bigint, null)")
                .params(Arrays.asList(keepFor, keepMost))
                .query(Boolean.class)
                .single();
    }

    private void tend() {
        update("update {schema}.pgworker_history_settings set tended_at = '-infinity'");
        db.sql("select {schema}.pgworker_tend_history()").query().listOfRows();
    }

    private long kept() {
        return db.sql("select count(*) from {schema}.pgworker_history")
                .query(Long.class)
                .single();
    }

    /** Ends jobs by hand, which is one statement each. */
    private void end(int jobs) {
        List<Long> ids = db
                .scheduler()
                .addJobs(WORK, IntStream.range(0, jobs).boxed().toList())
                .stream()
                .map(Job::id)
                .toList();
        assertThat(db.changes().complete(ids)).hasSize(jobs);
    }

    /** A session with a transaction that stays open. */
    private final class Session implements AutoCloseable {

        private final Connection connection;

        Session(String sql) throws SQLException {
            connection = DriverManager.getConnection(TestPostgres.jdbcUrl());
            connection.setAutoCommit(false);
            execute(sql);
        }

        void execute(String sql) throws SQLException {
            try (Statement statement = connection.createStatement()) {
                statement.execute(db.schema().in(sql));
            }
        }

        void awaitThatSomebodyWaits(Duration atLeast) {
            Awaitility.await()
                    .until(() -> db.sql("""
                            select coalesce(max(clock_timestamp() - l.waitstart) > ?::text::interval, false)
                            from pg_locks l join pg_stat_activity a on a.pid = l.pid
                            where not l.granted and a.query like '%{schema}%'
                            """)
                            .param(atLeast.toString())
                            .query(Boolean.class)
                            .single());
        }

        @Override
        public void close() throws SQLException {
            connection.close();
        }
    }

    /** Has nobody give up because the machine is slow, or shows that nobody waits. */
    private void waitForLocks(String limit) {
        update("alter function {schema}.pgworker_record_deleted() set lock_timeout = '" + limit + "'");
        update("alter function {schema}.pgworker_record_updated() set lock_timeout = '" + limit + "'");
    }

    /** A session that fails rather than hang. */
    private Session impatient() throws SQLException {
        Session session = new Session("set statement_timeout = '30s'");
        session.connection.commit();
        return session;
    }

    private @Nullable HistoryLosses losses() {
        return db.queries().history().status().losses();
    }

    @Test
    void aMomentsLockOnTheHistoryLosesNoEntry() throws Exception {
        assertThat(db.sql(
                                "select proconfig::text from pg_proc where oid = '{schema}.pgworker_record_updated()'::regprocedure")
                        .query(String.class)
                        .single())
                .contains("lock_timeout=900ms");
        waitForLocks("10min");
        start((payload, context) -> {});
        Job job;
        try (Session maintenance = new Session("lock table {schema}.pgworker_history in access exclusive mode")) {
            job = db.scheduler().addJob(WORK, 1);
            maintenance.awaitThatSomebodyWaits(Duration.ofMillis(100));
        }
        events.await(JobCompleted.class);

        assertThat(of(job)).hasSize(1);
        assertThat(losses()).isNull();
    }

    /** The lock of the extension of a table cannot be held by a test; another one that an insert waits for can. */
    @ParameterizedTest
    @ValueSource(strings = {"complete", "release", "delete", "update"})
    void whatABusyServerWaitsForWhileItWritesLosesNoEntry(String way) throws Exception {
        keep(null, null);
        held(3);
        update("create function {schema}.extend() returns trigger language plpgsql as"
                + " $$ begin perform pg_advisory_xact_lock(37); return new; end $$");
        update(
                "create trigger extend before insert on {schema}.pgworker_history for each row execute function {schema}.extend()");
        try (Session busy = new Session("select pg_advisory_xact_lock(37)")) {
            CompletableFuture<Void> ended = CompletableFuture.runAsync(
                    () -> {
                        switch (way) {
                            case "complete" -> call(COMPLETE, "null::text[]");
                            case "release" -> call(RELEASE, "null::text[]");
                            case "delete" -> update("delete from {schema}._private_jobs");
                            default ->
                                update(
                                        "update {schema}._private_jobs set last_error = 'no', locked_at = null, locked_by = null");
                        }
                    },
                    OwnThread.EACH);
            busy.awaitThatSomebodyWaits(Duration.ofMillis(1500));
            busy.connection.rollback();
            ended.join();
        }
        assertThat(kept()).isEqualTo(3);
        assertThat(losses()).isNull();
    }

    @Test
    void aStrangersLockCostsEntriesThatAreCounted() throws Exception {
        start((payload, context) -> {});
        Job before = run(1);
        try (Session stranger = new Session("lock table {schema}.pgworker_history in access exclusive mode")) {
            Job job = run(2);
            stranger.connection.rollback();
            assertThat(of(job)).isEmpty();
        }
        assertThat(of(before)).hasSize(1);
        assertThat(of(run(3))).as("of the sessions that have waited, too").hasSize(1);
        assertThat(losses()).isNotNull().satisfies(lost -> {
            assertThat(lost.jobs()).isEqualTo(1);
            assertThat(lost.reason())
                    .matches(
                            "canceling statement due to lock timeout: process \\d+ of \\S+ \\(PostgreSQL JDBC Driver\\)"
                                    + " holds AccessExclusiveLock on pgworker_history");
        });

        try (LogCapture log = new LogCapture(HistoryKeeper.class)) {
            Worker another = db.start(db.worker().tasks(List.of()));
            HistoryLosses lost = losses();
            Awaitility.await().until(() -> {
                WorkerStatus status = another.status();
                return status != null && Objects.equals(status.historyLosses(), lost);
            });
            Awaitility.await()
                    .until(() -> log.messages().stream()
                            .anyMatch(message -> message.startsWith("The history does not show the ends of 1 jobs")
                                    && message.contains("holds AccessExclusiveLock on pgworker_history")));
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "pgworker_history",
                "pgworker_history_settings",
                "pgworker_cancellations",
                "_private_tasks",
                "_private_job_queues"
            })
    void jobsEndWhateverTableIsLocked(String table) throws Exception {
        keep(null, null);
        held(2);
        waitForLocks("50ms");
        try (Session stranger = new Session("lock table {schema}." + table + " in access exclusive mode");
                Session session = impatient()) {
            session.execute(
                    "delete from {schema}._private_jobs where id = (select min(id) from {schema}._private_jobs)");
            session.execute("update {schema}._private_jobs set last_error = 'no', locked_at = null, locked_by = null");
            session.connection.commit();
            assertThat(db.jobs()).isEqualTo(1);
            stranger.connection.rollback();
        }
        assertThat(kept()).isZero();
        assertThat(losses()).isNotNull().satisfies(lost -> {
            assertThat(lost.jobs()).isEqualTo(2);
            assertThat(lost.reason()).startsWith("lock not waited for again").endsWith("on " + table);
        });
    }

    @Test
    void lossesThatCannotBeCountedAreLeftToTheWarning() throws Exception {
        keep(null, null);
        held(1);
        waitForLocks("50ms");
        try (Session stranger = new Session(
                        "lock table {schema}.pgworker_history, {schema}.pgworker_history_losses in access exclusive mode");
                Connection connection = DriverManager.getConnection(TestPostgres.jdbcUrl());
                Statement statement = connection.createStatement()) {
            statement.execute(db.schema().in("delete from {schema}._private_jobs"));
            assertThat((Throwable) statement.getWarnings())
                    .hasMessageStartingWith("Jobs have ended that the history of schema");
            stranger.connection.rollback();
        }
        assertThat(db.jobs()).isZero();
        assertThat(losses()).isNull();
    }

    @Test
    void aStrangerIsWaitedForOnceAndNotAgainSoon() throws Exception {
        keep(null, null);
        held(5);
        String delete = "delete from {schema}._private_jobs where id = (select min(id) from {schema}._private_jobs)";
        try (Session stranger = new Session("lock table {schema}.pgworker_history in access exclusive mode");
                Session session = impatient();
                Session another = impatient()) {
            waitForLocks("50ms");
            session.execute(delete);
            waitForLocks("10min");
            session.execute(delete);
            session.connection.commit();
            another.execute(delete);
            another.connection.commit();
            update("update {schema}.pgworker_history_losses set lost_at = lost_at - interval '1 minute'");
            CompletableFuture<Void> waiting = CompletableFuture.runAsync(
                    () -> {
                        try {
                            session.execute(delete);
                            session.connection.commit();
                        } catch (SQLException e) {
                            throw new IllegalStateException(e);
                        }
                    },
                    OwnThread.EACH);
            stranger.awaitThatSomebodyWaits(Duration.ofMillis(100));
            stranger.connection.rollback();
            waiting.join();
        }
        assertThat(kept()).isEqualTo(1);
        assertThat(db.sql("select count(*) from {schema}.pgworker_history_losses"
                                + " where reason like 'lock not waited for again: process %'")
                        .query(Long.class)
                        .single())
                .isEqualTo(2);
        assertThat(losses()).extracting(HistoryLosses::jobs).isEqualTo(3L);
    }

    @Test
    void nobodyWaitsAgainForOneWhoHasLockedAnIndex() throws Exception {
        keep(null, null);
        held(10_000);
        update("insert into {schema}.pgworker_history_losses values (clock_timestamp(), 1, 'the first')");
        try (Session stranger = new Session("alter index {schema}.pgworker_history_job set tablespace pg_default");
                Session session = impatient()) {
            session.execute("update {schema}._private_jobs set last_error = 'no', locked_at = null, locked_by = null");
            session.connection.commit();
            stranger.connection.rollback();
        }
        assertThat(kept()).isZero();
        assertThat(losses()).isNotNull().satisfies(lost -> {
            assertThat(lost.jobs()).isEqualTo(10_001);
            assertThat(lost.reason()).endsWith("on pgworker_history_job");
        });
    }

    /** The bound is a quarter of what the statement may take, however long it is otherwise. */
    @Test
    void aStrangerIsWaitedForLessLongThanAStatementMayTake() throws Exception {
        keep(null, null);
        held(1);
        waitForLocks("10min");
        try (Session stranger = new Session("lock table {schema}.pgworker_history in access exclusive mode");
                Session session = impatient()) {
            session.execute("delete from {schema}._private_jobs");
            session.connection.commit();
            stranger.connection.rollback();
        }
        assertThat(db.jobs()).isZero();
        assertThat(losses()).extracting(HistoryLosses::jobs).isEqualTo(1L);
    }

    @Test
    void nothingOfTheHistoryStaysOnASession() throws Exception {
        keep(null, null);
        held(6);
        waitForLocks("50ms");
        String delete = "delete from {schema}._private_jobs where id = (select min(id) from {schema}._private_jobs)";
        try (Session session = impatient()) {
            session.connection.setAutoCommit(true);
            try (Session stranger = new Session("lock table {schema}.pgworker_history in access exclusive mode")) {
                session.execute(delete);
                stranger.connection.rollback();
            }
            session.execute(delete);
            session.execute(
                    "select count(*) from {schema}.complete_jobs(array(select id from {schema}._private_jobs limit 1))");
            session.execute(String.format(Locale.ROOT, RELEASE, "array_fill('1'::text, array[h.n])"));
            try (Statement statement = session.connection.createStatement();
                    ResultSet left = statement.executeQuery(
                            db.schema()
                                    .in(
                                            "select string_agg(distinct m[1], ', ') from pg_proc p,"
                                                    + " regexp_matches(p.prosrc, '(pgworker\\.[a-z_]+)', 'g') m"
                                                    + " where p.pronamespace = '{schema}'::regnamespace and current_setting(m[1], true) <> ''"))) {
                left.next();
                assertThat(left.getString(1)).isNull();
            }
        }
        assertThat(kept()).isPositive();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "drop trigger pgworker_history_updated on {schema}._private_jobs",
                "alter table {schema}._private_jobs disable trigger pgworker_history_deleted"
            })
    void aTriggerThatSomebodyHasTakenAwayIsNoticed(String change) {
        keep(null, null);
        tend();
        assertThat(losses()).isNull();
        update(change);
        tend();
        assertThat(losses())
                .isEqualTo(new HistoryLosses(0, "a trigger of the history on _private_jobs is missing or disabled"));
    }

    @Test
    void manyLossesTakeFewRowsAndAreForgottenAfterADay() {
        update(
                "insert into {schema}.pgworker_history_losses select now() - interval '23 hours', 2, 'why' from generate_series(1, 1001)");
        update(
                "insert into {schema}.pgworker_history_losses values (now(), 1, 'latest'), (now() - interval '25 hours', 7, 'old')");

        tend();

        assertThat(losses()).isEqualTo(new HistoryLosses(2003, "latest"));
        assertThat(db.sql("select count(*) from {schema}.pgworker_history_losses")
                        .query(Long.class)
                        .single())
                .isEqualTo(2);
    }

    @Test
    void jobsStartWhereTheHistoryCannotBeSwitchedOnAndTheLogSaysSoOnce() throws Exception {
        try (LogCapture log = new LogCapture(HistoryKeeper.class)) {
            try (Session stranger = new Session("select * from {schema}.pgworker_history_settings for update")) {
                start((payload, context) -> {});
                Job job = run(1);
                assertThat(of(job)).isEmpty();
                assertThat(log.messages())
                        .filteredOn(message -> message.startsWith("The history of jobs could not be switched on yet"))
                        .hasSize(1);
                stranger.connection.rollback();
            }
            Awaitility.await().until(() -> db.queries().history().status().enabled());
            assertThat(of(run(2))).hasSize(1);
        }
    }

    @Test
    void jobsWaitUntilTheHistoryIsSwitchedOn() throws Exception {
        update(
                "alter function {schema}.pgworker_keep_history(boolean, interval, bigint, boolean) set lock_timeout = '10min'");
        Job job = db.scheduler().addJob(WORK, 1);
        try (Session stranger = new Session("select * from {schema}.pgworker_history_settings for update")) {
            start((payload, context) -> {});
            stranger.awaitThatSomebodyWaits(Duration.ofMillis(2500));
            assertThat(db.sql("select max(attempts) from {schema}._private_jobs")
                            .query(Integer.class)
                            .single())
                    .isZero();
        }
        events.await(JobCompleted.class);
        assertThat(of(job)).hasSize(1);
    }

    @Test
    void aFailureIsWrittenThoughTheHistoryIsGone() {
        start((payload, context) -> {
            if (payload == 2) {
                throw new IllegalStateException("no");
            }
        });
        run(1);
        update("drop table {schema}.pgworker_history cascade");

        run(3);
        db.scheduler().addJob(WORK, 2);
        assertThat(events.await(JobFailed.class).error()).hasMessage("no");
    }

    @Test
    void anEntryIsThereIfAndOnlyIfTheEndIs() throws Exception {
        keep(null, null);
        Job job = db.scheduler().addJob(WORK, 1);
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.execute(db.schema().in("delete from {schema}._private_jobs"));
            connection.rollback();
        }
        assertThat(of(job)).isEmpty();
        assertThat(db.jobs()).isEqualTo(1);
    }

    @Test
    void aConnectionThatBreaksBeforeTheEndIsWrittenLeavesNoEntry() throws Exception {
        CountDownLatch go = new CountDownLatch(1);
        start((payload, context) -> go.await());
        Job job = db.scheduler().addJob(WORK, 1);
        events.await(JobStarted.class);
        try (Connection other = DriverManager.getConnection(TestPostgres.jdbcUrl());
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            // the completion waits for the queue of locks and is broken there
            statement.execute(db.schema().in("lock table {schema}._private_jobs in share mode"));
            go.countDown();
            Awaitility.await()
                    .until(() -> db.sql("select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
                                            + " and query like '%pgworker_complete%' and query like '%"
                                            + db.schema().name()
                                            + "%'")
                                    .query(Long.class)
                                    .single()
                            > 0);
            db.sql("select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock'"
                            + " and query like '%pgworker_complete%' and query like '%"
                            + db.schema().name() + "%'")
                    .query(Boolean.class)
                    .list();
            assertThat(of(job)).isEmpty();
            other.rollback();
        }
        events.await(JobCompleted.class);
        assertThat(of(job)).hasSize(1);
    }

    @Test
    void oldEntriesGo() {
        keep("15 hours", null);
        end(5);
        update("update {schema}.pgworker_history set ended_at = ended_at - interval '15 hours' where job_id <= 3");
        tend();

        assertThat(kept()).isEqualTo(2);
        assertThat(db.queries().history().status().keepFor()).isEqualTo(Duration.ofHours(15));
    }

    @Test
    void severalWorkersThatTendAtOnceDeleteWhatIsTooMuchOnce() {
        keep(null, 1_000L);
        end(1_500);
        awaitStatistics();
        tend();
        for (int i = 0; i < 8; i++) {
            db.sql("select {schema}.pgworker_tend_history()").query().listOfRows();
        }
        assertThat(kept()).isEqualTo(1_000);
    }

    @Test
    void thereAreNeverManyMoreThanWanted() {
        keep(null, 1_000L);
        long most = 0;
        for (int i = 0; i < 10; i++) {
            end(250);
            awaitStatistics();
            tend();
            most = Math.max(most, kept());
        }

        assertThat(most).isBetween(750L, 1_000L);
        assertThat(kept()).isGreaterThanOrEqualTo(750);
        assertThat(db.queries().history().status().keepMost()).isEqualTo(1_000);
    }

    @Test
    void eightWorkersThatStartStopAndTendLoseNoneOfAHundredThousandEntries() {
        int jobs = 100_000;
        int each = 8_000;
        keep("1 hour", null);
        insertOld();
        update("insert into {schema}._private_tasks (identifier) values ('work')");
        update("insert into {schema}._private_jobs (task_id, payload) select t.id, to_json(i)"
                + " from {schema}._private_tasks t, generate_series(1, " + jobs + ") i");
        AtomicInteger runs = new AtomicInteger();
        AtomicInteger starts = new AtomicInteger();
        HistorySettings on = HistorySettings.builder()
                .enabled(true)
                .keepFor(Duration.ofHours(1))
                .build();
        List<CompletableFuture<Void>> workers = IntStream.range(0, 8)
                .mapToObj(i -> CompletableFuture.runAsync(
                        () -> {
                            while (db.jobs() > 0) {
                                int goal = runs.get() + each;
                                Worker worker = db.worker()
                                        .settings(WorkerSettings.builder()
                                                .history(on)
                                                .build())
                                        .tasks(List.of(TaskRegistration.of(
                                                WORK, (payload, context) -> runs.incrementAndGet())))
                                        .build();
                                worker.start();
                                starts.incrementAndGet();
                                try {
                                    Awaitility.await()
                                            .atMost(Duration.ofMinutes(5))
                                            .until(() -> runs.get() >= goal || db.jobs() == 0);
                                    insertOld();
                                    tend();
                                } finally {
                                    worker.stop();
                                }
                            }
                        },
                        OwnThread.EACH))
                .toList();
        workers.forEach(CompletableFuture::join);
        tend();

        assertThat(db.sql(
                                "select count(*) || ' ' || count(distinct job_id) from {schema}.pgworker_history where job_id > 0")
                        .query(String.class)
                        .single())
                .isEqualTo(jobs + " " + jobs);
        assertThat(kept()).as("with old ones").isEqualTo(jobs);
        assertThat(losses()).isNull();
        assertThat(starts).hasValueGreaterThan(8);
    }

    private void insertOld() {
        update(
                "insert into {schema}.pgworker_history (job_id, ended_at, created_at, run_at, attempt, max_attempts, priority, outcome,"
                        + " task_identifier) select -i, now() - interval '2 hours', now(), now(), 1, 1, 0, 'succeeded', 'old'"
                        + " from generate_series(1, 1000) i");
    }

    /** Estimates follow the statistics, which a session sends when it is idle. */
    private void awaitStatistics() {
        Awaitility.await()
                .pollInterval(Duration.ofMillis(20))
                .until(() -> db.sql("""
                        select (select sum(z.entries) from {schema}.pgworker_history_sizes z)
                          = (select count(*) from {schema}.pgworker_history)
                        """).query(Boolean.class).single());
    }

    @Test
    void aBackupKeepsNobodyWaiting() throws Exception {
        keep("1 minute", null);
        end(3);
        update("update {schema}.pgworker_history set ended_at = ended_at - interval '2 minutes'");
        try (Session backup = new Session("lock table {schema}.pgworker_history in access share mode")) {
            tend();
            end(2);
            assertThat(kept()).isEqualTo(2);
            backup.connection.rollback();
        }
    }

    @Test
    void openTransactionsOnTheJobsDoNotDelayTheSwitch() throws Exception {
        try (Session stranger = new Session("lock table {schema}._private_jobs in row exclusive mode")) {
            keep(null, null);
            end(1);
            assertThat(kept()).isEqualTo(1);
            stranger.connection.rollback();
        }
    }

    @Test
    void whoMayOnlyReadTheHistoryReadsIt() throws SQLException {
        keep(null, null);
        end(3);
        String role = db.schema().name() + "_reader";
        update("create role " + role + " login password 'x'");
        try {
            update("grant usage on schema {schema} to " + role);
            update("grant select on {schema}.pgworker_history, {schema}.pgworker_history_settings,"
                    + " {schema}.pgworker_history_sizes, {schema}.pgworker_history_losses to " + role);
            HikariConfig config = TestSchema.poolConfig(TestPostgres.jdbcUrl(), 1);
            config.setConnectionInitSql("set role " + role + "; set default_transaction_read_only = on");
            try (HikariDataSource pool = new HikariDataSource(config)) {
                JobHistory history = WorkerClient.jobQueries(pool, db.schema()).history();
                assertThat(history.list(HistoryQuery.ALL).entries()).hasSize(3);
                assertThat(history.of(
                                history.list(HistoryQuery.ALL).entries().get(0).jobId()))
                        .hasSize(1);
                assertThat(history.status().enabled()).isTrue();
            }
        } finally {
            update("drop owned by " + role);
            update("drop role " + role);
        }
    }

    @Test
    void whoMayOnlyDeleteJobsWritesHistoryAllTheSame() throws SQLException {
        keep(null, null);
        Job job = db.scheduler().addJob(WORK, 1);
        String role = db.schema().name() + "_deleter";
        update("create role " + role);
        try {
            update("grant usage on schema {schema} to " + role);
            update("grant select, delete on {schema}._private_jobs to " + role);
            update("create policy p on {schema}._private_jobs to " + role + " using (true)");
            try (Connection connection = db.dataSource().getConnection();
                    Statement statement = connection.createStatement()) {
                statement.execute("set role " + role);
                assertThat(statement.executeUpdate(db.schema().in("delete from {schema}._private_jobs")))
                        .isEqualTo(1);
                statement.execute("reset role");
            }
        } finally {
            update("drop owned by " + role);
            update("drop role " + role);
        }
        assertThat(of(job)).hasSize(1);
    }

    private static final List<String> FOREIGN_TRIGGERS = List.of(
            "create type {other}.moment as (at timestamptz)",
            """
            create function {other}.now({other}.moment) returns timestamptz language plpgsql
            as $$begin insert into {other}.seen values (current_user); return now(); end$$
            """,
            "create cast ({other}.moment as timestamptz) with function {other}.now({other}.moment) as assignment",
            "create table {other}.seen (by text)",
            "grant insert on {other}.seen to public",
            """
            create table {other}.jobs (id bigint, task_id int, locked_at timestamptz, created_at {other}.moment, run_at timestamptz,
              attempts smallint, max_attempts smallint, priority smallint, job_queue_id int, key text, locked_by text, flags jsonb,
              payload json, last_error text)
            """,
            "insert into {other}.jobs (id, task_id, created_at, run_at, attempts, max_attempts, priority)"
                    + " values (1, 1, row(now()), now(), 0, 5, 0), (2, 1, row(now()), now(), 5, 5, 0)",
            """
            create trigger deleted after delete on {other}.jobs referencing old table as old_jobs
            for each statement execute function {schema}.pgworker_record_deleted()
            """,
            """
            create trigger updated after update on {other}.jobs referencing old table as old_jobs new table as new_jobs
            for each statement execute function {schema}.pgworker_record_updated()
            """);

    @Test
    void triggersOnTablesOfOthersRunNothingOfTheirsAsTheOwner() throws SQLException {
        keep(null, null);
        String role = db.schema().name() + "_granted";
        update("create role " + role);
        update("create schema " + role + " authorization " + role);
        try {
            update("grant usage on schema {schema} to " + role);
            update("grant execute on all functions in schema {schema} to " + role);
            try (Connection connection = db.dataSource().getConnection();
                    Statement statement = connection.createStatement()) {
                statement.execute("set role " + role);
                try {
                    for (String sql : FOREIGN_TRIGGERS) {
                        statement.execute(db.schema().in(sql.replace("{other}", role)));
                    }
                    for (String change :
                            List.of("delete from {other}.jobs where id = 1", "update {other}.jobs set key = 'k'")) {
                        assertThatThrownBy(() -> statement.execute(change.replace("{other}", role)))
                                .hasMessageContaining("is written by triggers on its jobs alone");
                    }
                } finally {
                    statement.execute("reset role");
                }
            }
            assertThat(db.sql("select distinct by from " + role + ".seen")
                            .query(String.class)
                            .list())
                    .isEmpty();
        } finally {
            update("drop owned by " + role + " cascade");
            update("drop role " + role);
        }
        assertThat(kept()).isZero();
    }

    /** Jobs that a worker of the name holds, as it is about to end them. */
    private void held(int jobs) {
        update("insert into {schema}._private_tasks (identifier) values ('work') on conflict do nothing");
        update("insert into {schema}._private_jobs (task_id, payload, locked_at, locked_by, attempts)"
                + " select t.id, '{}', now(), 'peer', 1 from {schema}._private_tasks t, generate_series(1, " + jobs
                + ")"
                + " where t.identifier = 'work'");
    }

    private static final String RELEASE = """
            select count(*) from (select count(*)::int as n from {schema}._private_jobs j where j.locked_by = 'peer') h,
              lateral (select %s as results) r,
              lateral (
                select array_agg(row(j.id, j.locked_at, 'retry', null, null, 'no', null, null, null, 5000, r.results[j.place], null)
                  ::{schema}.pgworker_outcome) as outcomes
                from (
                  select x.id, x.locked_at, row_number() over (order by x.id)::int as place
                  from {schema}._private_jobs x where x.locked_by = 'peer') j) a,
              lateral {schema}.pgworker_release('peer', a.outcomes) w
            """;

    private static final String COMPLETE = """
            select count(*) from (select array_agg(j.id order by j.id) as ids, array_agg(distinct j.locked_at) as ats, count(*)::int as n,
                array_agg(j.ctid order by j.id) as places
              from {schema}._private_jobs j where j.locked_by = 'peer') h,
              lateral {schema}.pgworker_note_runs(h.ids, array_fill(5000::bigint, array[h.n]), %s, null) n(ids),
              lateral {schema}.pgworker_complete('peer', n.ids, h.ats, array_fill(1, array[h.n]), h.places)
            """;

    private Duration call(String sql, String results) {
        long begun = System.nanoTime();
        db.sql(String.format(Locale.ROOT, sql, results)).query(Long.class).single();
        return Duration.ofNanos(System.nanoTime() - begun);
    }

    @Test
    void failuresWithResultsAreKeptOnceAndCostWhatTheyWeigh() {
        keep(null, null);
        String result = "array_fill(to_json(repeat('x', 60000))::text, array[h.n])";
        held(20);
        call(RELEASE, result);
        assertThat(kept()).isEqualTo(20);
        held(20);
        Duration few = call(RELEASE, result);
        held(200);
        assertThat(call(RELEASE, result)).isLessThan(few.multipliedBy(40).plusSeconds(1));

        assertThat(db.sql(
                                "select count(distinct job_id) from {schema}.pgworker_history where outcome = 'retried' and error = 'no'"
                                        + " and took = interval '5 milliseconds' and result is not null")
                        .query(Long.class)
                        .single())
                .isEqualTo(kept())
                .isEqualTo(240);
    }

    @Test
    void aBadResultLosesOnlyItself() {
        keep(null, null);
        String bad = "array['{\"a\": 1}', 'no JSON', repeat('[', 30000) || repeat(']', 30000)]";
        held(3);
        call(RELEASE, bad);
        held(3);
        call(COMPLETE, bad);

        assertThat(kept()).isEqualTo(6);
        assertThat(db.sql("select count(result) from {schema}.pgworker_history")
                        .query(Long.class)
                        .single())
                .isEqualTo(2);
    }

    @Test
    void resultsThatNoSettingHoldsAreLeftOut() {
        keep(null, null);
        held(70);
        call(COMPLETE, "array_fill(repeat('\"', 8000000), array[h.n])");

        assertThat(db.jobs()).isZero();
        assertThat(kept()).isEqualTo(70);
    }

    @Test
    void aLockedHistoryIsLeftToTheNextTime() throws Exception {
        keep("1 minute", null);
        end(3);
        try (Connection other = DriverManager.getConnection(TestPostgres.jdbcUrl());
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute(db.schema().in("lock table {schema}.pgworker_history in access exclusive mode"));
            tend();
            other.rollback();
        }
        assertThat(kept()).isEqualTo(3);
    }

    @Test
    void extremeValuesAreKept() {
        keep(null, null);
        update("""
                insert into {schema}._private_jobs (task_id, payload, priority, run_at, attempts, max_attempts, created_at, locked_at, locked_by,
                  key, flags)
                select t.id, '"\\u0000"', -32768, '-infinity', 32767, 32767, 'infinity', '-infinity', repeat('w', 10000), repeat('k', 512),
                  '{"": true}'
                from {schema}._private_tasks t
                """.replace("select t.id", "select -1").replace("from {schema}._private_tasks t", ""));
        update("delete from {schema}._private_jobs");

        HistoryEntry entry =
                db.queries().history().list(HistoryQuery.ALL).entries().get(0);
        assertThat(entry.taskIdentifier()).isEqualTo("task -1");
        assertThat(entry.attempt()).isEqualTo(32_767);
        assertThat(entry.priority()).isEqualTo(-32_768);
        assertThat(entry.took()).isNull();
        assertThat(entry.payload()).isEqualTo("\"\\u0000\"");
        assertThat(entry.workerId()).hasSize(10_000);
        assertThat(entry.key()).hasSize(512);
        assertThat(entry.flags()).containsExactly("");
    }

    @Test
    void largePayloadsStayBehind() {
        keep(null, null);
        String incompressible = "select string_agg(md5(i::text), '') from generate_series(1, 20000) i";
        update("insert into {schema}._private_jobs (task_id, payload) select 1, to_json((" + incompressible + "))");
        update("insert into {schema}._private_jobs (task_id, payload) select 1, to_json(repeat('x', 1000000))");
        update("delete from {schema}._private_jobs");

        assertThat(db.queries().history().list(HistoryQuery.ALL).entries())
                .extracting(
                        entry -> entry.payload() == null ? 0 : entry.payload().length())
                .containsExactly(0, 0);
    }

    @Test
    void pagesGoThroughEverythingOnce() {
        keep(null, null);
        update("""
                insert into {schema}.pgworker_history (job_id, ended_at, created_at, run_at, attempt, max_attempts, priority, outcome,
                  task_identifier, payload)
                select i, now() - (i / 100) * interval '1 second', now(), now(), 1, 25, 0,
                  case when i = 44000 then 'failed' else 'succeeded' end, 'work', to_json(i)
                from generate_series(1, 45000) i
                """);
        Set<Long> seen = new HashSet<>();
        String after = null;
        do {
            HistoryPage page = db.queries()
                    .history()
                    .list(HistoryQuery.builder().pageSize(1_000).after(after).build());
            page.entries().forEach(entry -> assertThat(seen.add(entry.jobId())).isTrue());
            after = page.next();
        } while (after != null);
        assertThat(seen).hasSize(45_000);

        HistoryQuery failed =
                HistoryQuery.builder().outcome(HistoryOutcome.FAILED).build();
        HistoryPage first = db.queries().history().list(failed);
        assertThat(first.entries()).isEmpty();
        assertThat(first.limited()).isTrue();
        HistoryPage second = db.queries()
                .history()
                .list(failed.toBuilder().after(first.next()).build());
        assertThat(second.limited()).isTrue();
        HistoryPage third = db.queries()
                .history()
                .list(failed.toBuilder().after(second.next()).build());
        assertThat(third.entries()).extracting(HistoryEntry::jobId).containsExactly(44_000L);
        assertThat(third.next()).isNull();
        assertThat(third.limited()).isFalse();

        assertThat(db.queries()
                        .history()
                        .list(HistoryQuery.builder().search("44999").build())
                        .limited())
                .isTrue();
        assertThat(db.queries()
                        .history()
                        .list(HistoryQuery.builder()
                                .taskIdentifier("work")
                                .search("7777")
                                .build())
                        .entries())
                .extracting(HistoryEntry::jobId)
                .containsExactly(7_777L, 17_777L);
    }

    @ParameterizedTest
    @ValueSource(strings = {"usual", "transactional", "direct"})
    void resultsAreKeptInDatabasesThatLackTheirCharacters(String way) {
        TaskOptions options = TaskOptions.DEFAULT
                .withTransactional(way.equals("transactional"))
                .withDirect(way.equals("direct"));
        OwnDatabase latin = new OwnDatabase("encoding 'LATIN1' lc_collate 'C' lc_ctype 'C' template template0");
        latin.create();
        try (HikariDataSource pool = new HikariDataSource(TestSchema.poolConfig(latin.url(), 10))) {
            new SchemaMigrator(pool, WorkerSchema.DEFAULT).migrate();
            Worker worker = Worker.builder(pool)
                    .settings(WorkerSettings.builder()
                            .history(HistorySettings.builder().enabled(true).build())
                            .build())
                    .listener(events)
                    .transactionManager(new JdbcTransactionManager(pool))
                    .tasks(List.of(TaskRegistration.of(
                                    WORK, (payload, context) -> context.result(payload == 1 ? "\u65e5\u672c" : "plain"))
                            .with(options)))
                    .build();
            worker.start();
            JobScheduler scheduler = WorkerClient.jobScheduler(pool, WorkerSchema.DEFAULT, db.codec());
            List<Job> jobs = scheduler.addJobs(WORK, List.of(1, 2));
            jobs.forEach(
                    job -> events.await(JobCompleted.class, event -> event.job().id() == job.id()));
            worker.stop();

            JobHistory history =
                    WorkerClient.jobQueries(pool, WorkerSchema.DEFAULT).history();
            assertThat(history.of(jobs.get(0).id()))
                    .extracting(HistoryEntry::result)
                    .containsExactly("\"\u65e5\u672c\"");
            assertThat(history.of(jobs.get(1).id()))
                    .extracting(HistoryEntry::result)
                    .containsExactly("\"plain\"");
        } finally {
            latin.drop();
        }
    }

    @Test
    void aRunRecordThatIsRefusedKeepsNoJobFromEnding() {
        update("create function {schema}.refuse() returns trigger language plpgsql as $$ begin"
                + " if current_setting('pgworker.run_results', true) like '%bad%' then"
                + " raise exception 'no' using errcode = '22021'; end if; return old; end $$");
        update(
                "create trigger refuse before delete on {schema}._private_jobs for each row execute function {schema}.refuse()");
        start((payload, context) -> context.result(payload == 1 ? "bad" : "good"));

        Job bad = run(1);
        Job good = run(2);

        assertThat(of(bad)).extracting(HistoryEntry::outcome).containsExactly(HistoryOutcome.SUCCEEDED);
        assertThat(of(bad)).extracting(HistoryEntry::result).containsOnlyNulls();
        assertThat(of(good)).extracting(HistoryEntry::result).containsExactly("\"good\"");
    }

    @Test
    void aLockedTableKeepsNobodyFromTheStatus() throws Exception {
        keep(null, null);
        end(1);
        try (Connection other = DriverManager.getConnection(TestPostgres.jdbcUrl());
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute(db.schema().in("lock table {schema}.pgworker_history in access exclusive mode"));
            CompletableFuture<HistoryStatus> status =
                    CompletableFuture.supplyAsync(() -> db.queries().history().status(), OwnThread.EACH);
            assertThat(status).succeedsWithin(Duration.ofSeconds(5));
            assertThat(status.join().enabled()).isTrue();
            assertThat(status.join().oldest()).isNull();
            other.rollback();
        }
        assertThat(db.queries().history().status().oldest()).isNotNull();
    }

    private void insert(long id, String columns, String values) {
        update(
                "insert into {schema}.pgworker_history (job_id, ended_at, created_at, run_at, attempt, max_attempts, priority,"
                        + " task_identifier" + columns + ") values (" + id + ", now(), now(), now(), 1, 1, 0, 'work'"
                        + values
                        + ")");
    }

    @Test
    void rowsThatNoWorkerOfThisVersionWritesAreRead() {
        insert(1, ", outcome, took", ", 'postponed', '170000000 years'");
        insert(2, ", outcome, took", ", 'failed', '-170000000 years'");

        JobHistory history = db.queries().history();
        assertThat(history.list(HistoryQuery.ALL).entries())
                .extracting(HistoryEntry::outcome)
                .containsExactlyInAnyOrder(HistoryOutcome.OTHER, HistoryOutcome.FAILED);
        HistoryQuery others =
                HistoryQuery.builder().outcome(HistoryOutcome.OTHER).build();
        assertThat(history.list(others).entries())
                .extracting(HistoryEntry::jobId)
                .containsExactly(1L);
        assertThat(history.of(1).get(0).took()).isGreaterThan(Duration.ofDays(100_000_000));
        assertThat(history.of(2).get(0).took()).isLessThan(Duration.ofDays(-100_000_000));
    }

    @Test
    void largeTextsAreCutAndEndPages() {
        String large = "to_json(repeat('x', 5500000))";
        for (int i = 1; i <= 100; i++) {
            insert(i, ", outcome, payload, result", ", 'failed', " + large + ", '\"\\u65e5\"'");
        }
        JobHistory history = db.queries().history();

        HistoryPage page = history.list(HistoryQuery.builder().pageSize(1000).build());

        assertThat(page.entries()).hasSizeBetween(70, 90).allSatisfy(entry -> {
            assertThat(entry.payload()).hasSize(100_001).endsWith("…");
            assertThat(entry.result()).isEqualTo("\"\u65e5\"");
        });
        HistoryPage rest = history.list(
                HistoryQuery.builder().pageSize(1000).after(page.next()).build());
        assertThat(rest.entries()).hasSize(100 - page.entries().size());
        assertThat(rest.next()).isNull();
        HistoryPage found = history.list(
                HistoryQuery.builder().search("\u65e5").payloadLimit(1).build());
        assertThat(found.entries())
                .hasSize(50)
                .allSatisfy(entry -> assertThat(entry.payload()).isEqualTo("\"…"));
        assertThat(history.of(7, 10).get(0).payload()).isEqualTo("\"xxxxxxxxx…");
    }

    @Test
    void payloadsThatAreLargeUncompressedAreNotKept() {
        keep(null, null);
        Job job = db.scheduler().addJob(Task.of("work", String.class), "x".repeat(70_000));
        db.changes().complete(List.of(job.id()));
        assertThat(of(job)).extracting(HistoryEntry::payload).containsOnlyNulls();
    }

    @Test
    void whoMayNotReadPayloadsReadsTheRest() {
        insert(1, ", outcome, payload, result, error", ", 'failed', '1', '2', 'boom'");
        String role = db.schema().name() + "_blind";
        update("create role " + role);
        try {
            update("grant usage on schema {schema} to " + role);
            update(
                    "grant select (job_id, ended_at, started_at, took, created_at, run_at, attempt, max_attempts, priority, outcome,"
                            + " task_identifier, queue_name, key, worker_id, trace_id, flags, error) on {schema}.pgworker_history to "
                            + role);
            HikariConfig config = TestSchema.poolConfig(TestPostgres.jdbcUrl(), 1);
            config.setConnectionInitSql("set role " + role);
            try (HikariDataSource pool = new HikariDataSource(config)) {
                JobHistory history = WorkerClient.jobQueries(pool, db.schema()).history();
                HistoryQuery query = HistoryQuery.builder().payloadLimit(0).build();
                for (HistoryQuery each :
                        List.of(query, query.toBuilder().search("boom").build())) {
                    assertThat(history.list(each).entries())
                            .singleElement()
                            .isEqualTo(history.of(1, 0).get(0))
                            .satisfies(entry -> assertThat(entry.error()).isEqualTo("boom"))
                            .satisfies(entry -> assertThat(entry.payload()).isNull());
                }
            }
        } finally {
            update("drop owned by " + role);
            update("drop role " + role);
        }
    }
}
