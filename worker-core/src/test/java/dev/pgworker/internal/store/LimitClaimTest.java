package dev.pgworker.internal.store;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.LongStream;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.dao.DataAccessException;

import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** What a claim of limited jobs takes, and what stands in nobody's way. */
@Tag("thorough")
class LimitClaimTest {

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private LimitedJobs jobs;

    @BeforeEach
    void create() {
        jobs = new LimitedJobs(db);
    }

    /** Claims and completes until a claim finds nothing; returns how many jobs each claim took. */
    private List<Integer> drain(int wanted, String forbidden, String tasks) {
        List<Integer> sizes = new ArrayList<>();
        while (true) {
            List<Long> claimed = jobs.claim("w", wanted, forbidden, tasks);
            if (claimed.isEmpty()) {
                return sizes;
            }
            sizes.add(claimed.size());
            claimed.forEach(id -> jobs.complete("w", id));
        }
    }

    @Test
    void jobsOfTasksThatNobodyServesStandInNobodysWay() {
        jobs.limit("l", "{n,b}", null, 2);
        for (int i = 0; i < 20; i++) {
            jobs.add("n", "{}");
        }
        for (int i = 0; i < 10; i++) {
            jobs.add("b", "{}");
        }

        // As is a paused task.
        assertThat(drain(10, "null", "t.identifier <> 'n'")).containsExactly(2, 2, 2, 2, 2);
        assertThat(drain(100, "null", "true")).hasSize(10);
    }

    @Test
    void jobsWithForbiddenFlagsStandInNobodysWay() {
        jobs.limit("l", "{t}", "{tenant}", 2);
        for (int i = 0; i < 10; i++) {
            jobs.add("t", "{}", "flags => '{f}'");
        }
        for (int i = 0; i < 6; i++) {
            jobs.add("t", "{}");
        }

        assertThat(drain(10, "array['f']", "true")).containsExactly(2, 2, 2);
        assertThat(drain(10, "null", "true")).containsExactly(2, 2, 2, 2, 2);
    }

    /** What does not fit beside its own value in a row is what is looked at last. */
    @Test
    void aLargePayloadWithAForbiddenFlagStandsInNobodysWay() {
        jobs.limit("l", "{a}", null, 1);
        jobs.sql("""
                select id from {schema}.add_job('a', (select to_json(string_agg(md5(n::text), '')) from generate_series(1, 2500) n),
                  flags => '{f}')
                """).query(Long.class).single();
        for (int i = 0; i < 20; i++) {
            jobs.add("a", "{}");
        }

        assertThat(drain(10, "array['f']", "true")).hasSize(20).containsOnly(1);
        assertThat(drain(10, "null", "true")).containsExactly(1);
    }

    @Test
    void aJobThatIsMovedToAnotherTaskLeavesNoPermitBehind() {
        jobs.limit("l", "{a}", null, 1);
        long moved = jobs.addWithKey("a", "{}", "k", "replace");
        long next = jobs.add("a", "{}");
        assertThat(jobs.add("b", "{}", "job_key => 'k', run_at => now() + interval '1 year'"))
                .isEqualTo(moved);
        assertThat(jobs.state(moved)).isEqualTo("available");
        assertThat(jobs.claim("w", 10)).containsExactly(next);

        jobs.sql("truncate {schema}._private_jobs restart identity").update();
        long first = jobs.add("a", "{}");
        jobs.add("a", "{}");

        assertThat(jobs.claim("w", 10)).containsExactly(first);
        assertThat(jobs.claim("v", 10)).isEmpty();
    }

    @Test
    void aRowThatSomebodyHoldsIsLeftOut() throws SQLException {
        jobs.limit("l", "{t}", null, 1);
        long held = jobs.add("t", "{}");
        long next = jobs.add("t", "{}");
        try (Connection stranger = db.dataSource().getConnection();
                Statement lock = stranger.createStatement()) {
            stranger.setAutoCommit(false);
            lock.execute(db.schema().in("select from {schema}._private_jobs where id = " + held + " for update"));

            assertThat(jobs.claim("w", 1)).containsExactly(next);
            jobs.complete("w", next);
            stranger.rollback();
        }
        awaitClaim(held);
    }

    /** A lane whose first job somebody holds is tried again soon. */
    private void awaitClaim(long id) {
        List<Long> claimed = List.of();
        for (int i = 0; i < 100_000 && claimed.isEmpty(); i++) {
            claimed = jobs.claim("w", 1);
        }
        assertThat(claimed).containsExactly(id);
    }

