package dev.pgworker.internal.store;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.testing.ClaimSql;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** What a gate admits, and how limits come into effect and go. */
@Tag("thorough")
class LimitGateTest {

    private static final Pattern TRIGGER = Pattern.compile("zz_pgworker_limits_(\\w+)");

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private LimitedJobs jobs;

    @BeforeEach
    void make() {
        jobs = new LimitedJobs(db);
    }

    private long triggers() {
        return jobs.sql(
                        "select count(*) from pg_trigger where tgrelid = '{schema}._private_jobs'::regclass and tgname like 'zz\\_%'")
                .query(Long.class)
                .single();
    }

    @Test
    void aLimitIsAppliedToWhatIsThereAndRemovedFromIt() {
        List<Long> ids = new ArrayList<>();
        for (int i = 0; i < 1200; i++) {
            ids.add(jobs.add("t", "{}"));
        }
        jobs.sql("select id from {schema}.add_job('t', run_at => now() + interval '1 h')")
                .query(Long.class)
                .single();
        long failed = jobs.add("t", "{}");
        jobs.sql("update {schema}._private_jobs set attempts = max_attempts where id = ?")
                .param(failed)
                .update();
        List<Long> running = jobs.claim("w", 3);
        assertThat(triggers()).isZero();

        jobs.limit("l", "{t}", null, 2);

        assertThat(triggers()).isEqualTo(3);
        assertThat(jobs.permits()).isEqualTo(running);
        assertThat(jobs.state(failed)).isEqualTo("failed");
        assertThat(jobs.claim("v", 10)).isEmpty();
        assertThat(jobs.admit()).isZero();
        jobs.complete("w", running.get(0));
        assertThat(jobs.admit()).isZero();
        jobs.complete("w", running.get(1));
        assertThat(jobs.admitAndClaim("v")).containsExactly(ids.get(3));
        jobs.limit("l", "{t}", null, 5);
        assertThat(jobs.admitAndClaim("v")).hasSize(3);
        jobs.limit("l", "{t}", null, 1);
        assertThat(jobs.admit()).isZero();

        assertThat(jobs.sql("select {schema}.pgworker_delete_limit('l')")
                        .query(Boolean.class)
                        .single())
                .isTrue();
        jobs.apply();

        assertThat(jobs.claim("v", 10_000)).hasSize(1200 - 3 - 4 + 0);
        assertThat(triggers()).isZero();
        for (String table : List.of(
                "pgworker_permits",
                "pgworker_limit_lanes",
                "pgworker_limit_turns",
                "pgworker_limit_buckets",
                "pgworker_limited_tasks",
                "pgworker_limits")) {
            assertThat(jobs.sql("select count(*) from {schema}." + table)
                            .query(Long.class)
                            .single())
                    .isZero();
        }
    }

    @Test
    void theFieldAndTheTasksOfALimitMayChange() {
        for (int i = 0; i < 4; i++) {
            jobs.add("t", "{\"a\":1,\"b\":" + i + "}");
        }
        jobs.add("u", "{}");
        jobs.limit("l", "{t}", "{a}", 1);
        long running = jobs.admitAndClaim("w").get(1);

        jobs.limit("l", "{t,u}", "{b}", 1);

        assertThat(jobs.permits()).hasSize(2).contains(running);
        assertThat(jobs.admitAndClaim("v")).hasSize(3);
        jobs.limit("l", "{u}", "{b}", 1);
        assertThat(jobs.permits()).hasSize(1);
        assertThat(jobs.state(jobs.add("t", "{}"))).isEqualTo("available");
    }

