package dev.pgworker.internal.store;

import java.io.StringReader;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.PGConnection;

import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** Every way in which a job of a limited task may become available parks it, and every way in which a run ends frees its permits. */
@Tag("thorough")
class LimitParkingTest {

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private LimitedJobs jobs;

    @BeforeEach
    void limit() {
        jobs = new LimitedJobs(db);
        jobs.limit("l", "{t}", "{tenant}", 1);
    }

    @Test
    void jobsAreParkedWhoeverAddsThem() throws SQLException {
        long one = jobs.add("t", "{}");
        long keyed = jobs.addWithKey("t", "{}", "k", "replace");
        List<Long> several = jobs.sql(
                        "select id from {schema}.add_jobs(array[('t', '{}', null, null, null, null, null, null),"
                                + " ('t', '{}', null, null, null, 'k2', null, null)]::{schema}.job_spec[])")
                .query(Long.class)
                .list();
        long raw = jobs.sql("insert into {schema}._private_jobs (task_id) select id from {schema}._private_tasks where"
                        + " identifier = 't' returning id")
                .query(Long.class)
                .single();
        try (Connection connection = db.dataSource().getConnection()) {
            connection
                    .unwrap(PGConnection.class)
                    .getCopyAPI()
                    .copyIn(
                            db.schema().in("copy {schema}._private_jobs (task_id, payload) from stdin"),
                            new StringReader(jobs.sql("select id from {schema}._private_tasks where identifier = 't'")
                                            .query(Integer.class)
                                            .single()
                                    + "\t{}\n"));
        } catch (java.io.IOException e) {
            throw new IllegalStateException(e);
        }
        long copied = jobs.sql("select max(id) from {schema}._private_jobs")
                .query(Long.class)
                .single();

        assertThat(List.of(one, keyed, several.get(0), several.get(1), raw, copied))
                .allSatisfy(id -> assertThat(jobs.state(id)).isEqualTo("parked"));
        assertThat(jobs.state(jobs.add("other", "{}"))).isEqualTo("available");
        assertThat(jobs.claimOrdinary("w", 10)).hasSize(1);
        assertThat(jobs.claim("w", 10)).containsExactly(one);
    }

