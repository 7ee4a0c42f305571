package dev.pgworker.internal.store;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;

import dev.pgworker.testing.ClaimSql;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** How jobs that a gate has let through are announced and found, and what a gate reads of large ones. */
class LimitAdmissionTest {

    private static final Pattern IDS = Pattern.compile("\"ids\":\\[([\\d,]+)]");

    private static final String LARGE =
            "(select json_build_object('tenant', ?::text, 'x', string_agg(md5(i::text), '')) from generate_series(1, 160000) i)";

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private LimitedJobs jobs;

    @BeforeEach
    void make() {
        jobs = new LimitedJobs(db);
    }

    private static String admitting(int most) {
        return "select * from {schema}.pgworker_admit(array(select id from {schema}._private_tasks), null, null, true, null, "
                + most + ")";
    }

    @Test
    void jobsThatAreLetThroughAreAnnouncedWithTheirIds() throws SQLException {
        jobs.limit("l", "{t}", null, 1000);
        jobs.addMany(700);
        List<String> texts;
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("listen \"jobs:insert\"");
            assertThat(jobs.admit()).isEqualTo(700);
            texts = heard(connection);
            statement.execute("unlisten *");
        }

        assertThat(texts).hasSize(3).allSatisfy(text -> assertThat(text).hasSizeLessThan(8000));
        List<Long> told = texts.stream()
                .map(IDS::matcher)
                .filter(Matcher::find)
                .flatMap(ids -> Stream.of(ids.group(1).split(",")))
                .map(Long::valueOf)
                .toList();
        assertThat(told).isEqualTo(jobs.permits());
    }

    /** Only jobs without a queue are claimed by their ids. */
    @Test
    void jobsOfQueuesAreAnnouncedWithTheirPriorities() throws SQLException {
        jobs.limit("l", "{t}", null, 1000);
        jobs.add("t", "{}");
        jobs.sql("select {schema}.add_job('t', '{}', queue_name => 'q', priority => 3)")
                .query()
                .listOfRows();
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("listen \"jobs:insert\"");
            assertThat(jobs.admit()).isEqualTo(2);
            assertThat(heard(connection))
                    .singleElement()
                    .satisfies(text -> assertThat(text)
                            .containsPattern("\"p\":\\[(0,3|3,0)]")
                            .containsPattern(IDS));
            statement.execute("unlisten *");
        }
    }

    private static List<String> heard(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("select 1");
        }
        List<String> texts = new ArrayList<>();
        for (PGNotification notification : connection.unwrap(PGConnection.class).getNotifications()) {
            texts.add(notification.getParameter());
        }
        return texts;
    }

    @Test
    @Tag("thorough")
    void jobsAreClaimedByTheirIdsWithoutReadingWhatHasEndedWhileASnapshotIsHeld() throws SQLException {
        int ended = 20_000;
        jobs.limit("l", "{t}", null, 1000);
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            statement.execute("select 1 from pg_class limit 1");
            jobs.addMany(ended + 100);
            // as while all of them wait
            jobs.sql("analyze {schema}._private_jobs").update();
            jobs.admitAndDelete(ended);
            assertThat(jobs.admitUntold()).isEqualTo(100);
            String ids = jobs.permits().stream().map(String::valueOf).collect(Collectors.joining(",", "{", "}"));

            String claim = "select id from {schema}.pgworker_claim_ids(" + ClaimSql.request("'w'", "null", "1") + ", '"
                    + ids + "')";
            assertThat(jobs.buffers(claim)).isLessThan(ended / 5);

            assertThat(jobs.sql("select count(*) from {schema}._private_jobs where locked_by = 'w'")
                            .query(Long.class)
                            .single())
                    .isEqualTo(100);
            connection.rollback();
        }
    }

    @Test
    void aJobThatIsNamedAndFoundIsClaimedOnce() {
        jobs.addMany(3);
        List<Long> ids = jobs.sql("select id from {schema}._private_jobs order by id")
                .query(Long.class)
                .list();

        List<Long> claimed = jobs.sql("select id from {schema}.pgworker_claim_ids("
                        + ClaimSql.request("'w'", "null", "1") + ", array[?, ?, ?, -7])")
                .params(ids.get(2), ids.get(2), ids.get(0))
                .query(Long.class)
                .list();

        assertThat(claimed).containsExactlyInAnyOrder(ids.get(0), ids.get(2));
    }

    @Test
    void anAdmissionIsNotWaitedForToBeOnTheDisk() throws SQLException {
        jobs.limit("l", "{t}", null, 1);
        jobs.add("t", "{}");
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("set synchronous_commit = on");
            connection.setAutoCommit(false);
            statement.execute(db.schema().in(admitting(1)));
            assertThat(synchronousCommit(statement)).isEqualTo("off");
            connection.rollback();
            assertThat(synchronousCommit(statement)).as("of other transactions").isEqualTo("on");
            statement.execute("reset synchronous_commit");
            connection.commit();
        }
    }

    private static String synchronousCommit(Statement statement) throws SQLException {
        try (ResultSet setting = statement.executeQuery("show synchronous_commit")) {
            setting.next();
            return setting.getString(1);
        }
    }

    @Test
    void aGateDoesNotReadLargePayloads() {
        jobs.limit("l", "{t}", "{tenant}", 1);
        long small = jobs.add("t", "{\"tenant\":\"small\"}");
        long before = jobs.buffers(admitting(10));
        long large = jobs.sql("select id from {schema}.add_job('t', " + LARGE + ")")
                .param("large one")
                .query(Long.class)
                .single();

        assertThat(jobs.buffers(admitting(10))).isLessThan(before + 150);

        assertThat(jobs.state(small)).isEqualTo("available");
        assertThat(jobs.state(large)).isEqualTo("available");
        assertThat(jobs.sql("select value from {schema}.pgworker_limit_buckets order by id")
                        .query(String.class)
                        .list())
                .containsExactly("small", "large one");
    }

    @Test
    void whateverTheValueIsItsLaneSaysIt() {
        jobs.limit("l", "{t}", "{tenant}", 1);
        List<String> values = List.of(
                "",
                "a b",
                "a|b",
                "%20",
                "%257C",
                "\"{a,b}\"",
                "a\\b",
                "NULL",
                "\u00e4\n\t\u2028",
                "\ud83d\ude00".repeat(100),
                "x".repeat(10_000));
        for (String value : values) {
            for (int i = 0; i < 2; i++) {
                jobs.sql("select id from {schema}.add_job('t', json_build_object('tenant', ?::text))")
                        .param(value)
                        .query(Long.class)
                        .single();
            }
        }

        assertThat(jobs.admit()).isEqualTo(values.size());
        assertThat(jobs.admit()).isZero();

        assertThat(jobs.sql(
                                "select b.value = ({schema}.pgworker_lane_values(l.lane))[1] from {schema}.pgworker_limit_lanes l"
                                        + " join {schema}.pgworker_limit_buckets b on b.id = l.buckets[1]")
                        .query(Boolean.class)
                        .list())
                .hasSize(values.size())
                .containsOnly(true);
    }

    @Test
    void veryLongValuesAreFoundInThePayload() {
        String longest = "\ud83d\ude00".repeat(100);
        jobs.limit("one", "{t}", "{a}", 1);
        jobs.limit("two", "{t}", "{b}", 1);
        for (int i = 0; i < 2; i++) {
            jobs.add("t", "{\"a\":\"" + longest + "\",\"b\":\"" + longest + "\"}");
        }

        assertThat(jobs.admit()).isOne();

        assertThat(jobs.sql("select {schema}.pgworker_lane_values(lane) is null from {schema}.pgworker_limit_lanes")
                        .query(Boolean.class)
                        .list())
                .containsExactly(true);
        assertThat(jobs.sql("select value from {schema}.pgworker_limit_buckets")
                        .query(String.class)
                        .list())
                .containsExactly(longest, longest);
    }

    @Test
    void aNameThatIsNoneIsReplaced() {
        jobs.limit("l", "{t}", "{tenant}", 1);
        long id = jobs.add("t", "{\"tenant\":\"a\"}");
        jobs.sql("alter table {schema}._private_jobs disable trigger user").update();
        for (String wrong : List.of("{b}", "{", "", "{a,b}", "{{a}}")) {
            jobs.sql(
                            "update {schema}._private_jobs set locked_by = regexp_replace(locked_by, ':[^:]*$', ':' || ?) where id = ?")
                    .params(wrong, id)
                    .update();
            jobs.sql("alter table {schema}._private_jobs enable trigger user").update();

            assertThat(jobs.admit()).as(wrong).isZero();

            assertThat(jobs.sql("select locked_by from {schema}._private_jobs where id = ?")
                            .param(id)
                            .query(String.class)
                            .single())
                    .as(wrong)
                    .endsWith(":{a}");
            jobs.sql("alter table {schema}._private_jobs disable trigger user").update();
        }
        jobs.sql("alter table {schema}._private_jobs enable trigger user").update();

        assertThat(jobs.admit()).isOne();
    }

    @Test
    void ofLargeJobsThatNobodyStartsOneAtATimeGivesItsPermitToAnotherTask() {
        jobs.limit("all", "{t,u}", null, 2);
        jobs.limit("each", "{t}", "{tenant}", 1);
        for (String tenant : List.of("a", "b")) {
            jobs.sql("select id from {schema}.add_job('t', " + LARGE + ")")
                    .param(tenant)
                    .query(Long.class)
                    .single();
        }
        assertThat(jobs.admit()).isEqualTo(2);
        jobs.add("t", "{\"tenant\":\"c\"}");
        jobs.admit();
        jobs.age(Duration.ofSeconds(6));
        String check = "select {schema}.pgworker_check_permits()";

        assertThat(jobs.buffers(check)).as("of one task").isLessThan(1000);
        assertThat(Set.copyOf(jobs.permits())).hasSize(2);

        jobs.add("u", "{}");
        jobs.admit();
        assertThat(jobs.sql(check).query(Long.class).single()).isOne();
        assertThat(Set.copyOf(jobs.permits())).hasSize(1);
    }
}