    @Test
    void severalLimitsOfAJobHold() {
        jobs.limit("all", "{t,u}", null, 3);
        jobs.limit("tenants", "{t}", "{tenant}", 2);
        for (int i = 0; i < 5; i++) {
            jobs.add("t", "{\"tenant\":1}");
            jobs.add("t", "{\"tenant\":2}");
            jobs.add("u", "{\"tenant\":1}");
        }

        for (int round = 0; round < 15; round++) {
            jobs.admit();
            List<Long> claimed = jobs.claim("w", 100);
            assertThat(runningOf("task_id > 0")).isEqualTo(round == 13 ? 2 : round == 14 ? 1 : 3);
            assertThat(runningOf("task_id = (select id from {schema}._private_tasks where identifier = 't')"
                            + " and payload ->> 'tenant' = '1'"))
                    .isLessThanOrEqualTo(2);
            jobs.complete(
                    "w",
                    jobs.sql("select min(id) from {schema}._private_jobs where locked_by = 'w'")
                            .query(Long.class)
                            .single());
            assertThat(claimed).hasSizeLessThanOrEqualTo(3);
        }
        assertThat(db.jobs()).isZero();
        assertThat(jobs.permits()).isEmpty();
    }

    private long runningOf(String condition) {
        return jobs.sql("select count(*) from {schema}._private_jobs where locked_by = 'w' and " + condition)
                .query(Long.class)
                .single();
    }

    @Test
    void lanesOfABucketTakeTurns() {
        jobs.limit("group", "{a,b,c}", null, 1);
        for (int i = 0; i < 30; i++) {
            jobs.add(i < 20 ? "a" : i < 25 ? "b" : "c", "{}");
        }
        List<String> started = new ArrayList<>();
        for (int i = 0; i < 9; i++) {
            long id = jobs.admitAndClaim("w").get(0);
            started.add(jobs.sql("select task_identifier from {schema}.jobs where id = ?")
                    .param(id)
                    .query(String.class)
                    .single());
            jobs.complete("w", id);
        }

        assertThat(started.subList(0, 3)).containsExactlyInAnyOrder("a", "b", "c");
        assertThat(started.subList(3, 6)).isEqualTo(started.subList(0, 3));
        assertThat(started.subList(6, 9)).isEqualTo(started.subList(0, 3));
    }

    @Test
    void aBetterPriorityComesFirst() {
        jobs.limit("group", "{a,b}", null, 1);
        jobs.add("a", "{}");
        long urgent = jobs.sql("select id from {schema}.add_job('b', priority => -1)")
                .query(Long.class)
                .single();

        assertThat(jobs.admitAndClaim("w")).containsExactly(urgent);
    }

    @Test
    void aQueueIsOfferedOneJobWhileItIsFree() {
        jobs.limit("l", "{t}", null, 10);
        for (int i = 0; i < 3; i++) {
            jobs.sql("select id from {schema}.add_job('t', queue_name => 'q')")
                    .query(Long.class)
                    .single();
        }

        assertThat(jobs.admit()).isOne();
        assertThat(jobs.admit()).isZero();
        List<Long> first = jobs.claim("w", 10);
        assertThat(first).hasSize(1);
        assertThat(jobs.admit()).isZero();
        jobs.complete("w", first.get(0));
        assertThat(jobs.admitAndClaim("w")).hasSize(1).doesNotContain(first.get(0));
    }

    @Test
    void tasksThatAGateDoesNotServeAreAdmittedIfNobodyDoes() {
        jobs.limit("l", "{t}", null, 1);
        long id = jobs.add("t", "{}");
        jobs.sql("select {schema}.worker_heartbeat('other', '{\"tasks\":[\"t\"]}')")
                .query()
                .listOfRows();

        assertThat(jobs.admit("array[-1]")).isZero();
        jobs.sql("select {schema}.worker_heartbeat('other', '{\"tasks\":\"t\"}')")
                .query()
                .listOfRows();

        assertThat(jobs.admit("array[-1]")).isOne();
        assertThat(jobs.state(id)).isEqualTo("available");
    }

    @Test
    void jobsThatNobodyStartsGiveTheirPermitsToOthers() {
        jobs.limit("l", "{t,u}", null, 1);
        long idle = jobs.add("t", "{}");
        assertThat(jobs.admit()).isOne();
        jobs.add("t", "{}");
        jobs.age(Duration.ofSeconds(6));
        jobs.sql("select {schema}.pgworker_check_permits()").query().listOfRows();
        assertThat(jobs.state(idle)).isEqualTo("available");

        long waiting = jobs.add("u", "{}");
        jobs.sql(
                        "select admitted from {schema}.pgworker_admit(array(select id from {schema}._private_tasks), null, null, true,"
                                + " null, 10)")
                .query(Long.class)
                .single();
        assertThat(jobs.sql("select {schema}.pgworker_check_permits()")
                        .query(Long.class)
                        .single())
                .isOne();

        assertThat(jobs.state(idle)).isEqualTo("parked");
        assertThat(jobs.admitAndClaim("w")).containsExactly(waiting);
    }