    @Test
    void jobsStartInTheOrderOfPriorityAndTime() {
        long last = jobs.add("t", "{}");
        long first = jobs.sql(
                        "select id from {schema}.add_job('t', '{}', priority => -5, run_at => now() - interval '1 s')")
                .query(Long.class)
                .single();
        long later = jobs.sql(
                        "select id from {schema}.add_job('t', '{}', priority => -9, run_at => now() + interval '1 h')")
                .query(Long.class)
                .single();

        assertThat(jobs.claim("w", 10)).containsExactly(first);
        jobs.complete("w", first);
        assertThat(jobs.claim("w", 10)).containsExactly(last);
        jobs.complete("w", last);
        assertThat(jobs.claim("w", 10)).isEmpty();
        assertThat(jobs.sql("select extract(epoch from c.run_at - c.locked_at) from "
                                + LimitedJobs.claimed("null", "true") + " c where c.id is null")
                        .params("w", 10)
                        .query(Double.class)
                        .single())
                .isBetween(3_000.0, 3_600.0);
        assertThat(jobs.state(later)).isEqualTo("parked");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "delete from {schema}._private_jobs where id = ?",
                "update {schema}._private_jobs set locked_at = null, locked_by = null, run_at = now() + interval '1 s',"
                        + " last_error = 'e' where id = ?",
                "update {schema}._private_jobs set locked_at = null, locked_by = null, attempts = max_attempts where id = ?",
                "select {schema}.force_unlock_workers(array['w']) from (values (?)) v",
                "select {schema}.recover_dead_worker_jobs(array['w'], '0') from (values (?)) v",
            })
    void permitsGoWithTheRunHoweverItEnds(String end) {
        long id = jobs.add("t", "{}");
        long next = jobs.add("t", "{}");
        assertThat(jobs.claim("w", 10)).containsExactly(id);
        assertThat(jobs.claim("v", 10)).isEmpty();

        if (end.startsWith("select")) {
            jobs.sql(end).param(id).query().listOfRows();
        } else {
            jobs.sql(end).param(id).update();
        }

        assertThat(jobs.used()).isZero();
        assertThat(jobs.state(id)).isNotIn("available", "running");
        jobs.sql("update {schema}._private_jobs set run_at = now() - interval '1 h' where id = ?")
                .param(next)
                .update();
        assertThat(jobs.claim("v", 10)).containsExactly(next);
    }

    @Test
    void releasesSayWhatBecameOfTheJobAndParkIt() {
        long id = jobs.add("t", "{}");
        jobs.claim("w", 10);
        assertThat(jobs.release("w", id, "retry", 0)).isEqualTo("retried");
        assertThat(jobs.state(id)).isEqualTo("parked");
        jobs.claim("w", 10);
        assertThat(jobs.release("w", id, "back", 0)).isEqualTo("back");
        assertThat(jobs.state(id)).isEqualTo("parked");
        assertThat(jobs.used()).isZero();
        jobs.claim("w", 10);
        assertThat(jobs.release("w", id, "fail", 0)).isEqualTo("failed");
        assertThat(jobs.state(id)).isEqualTo("failed");
        assertThat(jobs.used()).isZero();

        jobs.sql("select id from {schema}.reschedule_jobs(array[?::bigint], attempts => 0, max_attempts => 3)")
                .param(id)
                .query(Long.class)
                .single();

        assertThat(jobs.state(id)).isEqualTo("parked");
        assertThat(jobs.claim("w", 10)).containsExactly(id);
    }

    @Test
    void aJobThatWaitsIsReplacedAndRemovedLikeOthers() {
        long id = jobs.addWithKey("t", "{\"tenant\":1}", "k", "replace");
        jobs.add("t", "{\"tenant\":2}");
        assertThat(jobs.claim("w", 10)).hasSize(2);
        long other = jobs.addWithKey("t", "{\"tenant\":2}", "k2", "replace");
        assertThat(jobs.state(other)).isEqualTo("parked");

        assertThat(jobs.addWithKey("t", "{\"tenant\":3}", "k2", "replace")).isEqualTo(other);
        assertThat(jobs.state(other)).isEqualTo("parked");
        assertThat(jobs.addWithKey("t", "{\"tenant\":3}", "k2", "unsafe_dedupe"))
                .isEqualTo(other);
        assertThat(jobs.addWithKey("t", "{\"tenant\":2}", "k2", "preserve_run_at"))
                .isEqualTo(other);
        assertThat(jobs.state(other)).isEqualTo("parked");
        assertThat(jobs.claim("v", 10)).isEmpty();
        assertThat(jobs.addWithKey("free", "{\"tenant\":2}", "k2", "replace")).isEqualTo(other);
        assertThat(jobs.state(other)).isEqualTo("available");

        long replaced = jobs.addWithKey("t", "{\"tenant\":1}", "k", "replace");
        assertThat(replaced).isNotEqualTo(id);
        assertThat(jobs.state(id)).isEqualTo("running");
        assertThat(jobs.state(replaced)).isEqualTo("parked");
        assertThat(jobs.claim("v", 10)).isEmpty();
        jobs.sql("select id from {schema}.remove_job('k')").query(Long.class).single();
        assertThat(jobs.state(replaced)).isEqualTo("gone");
    }

    @Test
    void batchesReplaceJobsThatWait() {
        long id = jobs.addWithKey("t", "[1]", "k", "replace");

        assertThat(jobs.sql("select id from {schema}.add_jobs(array[('t', '[2]', null, null, null, 'k', null,"
                                + " null)]::{schema}.job_spec[])")
                        .query(Long.class)
                        .single())
                .isEqualTo(id);

        assertThat(jobs.sql("select payload::text from {schema}._private_jobs")
                        .query(String.class)
                        .list())
                .containsExactly("[1, 2]");
        assertThat(jobs.state(id)).isEqualTo("parked");
    }

    @Test
    void peopleChangeJobsThatWait() {
        long id = jobs.add("t", "{}");
        jobs.sql("select id from {schema}.reschedule_jobs(array[?::bigint], run_at => now() + interval '1 hour')")
                .param(id)
                .query(Long.class)
                .single();
        assertThat(jobs.claim("w", 10)).isEmpty();
        jobs.sql("select id from {schema}.reschedule_jobs(array[?::bigint], run_at => now())")
                .param(id)
                .query(Long.class)
                .single();
        assertThat(jobs.claim("w", 10)).containsExactly(id);
        assertThat(jobs.release("w", id, "retry", 0)).isEqualTo("retried");
        jobs.sql("select id from {schema}.permanently_fail_jobs(array[?::bigint])")
                .param(id)
                .query(Long.class)
                .single();
        assertThat(jobs.state(id)).isEqualTo("failed");
        long done = jobs.add("t", "{}");
        assertThat(jobs.sql("select id from {schema}.complete_jobs(array[?::bigint])")
                        .param(done)
                        .query(Long.class)
                        .list())
                .containsExactly(done);
        assertThat(jobs.used()).isZero();
    }

    @Test
    void nobodyTakesAJobThatWaitsForOneOfAWorker() {
        long id = jobs.add("t", "{}");

        assertThat(jobs.sql("select worker_id from {schema}.list_orphan_locked_workers('1 ms')")
                        .query(String.class)
                        .list())
                .isEmpty();
        assertThat(jobs.sql("select worker_id from {schema}.pgworker_dead_workers('1 ms', '1 ms', 1, null, true, true)")
                        .query(String.class)
                        .list())
                .isEmpty();
        assertThat(jobs.sql("select released from {schema}.pgworker_release_old_locks()")
                        .query(Long.class)
                        .single())
                .isZero();
        jobs.sql("update {schema}._private_jobs set locked_at = null, locked_by = null")
                .update();
        assertThat(jobs.state(id)).isEqualTo("parked");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "{}",
                "null",
                "[]",
                "7",
                "{\"tenant\":null}",
                "{\"tenant\":\"\\u0000\"}",
                "{\"tenant\":\"\\ud800\"}",
                "{\"tenant\":\"a\\\\u0000\"}",
                "{\"other\":\"\\u0000 \\ud800 \\\\\\u0000\",\"tenant\":\"a\"}",
                "{\"tenant\":{\"a\":[1,2]}}",
                "{\"tenant\":\"\\u00e9\"}"
            })
    void payloadsOfAllKindsCanBeAdded(String payload) {
        long id = jobs.add("t", payload);

        assertThat(jobs.state(id)).isEqualTo("parked");
        assertThat(jobs.claim("w", 10)).containsExactly(id);
    }

    @Test
    void valuesAreToldApart() {
        String long1 = "x".repeat(10_000) + "1";
        String long2 = "x".repeat(10_000) + "2";
        for (String tenant :
                List.of("a", "\\\\u0000", "\\u0000", "a b", "'\\\"{},", long1, long2, "1", "01", "\\ud83d\\ude00")) {
            jobs.add("t", "{\"tenant\":\"" + tenant + "\",\"x\":\"\\udfff\"}");
            jobs.add("t", "{\"tenant\":\"" + tenant + "\",\"x\":1}");
        }

        // \u0000 stands for itself, and a number and its text are one value.
        assertThat(jobs.claim("w", 100)).hasSize(10);
        jobs.add("t", "{\"tenant\":1}");
        assertThat(jobs.claim("w", 10)).isEmpty();
    }

    @Test
    void jobsAreAddedWhereBackslashesEscape() throws SQLException {
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("set standard_conforming_strings = off");
            try {
                statement.execute(db.schema().in("""
                        select {schema}.add_job('t', v::json)
                        from (values ('{"tenant":"\\\\u0000"}'), ('{"tenant":"a"}')) p(v)
                        """));
            } finally {
                statement.execute("reset standard_conforming_strings");
            }
        }
        jobs.add("t", "{\"tenant\":\"\\u0000\"}");

        assertThat(jobs.claim("w", 10)).hasSize(2);
    }

    @Test
    void jobsWrittenWithoutTriggersDoNotRunAndAreFoundByAPass() throws SQLException {
        long running = jobs.add("t", "{}");
        jobs.claim("w", 10);
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("set session_replication_role = replica");
            statement.execute(
                    db.schema()
                            .in(
                                    "insert into {schema}._private_jobs (task_id) select id from {schema}._private_tasks where identifier = 't'"));
            statement.execute("reset session_replication_role");
        }
        jobs.sql("update {schema}.pgworker_limit_buckets set holders = '{}'").update();
        long unseen = jobs.sql("select max(id) from {schema}._private_jobs")
                .query(Long.class)
                .single();
        assertThat(jobs.state(unseen)).isEqualTo("available");
        assertThat(jobs.claimOrdinary("v", 10)).isEmpty();

        // As an hour later.
        jobs.sql("update {schema}.pgworker_limit_passes set began_at = began_at - interval '1 hour'")
                .update();
        jobs.apply();

        assertThat(jobs.state(unseen)).isEqualTo("parked");
        assertThat(jobs.used()).isOne();
        assertThat(jobs.claim("v", 10)).isEmpty();
        jobs.complete("w", running);
        assertThat(jobs.claim("v", 10)).containsExactly(unseen);
    }

    @Test
    void aJobAddedWithASnapshotFromBeforeTheLimitIsFound() throws SQLException {
        jobs.sql("insert into {schema}._private_tasks (identifier) values ('u')")
                .update();
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            connection.setAutoCommit(false);
            statement.execute(db.schema().in("select from {schema}._private_jobs"));
            jobs.limit("new", "{u}", null, 1);
            statement.execute(db.schema().in("select {schema}.add_job('u')"));
            connection.commit();
        }
        long id = jobs.sql("select id from {schema}._private_jobs")
                .query(Long.class)
                .single();
        assertThat(jobs.state(id)).isEqualTo("available");

        // As a minute later.
        jobs.sql("update {schema}.pgworker_limits set created_at = created_at - interval '1 minute'")
                .update();
        jobs.apply();

        assertThat(jobs.claim("w", 10)).containsExactly(id);
    }

    /** The hint that spares those who add many jobs a call for each is no way past a limit. */
    @Test
    void whoSaysWronglyThatAJobIsUnlimitedDoesNotMakeItRun() throws SQLException {
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.execute("set local pgworker.adding = 'unlimited'");
            statement.execute(db.schema().in("select {schema}.add_job('t', '{}')"));
            connection.commit();
        }

        assertThat(jobs.claimOrdinary("v", 10)).isEmpty();
    }

    @Test
    void aHistoryTellsRunsAndNotWaits() {
        jobs.sql("select {schema}.pgworker_keep_history(true, null, null, null)")
                .query()
                .listOfRows();
        long id = jobs.add("t", "{}");
        jobs.claim("w", 10);
        jobs.sql(
                        "update {schema}._private_jobs set locked_at = null, locked_by = null, last_error = 'e', run_at = now()"
                                + " where id = ?")
                .param(id)
                .update();
        jobs.sql("select id from {schema}.pgworker_remove_jobs(array[?::bigint])")
                .param(id)
                .query(Long.class)
                .single();

        assertThat(jobs.sql("select concat_ws(' ', outcome, attempt, worker_id, started_at is null) from"
                                + " {schema}.pgworker_history order by ended_at")
                        .query(String.class)
                        .list())
                .containsExactly("retried 1 w f", "removed 0 t");
    }

    @Test
    void aJobThatDoesNotLetItselfBeChangedStandsInNoLimitsWay() {
        long stubborn = jobs.add("other", "{\"stubborn\":1}");
        long good = jobs.add("other", "{}");
        jobs.sql("""
                create function {schema}.refuse() returns trigger language plpgsql as $$
                begin
                  if new.payload::text like '%stubborn%' then raise exception 'no'; end if;
                  return new;
                end $$
                """).update();
        jobs.sql("create trigger refuse before update on {schema}._private_jobs for each row execute function"
                        + " {schema}.refuse()")
                .update();

        jobs.limit("second", "{other}", "{tenant}", 1);

        assertThat(jobs.sql("select state from {schema}.pgworker_limits where name = 'second'")
                        .query(String.class)
                        .single())
                .isEqualTo("active");
        assertThat(jobs.state(good)).isEqualTo("parked");
        assertThat(jobs.state(stubborn)).isEqualTo("available");
        assertThat(jobs.claimOrdinary("w", 10)).isEmpty();
        assertThat(jobs.claim("w", 10)).containsExactly(good);
    }

    /** It was written where there was more stack left than a trigger of a trigger has. */
    @Test
    void aPayloadThatIsNestedTooDeeplyToBeReadHasNoValue() throws SQLException {
        jobs.add("t", "{}");
        long deep = jobs.sql("""
                        insert into {schema}._private_jobs (task_id, payload)
                        select id, ('{"tenant":"x","d":' || repeat('[', 4000) || repeat(']', 4000) || '}')::json
                        from {schema}._private_tasks where identifier = 't' returning id
                        """).query(Long.class).single();
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("set max_stack_depth = '200kB'");
            try (ResultSet row = statement.executeQuery(db.schema()
                    .in(
                            "select ({schema}.pgworker_limit_values(payload, '{{tenant}}'))[1] from {schema}._private_jobs where id = "
                                    + deep))) {
                row.next();
                assertThat(row.getString(1)).isEmpty();
            } finally {
                statement.execute("reset max_stack_depth");
            }
        }
    }
}
