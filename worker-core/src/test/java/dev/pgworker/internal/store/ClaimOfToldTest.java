package dev.pgworker.internal.store;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import dev.pgworker.job.Job;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** A claim by the id that was announced keeps to the rules of those that look for jobs. */
@Tag("thorough")
class ClaimOfToldTest {

    @RegisterExtension
    final TestSchema db = new TestSchema(10);

    private ClaimStore store;
    private TaskIds tasks;
    private Connection connection;

    @BeforeEach
    void connect() throws SQLException {
        store = new JobStore(db.dataSource(), db.schema(), "w").claims();
        tasks = store.tasks(Set.of("t", "u"));
        connection = db.dataSource().getConnection();
        connection.setAutoCommit(true);
    }

    @AfterEach
    void close() throws SQLException {
        connection.close();
    }

    private long add(String arguments) {
        return db.sql("select id from {schema}.add_job('t', '{\"a\":1}'" + arguments + ")")
                .query(Long.class)
                .single();
    }

    private Claimed claim(long id) throws SQLException {
        return store.claimTold(connection, tasks, id);
    }

    private Map<String, Object> row(long id) {
        return db.sql(
                        "select locked_by, locked_at, attempts, run_at, ctid::text from {schema}._private_jobs where id = ?")
                .param(id)
                .query()
                .singleRow();
    }

    @Test
    void bringsWhatAnyOtherClaimBrings() throws SQLException {
        long id = add(", priority => -3, max_attempts => 7, job_key => 'k'");
        long other = add(", priority => -3, max_attempts => 7, job_key => 'l'");

        Job told = claim(id).jobs().get(0);
        Job found = store.claim(
                        tasks,
                        new ClaimRequest(
                                1, 1_000_000, List.of(), task -> 1, QueueFront.UNKNOWN, null, Chain.WHOLE, null))
                .jobs()
                .get(0);

        assertThat(found.id()).isEqualTo(other);
        assertThat(told)
                .usingRecursiveComparison()
                .ignoringFields("id", "key", "runAt", "createdAt", "updatedAt", "lockedAt")
                .isEqualTo(found);
        assertThat(told.id()).isEqualTo(id);
        assertThat(told.key()).isEqualTo("k");
        assertThat(row(id)).containsEntry("locked_by", "w").containsEntry("attempts", 1);
        assertThat(db.sql("select locked_at = ?::timestamptz from {schema}._private_jobs where id = ?")
                        .params(String.valueOf(told.lockedAt()), id)
                        .query(Boolean.class)
                        .single())
                .as("the fence")
                .isTrue();
        assertThat(claim(id).size()).as("it is held").isZero();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "update {schema}._private_jobs set locked_at = now(), locked_by = 'other', attempts = 1",
                "update {schema}._private_jobs set run_at = now() + interval '1 hour'",
                "update {schema}._private_jobs set run_at = 'infinity'",
                "update {schema}._private_jobs set attempts = max_attempts",
                "update {schema}._private_jobs set flags = '{\"f\": true}'",
                "update {schema}._private_jobs set task_id = {schema}.pgworker_task_id('not served')",
                "update {schema}._private_jobs set job_queue_id = {schema}.pgworker_queue_id('q')",
                "select {schema}.add_job('t', job_key => 'k', run_at => now() + interval '1 hour')",
                "select {schema}.add_job('t', job_key => 'k', queue_name => 'q')",
                "select {schema}.remove_job('k')",
            })
    void leavesWhatItMayNotClaim(String meanwhile) throws SQLException {
        long id = add(", job_key => 'k'");
        execute(db.schema().in(meanwhile));
        List<Map<String, Object>> before = all();

        assertThat(claim(id).size()).isZero();

        assertThat(all()).isEqualTo(before);
    }

    private List<Map<String, Object>> all() {
        return db.sql("select id, locked_by, locked_at, attempts, ctid::text from {schema}._private_jobs")
                .query()
                .listOfRows();
    }

    @Test
    void leavesJobsThatWaitForALimit() throws SQLException {
        new LimitedJobs(db).limit("l", "{t}", null, 1);
        long id = add("");

        assertThat(claim(id).size()).isZero();
    }

    @Test
    void leavesDirectTasks() throws SQLException {
        long id = add("");

        assertThat(store.claimTold(connection, new TaskIds(tasks.identifiers(), Set.of("t")), id)
                        .size())
                .isZero();
        assertThat(store.claimTold(connection, TaskIds.NONE, id).size()).isZero();
        assertThat(claim(id).size()).isOne();
    }

    @ParameterizedTest
    @ValueSource(longs = {Long.MIN_VALUE, -1, 0, 4_000_000_000L, Long.MAX_VALUE})
    void idsThatDoNotExistBringNothing(long id) throws SQLException {
        add("");

        assertThat(claim(id).size()).isZero();
    }

    @Test
    void waitsForNoLock() throws SQLException {
        long id = add("");
        try (Connection other = db.dataSource().getConnection();
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute(db.schema().in("select from {schema}._private_jobs for update"));
            assertThat(claim(id).size()).as("the row is locked").isZero();
            statement.execute(db.schema().in("lock table {schema}._private_jobs"));
            assertThatThrownBy(() -> claim(id))
                    .isInstanceOfSatisfying(
                            SQLException.class, e -> assertThat(e.getSQLState()).isEqualTo("55P03"));
            other.rollback();
        }
        assertThat(claim(id).size()).as("on the same connection").isOne();
    }

    @Test
    void aTriggerThatKeepsAJobFromBeingClaimedIsReported() throws SQLException {
        long id = add("");
        trigger("new.locked_by := 'somebody'; return new;");

        assertThatThrownBy(() -> claim(id)).hasMessageContaining("a trigger keeps a job from being claimed");
        assertThat(row(id)).containsEntry("locked_by", null).containsEntry("attempts", 0);

        trigger("return null;");
        assertThat(claim(id).size()).isZero();
    }

    private void trigger(String body) throws SQLException {
        execute(db.schema()
                .in("create or replace function {schema}.mine() returns trigger language plpgsql as 'begin "
                        + body.replace("'", "''") + " end'"));
        execute(db.schema().in("drop trigger if exists mine on {schema}._private_jobs"));
        execute(db.schema()
                .in("create trigger mine before update on {schema}._private_jobs for each row"
                        + " execute function {schema}.mine()"));
    }

    private void execute(String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    @Test
    void ofSeveralWorkersThatAreToldOneGetsTheJob() throws Exception {
        List<Long> ids = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            ids.add(add(""));
        }
        Map<Long, String> holders = new ConcurrentHashMap<>();
        ExecutorService threads = Executors.newFixedThreadPool(4);
        List<Future<?>> all = new ArrayList<>();
        for (int worker = 0; worker < 4; worker++) {
            String name = "w" + worker;
            ClaimStore own = new JobStore(db.dataSource(), db.schema(), name).claims();
            all.add(threads.submit(() -> {
                try (Connection ownConnection = db.dataSource().getConnection()) {
                    ownConnection.setAutoCommit(true);
                    for (long id : ids) {
                        if (own.claimTold(ownConnection, tasks, id).size() > 0) {
                            assertThat(holders.put(id, name)).as("job %d", id).isNull();
                        }
                    }
                }
                return null;
            }));
        }
        threads.shutdown();
        for (Future<?> one : all) {
            one.get(120, TimeUnit.SECONDS);
        }

        assertThat(holders).containsOnlyKeys(ids);
        holders.forEach((id, name) ->
                assertThat(row(id)).containsEntry("locked_by", name).containsEntry("attempts", 1));
    }
}