    @Test
    void oneThatDoesNotLetItselfBeChangedKeepsNobodyElsesPermit() {
        jobs.limit("l", "{t,u}", null, 2);
        long bad = jobs.add("t", "{}");
        long idle = jobs.add("t", "{}");
        assertThat(jobs.admit()).isEqualTo(2);
        jobs.add("u", "{}");
        jobs.admit();
        jobs.age(Duration.ofSeconds(6));
        refuseChangesOf(bad);

        jobs.sql("select {schema}.pgworker_check_permits()").query(Long.class).single();

        assertThat(jobs.state(bad)).isEqualTo("available");
        assertThat(jobs.state(idle)).isEqualTo("parked");
        assertThat(jobs.admit()).isOne();
    }

    @Test
    void aRateAllowsTheBurstAndThenItsPace() {
        jobs.rate("r", "{t}", "{tenant}", 100, "1 second", 12);
        for (int i = 0; i < 300; i++) {
            jobs.add("t", "{}");
        }
        jobs.add("t", "{\"tenant\":\"other\"}");
        long begin = System.nanoTime();
        long started = 0;
        assertThat(jobs.admit()).isEqualTo(13);
        started += jobs.claim("w", 1000).size() - 1;
        double before = 0;
        double earned = 0;
        while (before < 1.5) {
            jobs.admit();
            double until = (System.nanoTime() - begin) / 1e9;
            started += jobs.claim("w", 1000).size();
            assertThat(started).isLessThanOrEqualTo((long) (12 + 100 * until) + 1);
            // What is not taken within the time of a burst is lost.
            earned += 100 * Math.min(until - before, 0.12);
            before = until;
        }

        assertThat(started).isGreaterThan((long) (earned * 0.9));
        assertThat(jobs.sql(
                                "select waits[1] from {schema}.pgworker_admit(array(select id from {schema}._private_tasks), null,"
                                        + " null, true, null, 10)")
                        .query(Double.class)
                        .single())
                .isBetween(0.0, 0.0101);
    }

    @Test
    void jobsThatWereAdmittedButHaveNotStartedUseUpTheBurst() throws InterruptedException {
        jobs.rate("r", "{t}", null, 1000, "1 second", 100);
        for (int i = 0; i < 300; i++) {
            jobs.add("t", "{}");
        }
        assertThat(jobs.admit()).isEqualTo(100);

        long until = System.nanoTime() + Duration.ofMillis(300).toNanos();
        while (System.nanoTime() < until) {
            assertThat(jobs.admit()).isZero();
        }

        assertThat(jobs.claim("w", 1000)).hasSize(100);
        assertThat(jobs.admit()).as("none is made up for at once").isZero();
        Awaitility.await().until(() -> jobs.admit() > 0);
    }

    @Test
    void tenThousandValuesAreWalkedThrough() {
        jobs.limit("l", "{t}", "{tenant}", 1);
        jobs.sql(
                        "select {schema}.pgworker_add_jobs(array_agg('t'::text), array_agg('{\"tenant\":' || i % 10000 || '}'), null,"
                                + " null, null, null, null) from generate_series(1, 20000) i")
                .query()
                .listOfRows();
        Set<Long> admitted = new HashSet<>();
        String after = null;
        do {
            Map<String, Object> row = jobs.sql(
                            "select admitted, next_after from {schema}.pgworker_admit(array(select id from"
                                    + " {schema}._private_tasks), null, null, true, ?, 1000)")
                    .param(after)
                    .query()
                    .singleRow();
            after = (String) row.get("next_after");
            admitted.addAll(jobs.claim("w", 1000));
        } while (after != null);

        assertThat(admitted).hasSize(10_000);
        assertThat(jobs.admit()).isZero();
    }

