package dev.pgworker.internal.jdbc;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** What is asked of one queue is answered from its own index entries, even if the planner believes that no job waits. */
@Tag("thorough")
class StaleStatisticsTest {

    private static final int JOBS = 100_000;

    @RegisterExtension
    final TestSchema db = new TestSchema(2);

    @BeforeEach
    void addJobsThatTheStatisticsTakeForRunning() {
        db.sql("alter table {schema}._private_jobs set (autovacuum_enabled = false)")
                .update();
        db.sql(
                        "select count(*) from {schema}.add_jobs(array(select row('t', null, 'q' || g % 1000, null, null, null, null,"
                                + " null)::{schema}.job_spec from generate_series(1, ?) g))")
                .param(JOBS)
                .query()
                .listOfRows();
        db.sql("update {schema}._private_jobs set locked_at = now(), locked_by = 'w'")
                .update();
        db.sql("vacuum analyze {schema}._private_jobs").update();
        db.sql("update {schema}._private_jobs set locked_at = null, locked_by = null")
                .update();
    }

    @Test
    void isAnsweredFromTheEntriesOfTheQueue() throws SQLException {
        db.sql("update {schema}._private_job_queues set locked_at = now(), locked_by = 'w'")
                .update();
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            long before = entriesRead(statement);

            statement.execute(db.schema().in("select {schema}.pgworker_free_queues(array[900], array['w'])"));

            assertThat(entriesRead(statement) - before).isLessThan(20);
        }
    }

    private long entriesRead(Statement statement) throws SQLException {
        try (ResultSet row =
                statement.executeQuery("select sum(pg_stat_get_xact_tuples_returned(indexrelid)) from pg_index"
                        + " where indrelid = '" + db.schema().in("{schema}._private_jobs") + "'::regclass")) {
            row.next();
            return row.getLong(1);
        }
    }
}
