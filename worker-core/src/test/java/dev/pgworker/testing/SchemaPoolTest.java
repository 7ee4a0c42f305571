package dev.pgworker.testing;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.testsupport.SchemaState;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

/** Nothing that a test leaves in its schema reaches the next test. */
@Tag("thorough")
class SchemaPoolTest {

    private static final Task<String> WORK = Task.of("work", String.class);

    /** Returns whether the next test gets the schema of one that does this. */
    private static boolean isUsedAgainAfter(Leaving first, Consumer<TestSchema> next) throws Exception {
        TestSchema db = new TestSchema();
        db.beforeEach(null);
        WorkerSchema used = db.schema();
        try {
            first.in(db);
        } finally {
            db.afterEach(null);
        }
        db.beforeEach(null);
        try {
            next.accept(db);
            return db.schema().equals(used);
        } finally {
            db.afterEach(null);
        }
    }

    private static boolean isUsedAgainAfter(Leaving test) throws Exception {
        return isUsedAgainAfter(test, next -> {});
    }

    /** What a test does that may leave something. */
    private interface Leaving {
        void in(TestSchema db) throws Exception;
    }

    @Test
    void rowsAreMadeWhatTheyWere() throws Exception {
        AtomicReference<String> before = new AtomicReference<>();
        boolean usedAgain = isUsedAgainAfter(
                db -> {
                    before.set(rows(db));
                    work(db);
                    assertThat(rows(db)).isNotEqualTo(before.get());
                },
                next -> assertThat(rows(next)).isEqualTo(before.get()));

        assertThat(usedAgain).isTrue();
    }

    /** Writes into all tables, also what is rolled back. */
    private static void work(TestSchema db) throws InterruptedException {
        db.scheduler()
                .addJob(
                        WORK,
                        "x".repeat(10_000),
                        JobSpec.builder().queueName("q").build());
        db.scheduler().addJob(WORK, "y");
        assertThat(db.worker().task(WORK, (text, context) -> {}).build().runOnce())
                .isEqualTo(2);
        db.scheduler().addJob(WORK, "z");
        db.sql("update {schema}.pgworker_history_settings set enabled = not enabled, keep_most = 2000")
                .update();
        db.sql("delete from {schema}.pgworker_limit_passes").update();
        db.sql("delete from {schema}.worker_flyway_history").update();
        db.sql("update {schema}.migrations set breaking = not breaking").update();
        db.sql("select nextval('{schema}.pgworker_limits_id_seq')").query().listOfRows();
    }

    /** Returns what is in the schema, how much room it takes, and what the planner knows of it. */
    private static String rows(TestSchema db) {
        List<String> lines = db.sql("""
                        select relname || ' ' || relpages || ' ' || reltuples || ' ' || pg_table_size(oid) || ' ' || case relkind
                          when 'S' then coalesce(pg_sequence_last_value(oid)::text, '-')
                          else query_to_xml('select t.* from ' || oid::regclass || ' t order by t::text', true, true, '')::text end
                        from pg_class where relnamespace = '{schema}'::regnamespace and relkind in ('r', 'S') order by 1
                        """).query(String.class).list();
        return String.join("\n", lines);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "create function {schema}.one() returns int language sql as 'select 1'",
                "alter function {schema}.pgworker_hold_names(text[], text[]) strict",
                "comment on table {schema}._private_jobs is 'mine'",
                "comment on column {schema}._private_jobs.id is 'mine'",
                "grant usage on schema {schema} to public",
                "grant select on {schema}._private_jobs to public",
                "grant select (id) on {schema}._private_jobs to public",
                "alter default privileges in schema {schema} grant select on tables to public",
                "create index on {schema}._private_jobs (created_at)",
                "alter table {schema}._private_jobs add column mine int",
                "alter table {schema}._private_jobs alter payload set default '1'",
                "alter table {schema}._private_jobs add check (id > 0)",
                "alter table {schema}._private_jobs force row level security",
                "create policy mine on {schema}._private_jobs using (true)",
                "alter table {schema}._private_jobs set (fillfactor = 50)",
                "alter table {schema}._private_jobs set (toast.autovacuum_enabled = false)",
                "alter table {schema}._private_jobs set unlogged",
                "alter table {schema}._private_jobs replica identity full",
                "alter table {schema}._private_jobs alter task_id set statistics 10",
                "create statistics {schema}.mine on task_id, priority from {schema}._private_jobs",
                "create rule mine as on delete to {schema}._private_jobs do also notify mine",
                "create trigger mine before update on {schema}._private_jobs"
                        + " for each row execute function pg_catalog.suppress_redundant_updates_trigger()",
                "alter sequence {schema}._private_jobs_id_seq increment 2",
                "create table {schema}.mine ()",
                "create type {schema}.mine as enum ('a')",
                "drop schema {schema} cascade",
                "create view public.schema_pool_test as select id from {schema}._private_jobs",
            })
    void otherChangesAreSeen(String statement) throws SQLException {
        SchemaState state = SchemaPool.take();
        try (Connection connection = DriverManager.getConnection(TestPostgres.jdbcUrl());
                Statement change = connection.createStatement()) {
            connection.setAutoCommit(false);
            change.execute(new WorkerSchema(state.schema()).in(statement));
            assertThat(state.hasItsDefinition(connection)).isFalse();

            connection.rollback();
            assertThat(state.hasItsDefinition(connection)).isTrue();
        } finally {
            SchemaPool.giveBack(state);
        }
    }

    @Test
    void andTheirSchemaIsNotUsedAgain() throws Exception {
        assertThat(isUsedAgainAfter(db -> db.sql("vacuum {schema}.migrations").update()))
                .isFalse();
        assertThat(isUsedAgainAfter(db -> db.sql("analyze {schema}.migrations").update()))
                .isFalse();
        assertThat(isUsedAgainAfter(db -> {
                    db.sql("alter table {schema}._private_jobs rename column id to mine")
                            .update();
                    db.sql("alter table {schema}._private_jobs rename column mine to id")
                            .update();
                }))
                .as("what is changed back has been changed")
                .isFalse();
    }

    @Test
    void whoMayStillUseItKeepsIt() throws Exception {
        AtomicReference<AutoCloseable> left = new AtomicReference<>();
        List<Callable<AutoCloseable>> leaving = List.of(
                () -> DriverManager.getConnection(TestPostgres.jdbcUrl()),
                () -> TestSchema.pool(1),
                () -> WorkerProcess.start(Waiting.class, "waiting"),
                () -> {
                    Thread thread = new Thread(SchemaPoolTest::await, "worker-that-does-not-stop");
                    thread.start();
                    return thread::interrupt;
                });
        for (Callable<AutoCloseable> one : leaving) {
            assertThat(isUsedAgainAfter(db -> left.set(one.call()))).isFalse();
            assertThat(isUsedAgainAfter(db -> {}))
                    .as("another test's schema is none of theirs")
                    .isTrue();
            left.get().close();
        }
    }

    private static void await() {
        try {
            new CountDownLatch(1).await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** The program of a process that does nothing. */
    static final class Waiting {
        public static void main(String[] args) {
            await();
        }
    }
}