    @Test
    void lanesBehindManyFullOnesHaveTheirTurn() {
        jobs.limit("all", "{t}", null, 1000);
        jobs.limit("tenants", "{t}", "{tenant}", 1);
        jobs.sql(
                        "select {schema}.pgworker_add_jobs(array_agg('t'::text), array_agg('{\"tenant\":' || i % 150 || '}'), null,"
                                + " null, null, null, null) from generate_series(1, 300) i")
                .query()
                .listOfRows();
        assertThat(jobs.admitAndClaim("w")).hasSize(150);
        jobs.sql(
                        "delete from {schema}._private_jobs where id = (select max(job_id) from {schema}.pgworker_permits where bucket_id ="
                                + " (select t.bucket_id from {schema}.pgworker_limit_turns t join {schema}.pgworker_limit_buckets b on b.id ="
                                + " t.bucket_id and b.value <> '' order by t.lane desc limit 1))")
                .update();
        jobs.sql("update {schema}.pgworker_limit_buckets set turn = ''").update();

        long admitted = 0;
        for (int look = 0; look < 2; look++) {
            admitted += jobs.sql(
                            "select admitted from {schema}.pgworker_admit(array(select id from {schema}._private_tasks), null,"
                                    + " array(select id from {schema}.pgworker_limit_buckets where value = ''), false, null, 1000)")
                    .query(Long.class)
                    .single();
        }
        assertThat(admitted).isOne();
    }

    @Test
    void jobsWithAForbiddenFlagDoNotHoldOthersUp() {
        jobs.limit("l", "{t}", null, 1);
        jobs.sql("select id from {schema}.add_job('t', flags => array['f'])")
                .query(Long.class)
                .single();
        assertThat(jobs.admit()).isOne();
        long other = jobs.add("t", "{}");
        assertThat(jobs.admit()).isZero();
        assertThat(claimWithout("f")).isEmpty();
        jobs.age(Duration.ofSeconds(6));

        jobs.sql("select {schema}.pgworker_check_permits()").query().listOfRows();
        jobs.admit();

        assertThat(claimWithout("f")).containsExactly(other);
    }

    private List<Long> claimWithout(String flag) {
        return jobs.sql("select id from " + ClaimSql.claim("'w'", "10", "array[?]", "null") + " c")
                .param(flag)
                .query(Long.class)
                .list();
    }

    @Test
    void aGateThatDiesHasAdmittedNothing() throws SQLException {
        jobs.limit("l", "{t}", null, 1);
        long id = jobs.add("t", "{}");
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.execute(db.schema()
                    .in("select {schema}.pgworker_admit(array(select id from {schema}._private_tasks), null,"
                            + " null, true, null, 10)"));
            assertThatThrownBy(jobs::admit).hasMessageContaining("lock timeout");
            jobs.add("t", "{}");
            jobs.sql(
                            "select pg_terminate_backend(pid) from pg_locks where relation = '{schema}.pgworker_limit_state'::regclass and granted")
                    .query()
                    .listOfRows();
            assertThatThrownBy(connection::commit).isInstanceOf(SQLException.class);
        }