    @Test
    void aLimitThatStaysAsItIsWritesNothing() throws SQLException {
        jobs.limit("l", "{t}", "{tenant}", 1);
        jobs.rate("r", "{t}", null, 5, "1 second", 5);
        jobs.share("s", "{t}", "{tenant}", "{\"a\":2}");
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            for (String put : List.of(
                    "pgworker_put_limit('l', '{t}', '{tenant}', max_running => 1)",
                    "pgworker_put_limit('r', '{t,t}', null, max_starts => 5, period => '1 second', burst => 5)",
                    "pgworker_put_fair_share('s', '{t}', '{tenant}', '{\"a\":2}')")) {
                statement.execute(db.schema().in("select name from {schema}." + put));
                assertThat(single(statement, "select txid_current_if_assigned()::text"))
                        .as(put)
                        .isNull();
            }
            assertThat(single(
                            statement,
                            "select string_agg(distinct mode, ' ') from pg_locks where pid = pg_backend_pid()"
                                    + " and locktype = 'relation'"))
                    .isEqualTo("AccessShareLock");
            connection.commit();
        }
    }

    private static String single(Statement statement, String sql) throws SQLException {
        try (ResultSet row = statement.executeQuery(sql)) {
            row.next();
            return row.getString(1);
        }
    }

    @Test
    void openTransactionsOfAnyLevelAddJobsWhateverBecomesOfLimits() throws SQLException {
        jobs.limit("l", "{t}", "{tenant}", 1);
        try (Connection adder = db.dataSource().getConnection();
                Statement statement = adder.createStatement()) {
            adder.setAutoCommit(false);
            adder.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            String add = db.schema().in("select {schema}.add_job('t', '{\"tenant\":\"a\"}')");
            statement.execute(add);

            jobs.add("t", "{\"tenant\":\"a\"}");
            assertThat(jobs.claim("w", 1)).hasSize(1);
            jobs.limit("l", "{t}", "{tenant}", 1);
            statement.execute(add);
            jobs.limit("l", "{t}", "{tenant}", 2);
            statement.execute(add);
            // One that the transaction does not see.
            jobs.limit("other", "{t}", null, 2);
            statement.execute(add);
            adder.commit();
            adder.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        }
        jobs.apply();

        assertThat(jobs.phase("other")).isEqualTo("active");
        assertThat(jobs.claim("w", 10)).hasSize(1);
        assertThat(jobs.claimOrdinary("w", 10)).isEmpty();
    }

    @Test
    void limitsArePutWithoutALookAtOthersOrAtJobs() throws SQLException {
        jobs.addMany("free", "'{}'", 1000);
        jobs.putLimit("first", "{t}", null, 1);
        long few = putBuffers("{few}");
        for (int i = 0; i < 1200; i++) {
            jobs.putLimit("l" + i, "{t" + i + "}", null, 1);
        }
        // In pages, the more rows the more.
        assertThat(putBuffers("{many}")).isLessThan(few + 500);
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.execute(
                    db.schema().in("select name from {schema}.pgworker_put_limit('none', '{none}', max_running => 1)"));
            assertThat(single(
                            statement,
                            db.schema()
                                    .in("select seq_tup_read + coalesce(idx_tup_fetch, 0) from pg_stat_xact_all_tables"
                                            + " where relid = '{schema}._private_jobs'::regclass")))
                    .isEqualTo("0");
            connection.rollback();
        }

        int passes = 0;
        while (!jobs.sql("select {schema}.pgworker_apply_limits(5000)")
                .query(String.class)
                .single()
                .equals("later")) {
            assertThat(++passes).as("one pass for all limits").isLessThan(20);
        }
        assertThat(jobs.phase("l1199")).isEqualTo("active");
    }

    private long putBuffers(String tasks) {
        jobs.sql("select name from {schema}.pgworker_put_limit(?, ?::text[], max_running => 1)")
                .params("warm" + tasks, tasks)
                .query(String.class)
                .single();
        return jobs.buffers(
                "select name from {schema}.pgworker_put_limit(?, ?::text[], max_running => 1)", "b" + tasks, tasks);
    }

    @Test
    void severalLimitsHoldTogether() {
        jobs.limit("each", "{t}", "{tenant}", 2);
        jobs.limit("all", "{t,u}", null, 3);
        jobs.addMany("t", "'{\"tenant\":\"' || n % 2 || '\"}'", 10);
        jobs.addMany("u", "'{}'", 4);

        assertThat(jobs.claim("w", 100)).hasSize(3);
        assertThat(jobs.claim("v", 100)).isEmpty();
        assertThat(jobs.sql(
                                "select max(c.n) from (select count(*) as n from {schema}._private_jobs j where j.locked_by = 'w'"
                                        + " group by j.task_id, j.payload ->> 'tenant') c")
                        .query(Integer.class)
                        .single())
                .isLessThanOrEqualTo(2);
        jobs.sql("delete from {schema}._private_jobs where locked_by = 'w'").update();
        assertThat(drain(100, "null", "true").stream().mapToInt(n -> n).sum()).isEqualTo(11);
        assertThat(jobs.used()).isZero();
    }

    @Test
    void aConcurrencyAndARateHoldTogether() {
        jobs.limit("c", "{t}", null, 3);
        jobs.rate("r", "{t}", null, 1, "1 day", 5);
        jobs.addMany("t", "'{}'", 10);

        assertThat(drain(100, "null", "true")).containsExactly(3, 2);
    }

    @Test
    void tokensAreSpentByClaimsAndComeWithTime() {
        jobs.rate("r", "{t}", "{tenant}", 1, "1 hour", 10);
        jobs.addMany("t", "'{\"tenant\":\"a\"}'", 30);
        jobs.add("t", "{\"tenant\":\"b\"}");

        assertThat(drain(100, "null", "t.identifier = 't'").stream()
                        .mapToInt(n -> n)
                        .sum())
                .isEqualTo(11);
        assertThat(secondsUntilNext()).isBetween(3_000.0, 3_600.0);
        pass("2 hours");
        assertThat(drain(100, "null", "true")).containsExactly(2);
        // No more than the burst, however long nobody asked.
        pass("1000 hours");
        assertThat(drain(100, "null", "true").stream().mapToInt(n -> n).sum()).isEqualTo(10);
        assertThat(secondsUntilNext()).isBetween(3_000.0, 3_600.0);
    }

    /** The first job of a bucket takes its last token, and its lane has no other that would find the bucket empty. */
    @Test
    void whoWaitsForATokenIsToldTheTimeAlsoIfNobodyHasFoundNone() {
        jobs.rate("r", "{t,u}", null, 1, "1 hour", 1);
        long first = jobs.add("t", "{}");
        jobs.add("u", "{}");

        assertThat(jobs.claim("w", 2)).containsExactly(first);
        assertThat(secondsUntilNext()).isBetween(3_000.0, 3_600.0);
    }

    /** Has so much time gone by for the rates. */
    private void pass(String time) {
        jobs.sql("update {schema}.pgworker_limit_buckets set filled_at = filled_at - ?::interval,"
                        + " next_at = next_at - ?::interval")
                .params(time, time)
                .update();
    }

    private double secondsUntilNext() {
        return jobs.sql("select extract(epoch from c.run_at - c.locked_at) from " + LimitedJobs.claimed("null", "true")
                        + " c where c.id is null")
                .params("w", 10)
                .query(Double.class)
                .single();
    }

    @Test
    void aClaimThatIsRolledBackSpendsNothing() throws SQLException {
        jobs.rate("r", "{t}", null, 1, "1 hour", 2);
        jobs.addMany("t", "'{}'", 5);
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.execute(db.schema()
                    .in("select * from "
                            + LimitedJobs.claimed("null", "true")
                                    .replace("row(?", "row('w'")
                                    .replace("?)", "10)")));
            connection.rollback();
        }

        assertThat(jobs.claim("w", 10)).hasSize(2);
    }

    @Test
    void jobsOfAQueueStartOneAtATimeWhateverTheirLanes() {
        jobs.limit("l", "{t,u}", "{tenant}", 5);
        for (int i = 0; i < 6; i++) {
            jobs.add(i % 2 == 0 ? "t" : "u", "{\"tenant\":\"" + i + "\"}", "queue_name => 'q', priority => " + i % 3);
        }
        long other = jobs.add("t", "{}");

        Set<Long> first = new HashSet<>(jobs.claim("w", 10));
        assertThat(first).hasSize(2).contains(other);
        assertThat(jobs.claim("v", 10)).isEmpty();
        first.forEach(id -> jobs.complete("w", id));
        assertThat(jobs.sql("update {schema}._private_job_queues set locked_at = now(), locked_by = 'stranger'")
                        .update())
                .isOne();
        assertThat(jobs.claim("v", 10)).isEmpty();
        jobs.sql("update {schema}._private_job_queues set locked_at = null, locked_by = null")
                .update();
        int rounds = 0;
        for (int i = 0; i < 100_000 && db.jobs() > 0; i++) {
            List<Long> claimed = jobs.claim("w", 10);
            assertThat(claimed).hasSizeLessThanOrEqualTo(1);
            rounds += claimed.size();
            claimed.forEach(id -> jobs.complete("w", id));
        }
        assertThat(rounds).isEqualTo(5);
    }

    @Test
    void aLimitThatIsChangedOrDeletedHoldsAtOnce() {
        jobs.limit("l", "{t}", null, 2);
        jobs.addMany("t", "'{}'", 10);
        List<Long> running = jobs.claim("w", 10);
        assertThat(running).hasSize(2);

        jobs.limit("l", "{t}", null, 1);
        jobs.complete("w", running.get(0));
        assertThat(jobs.claim("w", 10)).isEmpty();
        jobs.limit("l", "{t}", null, 4);
        assertThat(jobs.claim("w", 10)).hasSize(3);
        // By something else: what runs is counted anew.
        jobs.limit("l", "{t}", "{tenant}", 5);
        assertThat(jobs.claim("w", 10)).hasSize(1);

        jobs.delete("l");
        jobs.apply();
        assertThat(jobs.phase("l")).isEqualTo("gone");
        assertThat(jobs.claim("w", 10)).isEmpty();
        assertThat(jobs.claimOrdinary("w", 10)).hasSize(4);
    }

    @Test
    void nothingStartsBeforeItIsKnownWhatRuns() {
        jobs.addMany("t", "'{}'", 3);
        assertThat(jobs.claimOrdinary("w", 2)).hasSize(2);
        jobs.putLimit("l", "{t}", null, 2);
        jobs.add("t", "{}");

        assertThat(jobs.claim("v", 10)).isEmpty();
        jobs.apply();
        assertThat(jobs.used()).isEqualTo(2);
        assertThat(jobs.claim("v", 10)).isEmpty();
        jobs.sql("delete from {schema}._private_jobs where locked_by = 'w'").update();
        assertThat(jobs.claim("v", 10)).hasSize(2);
    }

    @Test
    void jobsStartInTurnByWeightWhateverTheBacklogOfEach() {
        jobs.share("s", "{t}", "{tenant}", "{\"b\":1,\"c\":2,\"d\":3}");
        jobs.addMany("t", "'{\"tenant\":\"a\"}'", 1000);
        for (String tenant : List.of("b", "c", "d")) {
            jobs.addMany("t", "'{\"tenant\":\"" + tenant + "\"}'", 100);
        }

        Map<String, Integer> starts = starts(140, 1);
        assertThat(starts.get("a")).isBetween(19, 21);
        assertThat(starts.get("b")).isBetween(19, 21);
        assertThat(starts.get("c")).isBetween(39, 41);
        assertThat(starts.get("d")).isBetween(59, 61);

        jobs.add("t", "{\"tenant\":\"new\"}");
        assertThat(starts(5, 1)).containsEntry("new", 1);

        // Several at once, by the same measure.
        Map<String, Integer> more = starts(70, 7);
        assertThat(more.get("a")).isBetween(7, 13);
        assertThat(more.get("d")).isBetween(25, 35);

        // Idle shares are lent.
        jobs.sql("delete from {schema}._private_jobs where payload ->> 'tenant' <> 'a'")
                .update();
        assertThat(starts(50, 5)).isEqualTo(Map.of("a", 50));
    }

    /** Starts so many jobs and returns how many of each tenant. */
    private Map<String, Integer> starts(int number, int wanted) {
        Map<String, Integer> starts = new HashMap<>();
        for (int started = 0; started < number; ) {
            List<Long> claimed = jobs.claim("w", wanted);
            assertThat(claimed).isNotEmpty();
            started += claimed.size();
            for (String tenant : jobs.sql(
                            "select payload ->> 'tenant' from {schema}._private_jobs where locked_by = 'w'")
                    .query(String.class)
                    .list()) {
                starts.merge(tenant, 1, Integer::sum);
            }
            claimed.forEach(id -> jobs.complete("w", id));
        }
        return starts;
    }

    /** One whose jobs come now and then must not save up turns while it has none. */
    @Test
    void whoComesLateHasNoTurnsToMakeUpFor() {
        jobs.share("s", "{t}", "{tenant}", "{}");
        jobs.addMany("t", "'{\"tenant\":\"a\"}'", 300);
        jobs.add("t", "{\"tenant\":\"b\"}");
        starts(100, 1);
        jobs.addMany("t", "'{\"tenant\":\"b\"}'", 100);

        assertThat(starts(40, 1).get("a")).isBetween(18, 22);
    }

    @Test
    void jobsOfOneTenantShareItsTurnsHoweverManyLanesItHas() {
        jobs.share("s", "{t,u}", "{tenant}", "{}");
        for (String task : List.of("t", "u")) {
            jobs.addMany(task, "'{\"tenant\":\"a\"}'", 100);
        }
        for (int i = 0; i < 5; i++) {
            for (int n = 0; n < 20; n++) {
                jobs.add("t", "{\"tenant\":\"a\"}", "flags => '{f" + i + "}'");
            }
        }
        jobs.addMany("t", "'{\"tenant\":\"b\"}'", 100);

        assertThat(starts(100, 1).get("b")).isBetween(45, 55);
    }

    @Test
    void aShareKeepsToTheLimitsOfItsTasks() {
        jobs.share("s", "{t}", "{tenant}", "{}");
        jobs.limit("l", "{t}", "{tenant}", 1);
        jobs.addMany("t", "'{\"tenant\":\"' || n % 3 || '\"}'", 30);

        assertThat(jobs.claim("w", 100)).hasSize(3);
        assertThat(jobs.claim("w", 100)).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aClaimAmongTenThousandLanesIsBounded(boolean share) {
        if (share) {
            jobs.share("s", "{t}", "{tenant}", "{\"1\":2}");
        } else {
            jobs.limit("l", "{t}", "{tenant}", 1);
        }
        jobs.addMany("t", "'{\"tenant\":\"' || n % 10000 || '\"}'", 20_000);
        for (int i = 0; i < 4; i++) {
            assertThat(jobs.claim("w", 1)).hasSize(1); // takes 5,000 arrivals each
        }
        jobs.sql("analyze {schema}.pgworker_limit_lanes").update();
        jobs.sql("analyze {schema}.pgworker_limit_buckets").update();
        assertThat(jobs.sql("select count(*) from {schema}.pgworker_limit_lanes")
                        .query(Integer.class)
                        .single())
                .isEqualTo(10_000);

        String claim = "select * from " + LimitedJobs.claimed("null", "true");
        long one = jobs.buffers(claim, "w", 1);
        long ten = jobs.buffers(claim, "w", 10);
        System.out.printf("Among 10,000 lanes a claim of one job touches %,d pages, of ten %,d%n", one, ten);
        // The lanes themselves, which are 500 pages, a few times.
        assertThat(one).isLessThan(5_000);
        assertThat(ten).isLessThan(one + 2_000);
        // It looks for lanes and buckets that are not used any more, while nobody can claim.
        assertThat(jobs.buffers("select {schema}.pgworker_apply_limits(500)")).isLessThan(100_000);
    }

    @Test
    void argumentsAreRefusedByName() {
        for (String wanted : List.of("0", "-1", "null", "100001")) {
            assertThatThrownBy(() -> jobs.sql("select * from "
                                    + LimitedJobs.claimed("null", "true")
                                            .replace("row(?", "row('w'")
                                            .replace("?)", wanted + ")"))
                            .query()
                            .listOfRows())
                    .isInstanceOf(DataAccessException.class)
                    .rootCause()
                    .hasMessageContaining("wanted");
        }
        for (String weights : List.of("{\"a\":0}", "{\"a\":\"1\"}", "[1]", "{\"a\":1000}")) {
            assertThatThrownBy(() -> jobs.share("s", "{t}", "{tenant}", weights))
                    .rootCause()
                    .hasMessageContaining("weights");
        }
        assertThatThrownBy(() -> jobs.share("s", "{t}", null, "{}")).rootCause().hasMessageContaining("field");
    }

    /** Two claims that overlap see each other's starts. */
    @Test
    void claimsAtTheSameTimeStartNoMoreThanAllowed() throws InterruptedException {
        jobs.limit("l", "{t}", null, 5);
        jobs.rate("r", "{u}", null, 1, "1 day", 7);
        jobs.addMany("t", "'{}'", 100);
        jobs.addMany("u", "'{}'", 100);
        List<Thread> threads = LongStream.range(0, 6)
                .mapToObj(n -> new Thread(() -> {
                    for (int i = 0; i < 10; i++) {
                        jobs.claim("w" + n, 3);
                    }
                }))
                .collect(Collectors.toList());
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }

        assertThat(jobs.sql(
                                "select t.identifier || count(*) from {schema}._private_jobs j join {schema}._private_tasks t on"
                                        + " t.id = j.task_id where j.locked_by like 'w%' group by t.identifier order by 1")
                        .query(String.class)
                        .list())
                .containsExactly("t5", "u7");
    }
}
