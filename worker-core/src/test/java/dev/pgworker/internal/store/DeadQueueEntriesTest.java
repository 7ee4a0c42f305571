package dev.pgworker.internal.store;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** While a snapshot is held, finished jobs of queues leave entries in the indexes; who has floors does not read them. */
@Tag("thorough")
class DeadQueueEntriesTest {

    private static final int DEAD = 30_000;

    private static final String FLOORS =
            "lane_queues => (select queues from floors), lane_levels => (select levels from floors),"
                    + " lane_run_ats => (select run_ats from floors), lane_ids => (select ids from floors)";

    @RegisterExtension
    final TestSchema db = new TestSchema(3);

    private Connection holder;
    private Connection connection;
    private Statement statement;

    @BeforeEach
    void holdASnapshot() throws SQLException {
        for (String table : new String[] {"_private_jobs", "_private_job_queues"}) {
            db.sql("alter table {schema}." + table + " set (autovacuum_enabled = false)")
                    .update();
        }
        db.sql("select {schema}.pgworker_task_id('t')").query().listOfRows();
        connection = db.dataSource().getConnection();
        statement = connection.createStatement();
        holder = db.dataSource().getConnection();
        holder.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
        holder.setAutoCommit(false);
        holder.createStatement().execute("select 1");
    }

    @AfterEach
    void giveItUp() throws SQLException {
        connection.rollback();
        connection.setAutoCommit(true);
        statement.execute("drop table if exists floors");
        connection.close();
        holder.rollback();
        holder.setAutoCommit(true);
        holder.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        holder.close();
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 20, 1_000})
    void areNotReadFromTheFloorsOn(int queues) throws SQLException {
        fill(queues, DEAD, "now() - interval '1 hour'");
        db.sql("delete from {schema}._private_jobs").update();
        fill(queues, 100, "now() - interval '1 minute'");
        fill(queues, 10, "now() + interval '1 hour'");
        look("pgworker_look_at_queues(array[1], null, 8, 64)");

        assertThat(entriesRead("pgworker_claim('w', array[1], 10, null, array[2])"))
                .as("without floors")
                .isGreaterThan(DEAD / 2);
        assertThat(entriesRead("pgworker_claim('w', array[1], 10, null, array[2], " + FLOORS + ")"))
                .isLessThan(2_000);
        assertThat(entriesRead("pgworker_claim('w', array[1], 10, breadth => 20, " + FLOORS + ")"))
                .isLessThan(2_000);
        assertThat(entriesRead("pgworker_claim_carefully('w', array[1], 10, " + FLOORS + ")"))
                .isLessThan(2_000);
        assertThat(entriesRead("pgworker_look_at_queues(array[1], null, 8, 64, " + FLOORS + ")"))
                .isLessThan(2_000);
        assertThat(entriesRead(
                        "pgworker_next_due(array[1], 0, array[]::int[], lane_levels => (select levels from floors))"))
                .isLessThan(200);
        statement.execute(
                db.schema().in("select count(*) from {schema}.pgworker_claim('w', array[1], 1, " + FLOORS + ")"));
        assertThat(entriesRead(
                        "pgworker_complete('w', (select array_agg(id) from claimed), (select array_agg(locked_at) from"
                                + " claimed), null, array[1], 1, null, array[1], " + FLOORS + ")"))
                .isLessThan(200);
    }

    @Test
    void ofQueuesThatWereLockedAndFreedAreNotRead() throws SQLException {
        fill(2, 20, "now() - interval '1 minute'");
        statement.execute(db.schema()
                .in(
                        "do $$ begin for i in 1..3000 loop update {schema}._private_job_queues set locked_at = now(), locked_by"
                                + " = 'x'; update {schema}._private_job_queues set locked_at = null, locked_by = null; end loop; end"
                                + " $$"));
        look("pgworker_look_at_queues(array[1], null, 8, 64)");

        assertThat(queueEntriesRead("pgworker_claim('w', array[1], 10, null, array[2], " + FLOORS + ")"))
                .isLessThan(40);
        statement.execute(
                db.schema().in("select count(*) from {schema}.pgworker_claim('w', array[1], 2, " + FLOORS + ")"));
        assertThat(queueEntriesRead("pgworker_complete('w', (select array_agg(id order by id) from claimed), (select"
                        + " array_agg(distinct locked_at) from claimed), null, array[1], 2, null, array[1, 1], "
                        + FLOORS + ")"))
                .isLessThan(40);
        assertThat(queueEntriesRead("add_job('t', queue_name => 'q1')")).isLessThan(10);
    }

    private void fill(int queues, int jobs, String from) {
        db.sql("insert into {schema}._private_job_queues (queue_name) select 'q' || g from generate_series(1, ?) g"
                        + " on conflict (queue_name) do nothing")
                .param(queues)
                .update();
        db.sql("insert into {schema}._private_jobs (job_queue_id, task_id, run_at) select q.id, 1, " + from
                        + " + g * interval '1 ms' from generate_series(1, ?) g"
                        + " join {schema}._private_job_queues q on q.queue_name = 'q' || (g % ? + 1)")
                .param(jobs)
                .param(queues)
                .update();
    }

    /** Keeps floors for the other statements, from a transaction that is not theirs. */
    private void look(String look) throws SQLException {
        statement.execute(db.schema()
                .in("create temporary table floors as select array_agg(queue_id) as queues, array_agg(level) as levels,"
                        + " array_agg(run_at) as run_ats, array_agg(coalesce(id, -9223372036854775808)) as ids from {schema}."
                        + look));
        statement.execute(
                db.schema()
                        .in(
                                "create temporary view claimed as select id, locked_at from {schema}._private_jobs where locked_by = 'w'"));
        connection.setAutoCommit(false);
    }

    private long entriesRead(String question) throws SQLException {
        return entriesRead(question, "_private_jobs");
    }

    private long queueEntriesRead(String question) throws SQLException {
        return entriesRead(question, "_private_job_queues");
    }

    /** Returns how many entries of the table's indexes a call reads, whose effects are undone. */
    private long entriesRead(String question, String table) throws SQLException {
        statement.execute("savepoint before");
        long before = soFar(table);
        statement.execute(db.schema().in("select count(*) from {schema}." + question));
        long read = soFar(table) - before;
        statement.execute("rollback to savepoint before");
        return read;
    }

    private long soFar(String table) throws SQLException {
        try (ResultSet row =
                statement.executeQuery("select sum(pg_stat_get_xact_tuples_returned(indexrelid)) from pg_index"
                        + " where indrelid = '" + db.schema().in("{schema}." + table) + "'::regclass")) {
            row.next();
            return row.getLong(1);
        }
    }
}