        assertThat(jobs.permits()).isEmpty();
        assertThat(jobs.admitAndClaim("w")).containsExactly(id);
    }

    @Test
    void gatesLookAtWhatIsCommittedOnly() throws SQLException {
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            assertThatThrownBy(() -> statement.execute(
                            db.schema().in("select {schema}.pgworker_admit(array[1], null, null, true, null, 10)")))
                    .hasMessageContaining("read committed only");
            connection.rollback();
        }
    }

    @Test
    void gatesGoOnWhileJobsAreMadeToWait() throws SQLException {
        long id = jobs.add("t", "{}");
        jobs.sql("select name from {schema}.pgworker_put_limit('l', '{t}', max_running => 1)")
                .query(String.class)
                .single();
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            boolean parked = false;
            while (!parked) {
                connection.commit();
                statement.execute(db.schema().in("select * from {schema}.pgworker_apply_limits()"));
                try (ResultSet row = statement.executeQuery(db.schema()
                        .in("select {schema}.pgworker_parked(locked_at) from {schema}._private_jobs where id = "
                                + id))) {
                    row.next();
                    parked = row.getBoolean(1);
                }
            }

            assertThat(jobs.admit()).isZero();

            connection.commit();
        }
        assertThat(jobs.admitAndClaim("w")).containsExactly(id);
    }

    @Test
    void aTransactionThatDoesNotKnowALimitIsWaitedFor() throws SQLException {
        jobs.limit("other", "{t}", null, 1000);
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.execute("set local session_replication_role = replica");
            statement.execute(db.schema().in("select {schema}.add_job('t')"));
            jobs.sql("select name from {schema}.pgworker_put_limit('l', '{t}', max_running => 1)")
                    .query(String.class)
                    .single();
            assertThat(step()).isNull();
            assertThat(step()).isEqualTo("waiting");
            assertThat(jobs.sql("select state from {schema}.pgworker_limits where name = 'l'")
                            .query(String.class)
                            .single())
                    .isEqualTo("applying");
            jobs.sql("update {schema}.pgworker_limits set looked_at = looked_at - interval '11 s'")
                    .update();
            assertThat(step()).as("permits are forgotten").isNull();
            assertThat(step()).as("jobs are gone through").isNull();
            assertThat(step()).isEqualTo("later");
            connection.commit();
            connection.setAutoCommit(true);
        }
        long running = jobs.claim("w", 1).get(0);

        jobs.apply();

        jobs.add("t", "{}");
        assertThat(jobs.permits()).containsExactly(running, running);
        assertThat(jobs.admit()).isZero();
    }

    @Test
    void whoHasWrittenJobsIsWaitedForBeforeTheTriggersLearnOfATask() throws SQLException {
        jobs.limit("other", "{u}", null, 1);
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.execute(db.schema().in("select {schema}.add_job('v')"));
            jobs.sql("select name from {schema}.pgworker_put_limit('l', '{t}', max_running => 1)")
                    .query(String.class)
                    .single();
            assertThat(step()).isEqualTo("busy");
            assertThat(jobs.state(jobs.add("u", "{}"))).isEqualTo("parked");
            connection.commit();
            connection.setAutoCommit(true);
        }

        jobs.apply();

        assertThat(jobs.state(jobs.add("t", "{}"))).isEqualTo("parked");
    }

    @Test
    void jobsOfOtherTasksEnterNoFunction() {
        jobs.limit("l", "{t}", null, 1);
        assertThat(triggersOf("t")).contains("added", "changed", "deleted");
        assertThat(triggersOf("u")).isEmpty();

        jobs.limit("l", "{u}", null, 1);

        assertThat(triggersOf("t")).isEmpty();
        assertThat(triggersOf("u")).contains("added", "changed", "deleted");
    }

    /** Adds a job, gives it back and deletes it; returns which triggers of the limits were called. */
    private Set<String> triggersOf(String task) {
        jobs.sql("insert into {schema}._private_tasks (identifier) values (?) on conflict do nothing")
                .param(task)
                .update();
        Set<String> called = new HashSet<>();
        for (String statement : List.of(
                "insert into {schema}._private_jobs (task_id) select id from {schema}._private_tasks where identifier = '"
                        + task + "'",
                "update {schema}._private_jobs set locked_at = now(), locked_by = 'w'",
                "update {schema}._private_jobs set locked_at = null, locked_by = null, run_at = now()",
                "update {schema}._private_jobs set locked_at = now(), locked_by = 'w'",
                "delete from {schema}._private_jobs")) {
            for (String line : jobs.sql("explain (analyze) " + statement)
                    .query(String.class)
                    .list()) {
                Matcher matcher = TRIGGER.matcher(line);
                if (matcher.find()) {
                    called.add(matcher.group(1));
                }
            }
        }
        return called;
    }

    @Test
    void theRowOfALimitedTaskStays() {
        jobs.limit("l", "{t}", null, 1);
        jobs.sql("delete from {schema}._private_tasks").update();
        assertThat(jobs.state(jobs.add("t", "{}"))).isEqualTo("parked");
    }

    @Test
    void aTaskThatGotAnotherIdIsNoticed() {
        jobs.limit("l", "{t}", null, 1);
        jobs.sql("truncate {schema}._private_tasks cascade").update();
        assertThat(jobs.state(jobs.add("t", "{}"))).isEqualTo("available");

        jobs.sql("select {schema}.pgworker_check_permits()").query().listOfRows();
        jobs.apply();

        assertThat(jobs.state(jobs.add("t", "{}"))).isEqualTo("parked");
        assertThat(jobs.admit()).isOne();
        assertThat(jobs.admit()).isZero();
    }

    @Test
    void moreHoldersThanCanBeLookedAtEachTimeAreLookedAtByTurns() {
        jobs.limit("l", "{t}", null, 3000);
        jobs.sql(
                        "select {schema}.pgworker_add_jobs(array_agg('t'::text), array_agg('{}'::text), null, null, null, null, null)"
                                + " from generate_series(1, 8000)")
                .query()
                .listOfRows();
        for (int i = 0; i < 3; i++) {
            assertThat(jobs.admit()).isEqualTo(1000);
        }
        assertThat(jobs.admit()).isZero();
        Set<Long> first = Set.copyOf(jobs.claim("w", 3000));
        assertThat(first).hasSize(3000);
        jobs.sql("delete from {schema}._private_jobs where locked_by = 'w' and id % 3 = 0")
                .update();
        long ended = 3000
                - jobs.sql("select count(*) from {schema}._private_jobs where locked_by = 'w'")
                        .query(Long.class)
                        .single();

        Awaitility.await().until(() -> {
            jobs.admit();
            assertThat(jobs.permits()).hasSizeLessThanOrEqualTo(3000);
            return jobs.claim("v", 3000).isEmpty() && jobs.permits().size() == 3000;
        });

        assertThat(runningOf("true")).isEqualTo(3000 - ended);
    }

    @Test
    void deadEntriesInFrontAreNotReadWhileASnapshotIsHeld() throws SQLException {
        int ended = 40_000;
        jobs.limit("l", "{t}", null, 1000);
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            statement.execute("select 1 from pg_class limit 1");
            jobs.addMany(ended + 2000);
            assertThat(jobs.admitUntold()).isEqualTo(1000);
            long buffers = buffersOfAGate();
            jobs.sql("delete from {schema}._private_jobs where is_available").update();
            jobs.admitAndDelete(ended - 1000);
            assertThat(jobs.admitUntold()).isEqualTo(1000);
            assertThat(jobs.admitUntold()).isZero();

            assertThat(buffersOfAGate()).isLessThan(buffers + ended / 20);

            long told = jobs.sql("select id from {schema}.add_job('t', run_at => now() - interval '1 day')")
                    .query(Long.class)
                    .single();
            makeRoom();
            admitNext(() -> jobs.sql(
                            "select admitted from {schema}.pgworker_admit(array(select id from {schema}._private_tasks), array["
                                    + "substr((select locked_by from {schema}._private_jobs where id = ?), 16) || ' 0 1'], null, false, null,"
                                    + " 1)")
                    .param(told)
                    .query(Long.class)
                    .single());
            assertThat(jobs.state(told)).isEqualTo("available");

            while (floored() == 0) {
                makeRoom();
                admitNext(jobs::admitUntold);
            }
            long unheard = jobs.sql("select id from {schema}.add_job('t', priority => -1)")
                    .query(Long.class)
                    .single();
            makeRoom();
            admitNext(jobs::admitUntold);
            assertThat(jobs.state(unheard)).isEqualTo("parked");
            jobs.sql("update {schema}.pgworker_limit_lanes set floor_until = now() - interval '1 s'")
                    .update();
            jobs.sql("select {schema}.pgworker_check_permits()").query().listOfRows();
            makeRoom();
            admitNext(jobs::admitUntold);
            assertThat(jobs.state(unheard)).isEqualTo("available");
            connection.rollback();
        }
    }

    private void makeRoom() {
        jobs.sql("delete from {schema}._private_jobs where id = (select max(job_id) from {schema}.pgworker_permits)")
                .update();
    }

    /** Of a thousand holders a gate looks at some each time, and may not see at once that one has ended; then it sees two. */
    private static void admitNext(Callable<Long> gate) {
        Awaitility.await().pollDelay(Duration.ZERO).until(gate, admitted -> admitted > 0);
    }

    /** Returns how many lanes have a floor that lies behind jobs which have been added a moment ago. */
    private long floored() {
        return jobs.sql(
                        "select count(*) from {schema}.pgworker_limit_lanes where floor_priority = 0 and floor_run_at > now() -"
                                + " interval '1 h'")
                .query(Long.class)
                .single();
    }

    /**
     * Returns the fewest buffers that three gates touch which look at all holders and let jobs in: the first one of a session also reads
     * what it takes to plan.
     */
    private long buffersOfAGate() {
        long least = Long.MAX_VALUE;
        for (int i = 0; i < 3; i++) {
            makeRoom();
            List<Long> before;
            long buffers;
            do {
                before = jobs.permits();
                jobs.lookAtAllHolders();
                buffers = jobs.buffers(
                        "select * from {schema}.pgworker_admit(array(select id from {schema}._private_tasks), null,"
                                + " array(select id from {schema}.pgworker_limit_buckets), true, null, 1000)");
            } while (before.containsAll(jobs.permits()));
            least = Math.min(least, buffers);
        }
        return least;
    }

    private String step() {
        return (String) jobs.sql("select * from {schema}.pgworker_apply_limits(500)")
                .query()
                .singleRow()
                .get("note");
    }

    @Test
    void aSnapshotThatIsOlderThanALimitAddsNoJob() throws SQLException {
        jobs.limit("other", "{u}", null, 1);
        jobs.add("t", "{}");
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            statement.execute("select 1 from pg_class limit 1");
            jobs.limit("l", "{t}", null, 1);

            assertThatThrownBy(() -> statement.execute(db.schema().in("select {schema}.add_job('t')")))
                    .satisfies(e -> assertThat(((SQLException) e).getSQLState()).isEqualTo("40001"));
            connection.rollback();
        }
    }

    @Test
    void whatIsWrongWithALimitIsSaid() {
        for (Map.Entry<String, String> wrong : Map.of(
                        "null, '{t}', max_running => 1", "name must have 1 to 128 characters",
                        "'l', '{}', max_running => 1", "task_identifiers must name 1 to 1000 tasks",
                        "'l', '{t,null}', max_running => 1", "task_identifiers must each have",
                        "'l', '{t}'", "Exactly one of max_running and max_starts",
                        "'l', '{t}', max_running => 0", "max_running must be between 1 and 1000000",
                        "'l', '{t}', max_running => 1, burst => 1", "period and burst belong to max_starts",
                        "'l', '{t}', max_starts => 1", "period must be between",
                        "'l', '{t}', max_starts => 1, period => '-1 year 361 days'", "period must be between",
                        "'l', '{t}', max_starts => 1000, period => '1 s', burst => 99", "burst must be between 100",
                        "'l', '{t}', array[null]::text[], max_running => 1", "field must be null or 1 to 20 names")
                .entrySet()) {
            assertThatThrownBy(() -> jobs.sql("select {schema}.pgworker_put_limit(" + wrong.getKey() + ")")
                            .query()
                            .listOfRows())
                    .rootCause()
                    .hasMessageContaining(wrong.getValue());
        }
    }

    @Test
    void eachOfThousandsOfBucketsTakesNoLongerThanEachOfHundreds() {
        jobs.sql("select {schema}.pgworker_put_limit('c', '{t}', '{tenant}', max_running => 2),"
                        + " {schema}.pgworker_put_limit('r', '{t}', '{tenant}', max_starts => 1, period => '1 h')")
                .query()
                .listOfRows();
        jobs.sql("update {schema}.pgworker_limits set state = 'active'").update();
        jobs.sql("""
                insert into {schema}.pgworker_limit_buckets (limit_id, value, holders, since)
                select l.id, g::text, array[g], array[0] from {schema}.pgworker_limits l, generate_series(1, 4000) g""").update();

        for (String look : List.of(
                "{schema}.pgworker_rooms(b.ids, now())",
                "{schema}.pgworker_note_holders(b.ids, b.ids, b.ids, b.ids, now())")) {
            assertThat(leastMicros(look, 8_000)).isLessThan(50 * leastMicros(look, 800));
        }
    }

    private long leastMicros(String look, int buckets) {
        String sql = "select f.* from (select array(select id from {schema}.pgworker_limit_buckets order by id limit "
                + buckets + ") as ids) b cross join lateral " + look + " f";
        long least = Long.MAX_VALUE;
        for (int i = 0; i < 20; i++) {
            long began = System.nanoTime();
            jobs.sql(sql).query().listOfRows();
            least = Math.min(least, TimeUnit.NANOSECONDS.toMicros(System.nanoTime() - began));
        }
        return least;
    }

    @Test
    void thePathOfAFieldHasOneDimension() {
        assertThat(jobs.sql("select field::text from {schema}.pgworker_put_limit("
                                + "'l', '{t}', array[['customer', 'id'], ['0', 'x']], max_running => 1)")
                        .query(String.class)
                        .single())
                .isEqualTo("{customer,id,0,x}");
        assertThat(jobs.sql("select field is null from {schema}.pgworker_put_limit('l', '{t}', '{}', max_running => 1)")
                        .query(Boolean.class)
                        .single())
                .isTrue();
    }

    @Test
    void aTriggerThatRefusesAJobHoldsUpItsLaneOnly() {
        jobs.limit("l", "{t}", "{tenant}", 1);
        long bad = jobs.add("t", "{\"tenant\":\"bad\"}");
        long good = jobs.add("t", "{\"tenant\":\"good\"}");
        refuseChangesOf(bad);

        assertThat(jobs.admitAndClaim("w")).containsExactly(good);
        assertThat(jobs.permits()).containsExactly(good);
    }

    @Test
    void aJobThatNeitherWaitsNorLetsItselfBeChangedHoldsUpItselfOnly() {
        jobs.limit("l", "{t}", null, 1);
        jobs.limit("m", "{other}", null, 1);
        long bad = jobs.add("t", "{\"bad\":1}");
        long second = jobs.add("t", "{}");
        long other = jobs.add("other", "{}");
        refuseChangesOf(bad);
        jobs.sql("select {schema}.pgworker_delete_limit('l')")
                .query(Boolean.class)
                .single();

        assertThat(jobs.admitAndClaim("w")).containsExactlyInAnyOrder(second, other);
        assertThat(jobs.state(bad)).isEqualTo("parked");
    }

    @Test
    void aRateGoesOnAfterTheClockWasSetBack() {
        jobs.rate("r", "{t}", null, 10, "1 second", 1);
        jobs.add("t", "{}");
        jobs.add("t", "{}");
        assertThat(jobs.admitAndClaim("w")).hasSize(1);
        jobs.sql("update {schema}.pgworker_limit_buckets set filled_at = filled_at + interval '1 day'")
                .update();

        assertThat(jobs.admit()).isZero();
        Awaitility.await().until(() -> jobs.admit() > 0);
    }

    @Test
    void aRateThatIsRemovedAndMadeAgainOwesNothingForJobsThatStillWait() {
        jobs.rate("r", "{t}", null, 10, "1 second", 10);
        for (int i = 0; i < 50; i++) {
            jobs.add("t", "{}");
        }
        assertThat(jobs.admitAndClaim("w")).hasSize(10);
        jobs.sql("select {schema}.pgworker_delete_limit('r')")
                .query(Boolean.class)
                .single();
        assertThat(jobs.admit()).as("let go").isEqualTo(40);

        jobs.rate("r", "{t}", null, 10, "1 second", 10);

        assertThat(jobs.sql("select count(*) from {schema}._private_jobs where {schema}.pgworker_parked(locked_at)")
                        .query(Long.class)
                        .single())
                .isEqualTo(40);
        assertThat(jobs.sql("select min(tokens) from {schema}.pgworker_limit_buckets")
                        .query(Double.class)
                        .single())
                .isNotNegative();
        Awaitility.await().until(() -> jobs.admit() > 0);
    }

    /** A trigger of somebody's. */
    private void refuseChangesOf(long id) {
        jobs.sql("create function {schema}.refuse() returns trigger language plpgsql as $$ begin if new.id = " + id
                        + " then raise exception 'no'; end if; return new; end $$")
                .update();
        jobs.sql(
                        "create trigger refuse before update on {schema}._private_jobs for each row execute function {schema}.refuse()")
                .update();
    }
}
