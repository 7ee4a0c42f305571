package dev.pgworker;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** Claims after one that jobs of queues have filled: they lock the queues in front, and then their first jobs. */
class QueueFrontTest {

    private static final int QUEUES = 40;
    private static final int WANTED = 48;

    /** So many queues are looked at, and so many jobs of each are taken. */
    private static final int IN_FRONT = 12;

    private static final int RUN = 8;

    @RegisterExtension
    final TestSchema db = new TestSchema(4);

    private boolean saidThatThereIsMore;

    @BeforeEach
    void addJobs() {
        db.sql("""
                        select {schema}.add_job('t', queue_name => 'q' || (n % :queues), job_key => 'j' || n,
                          run_at => now() - interval '1 hour' + n * interval '1 ms')
                        from generate_series(0, :queues * 20 - 1) n
                        """).param("queues", QUEUES).query().listOfRows();
    }

    /** From which of the jobs on; 0 for the first job of all. */
    private List<String> claim(int begin) {
        List<String> keys = new ArrayList<>(db.sql("""
                        select (select j.key from {schema}._private_jobs j where j.id = c.id) from {schema}.pgworker_claim(
                          'w', array(select id from {schema}._private_tasks where identifier = 't'), :wanted, runs => array[100],
                          levels => array[0], floor_run_ats => array['-infinity'::timestamptz], floor_ids => array[0], most_bytes => 1000000,
                          front_level => 0, front_run_at => (select run_at from {schema}._private_jobs where key = :begin),
                          front_id => (select id from {schema}._private_jobs where key = :begin)) c
                        """)
                .param("wanted", WANTED)
                .param("begin", begin == 0 ? "none" : "j" + begin)
                .query((row, number) -> row.getString(1))
                .list());
        saidThatThereIsMore = keys.remove(null);
        return keys;
    }

    private static List<String> runs(int firstQueue) {
        return IntStream.range(0, RUN)
                .boxed()
                .flatMap(i ->
                        IntStream.range(0, WANTED / RUN).mapToObj(queue -> "j" + (i * QUEUES + firstQueue + queue)))
                .toList();
    }

    private List<String> heldQueues() {
        return db.sql("select queue_name from {schema}._private_job_queues where locked_by = 'w' order by id")
                .query(String.class)
                .list();
    }

    private static String queueOf(String key) {
        return "q" + Integer.parseInt(key.substring(1)) % QUEUES;
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 7})
    void bringRunsOfTheFirstFreeQueuesAndHoldNoOthers(int begin) {
        List<String> first = claim(begin);

        assertThat(first).containsExactlyElementsOf(runs(begin));
        assertThat(heldQueues())
                .containsExactlyElementsOf(
                        first.stream().map(QueueFrontTest::queueOf).distinct().toList());
        assertThat(claim(begin)).as("the next queues").containsExactlyElementsOf(runs(begin + WANTED / RUN));
    }

    @Test
    void takeNothingBehindAJobThatSomebodyHolds() throws SQLException {
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.execute(db.schema().in("select from {schema}._private_jobs where key = 'j81' for update"));

            assertThat(claim(0).stream().filter(key -> queueOf(key).equals("q1")))
                    .containsExactly("j1", "j41");
        }
    }

    @Test
    void passOverQueuesThatOthersHold() throws SQLException {
        db.sql("update {schema}._private_job_queues set locked_by = 'other', locked_at = now() where queue_name = 'q1'")
                .update();
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.execute(
                    db.schema().in("select from {schema}._private_job_queues where queue_name = 'q3' for update"));

            List<String> claimed = claim(0);
            assertThat(claimed).hasSize(WANTED);
            assertThat(claimed.stream().map(QueueFrontTest::queueOf).collect(Collectors.toSet()))
                    .doesNotContain("q1", "q3");
        }
    }

    @Test
    void beginEachQueueWithItsFirstJobWhereverTheyBegin() {
        assertThat(claim(QUEUES * 3)).as("as many as from the first job on").containsExactlyElementsOf(runs(0));
    }

    @Test
    void letJobsWithoutAQueueComeFirstWhereTheyAre() {
        db.sql("select {schema}.add_job('t', job_key => 'plain', run_at => now() - interval '2 hours')")
                .query()
                .listOfRows();

        assertThat(claim(7)).hasSize(WANTED).startsWith("plain");
    }

    @Test
    void holdOnlyQueuesOfJobsWhosePayloadsThereIsRoomFor() {
        db.sql("update {schema}._private_jobs set payload = to_json(repeat('x', 40000))")
                .update();

        List<String> claimed = claim(0);
        assertThat(claimed).isNotEmpty().hasSizeLessThan(WANTED);
        assertThat(heldQueues())
                .containsExactlyElementsOf(
                        claimed.stream().map(QueueFrontTest::queueOf).distinct().toList());
    }

    @Test
    void bringLessWhereTheQueuesInFrontHaveMostOfWhatIsWantedAndSayThatThereIsMore() {
        db.sql("delete from {schema}._private_jobs where substr(key, 2)::int >= 3 * :queues")
                .param("queues", QUEUES)
                .update();

        assertThat(claim(0)).hasSize(IN_FRONT * 3);
        assertThat(saidThatThereIsMore).isTrue();
        assertThat(heldQueues()).hasSize(IN_FRONT);
    }

    @Test
    void lookAtAllWhereTheQueuesInFrontHaveTooFewJobs() {
        db.sql("delete from {schema}._private_jobs where substr(key, 2)::int >= :queues")
                .param("queues", QUEUES)
                .update();

        assertThat(claim(IN_FRONT)).hasSize(QUEUES);
        assertThat(heldQueues()).hasSize(QUEUES);
    }

    @Test
    void bringOneJobOfEachQueueWhereTheFirstIsOfAnotherTask() {
        db.sql(
                        "select {schema}.add_job('foreign', queue_name => 'q' || n, run_at => now() - interval '2 hours') from generate_series(0, 39) n")
                .query()
                .listOfRows();

        assertThat(claim(0)).hasSize(QUEUES);
    }
}
