package dev.pgworker.test;

import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.List;
import javax.sql.DataSource;

import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.datasource.SingleConnectionDataSource;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

import dev.pgworker.schema.WorkerSchema;

/** What a test does to the tables of its schema. Each change is a transaction of its own, on a connection of the data source. */
final class TestSchemaTables {

    private final DataSource dataSource;
    private final WorkerSchema schema;

    TestSchemaTables(DataSource dataSource, WorkerSchema schema) {
        this.dataSource = dataSource;
        this.schema = schema;
    }

    /** Returns the time by the database's clock; joins the caller's transaction. */
    Instant now() {
        return JdbcClient.create(dataSource)
                .sql("select pg_catalog.clock_timestamp()")
                .query(OffsetDateTime.class)
                .single()
                .toInstant();
    }

    // The year 9999 is that of jobs that wait for other jobs or for limits. A job that has begun stays the same for
    // other systems, see Step.idempotencyKey. What a minute of a recurring item
    // has been executed for stays a whole minute, so that none is executed twice.
    // Figures of minutes
    // stay where they are: they would meet each other on their way.
    private static final List<String> ADVANCE = List.of("""
            update {schema}._private_jobs set
              run_at = case when run_at = '9999-01-01 00:00:00+00' then run_at else run_at - make_interval(secs => :seconds) end,
              created_at = case
                when attempts = 0 and not exists (select from {schema}.pgworker_steps s where s.job_id = _private_jobs.id)
                  then created_at - make_interval(secs => :seconds)
                else created_at end,
              updated_at = updated_at - make_interval(secs => :seconds),
              locked_at = case when locked_at = '9999-01-01 00:00:00+00' then locked_at else locked_at - make_interval(secs => :seconds) end
            """, """
            update {schema}.pgworker_flow_waits set run_at = run_at - make_interval(secs => :seconds)
            """, """
            update {schema}.pgworker_steps set due_at = due_at - make_interval(secs => :seconds)
            """, """
            update {schema}.pgworker_signals set sent_at = sent_at - make_interval(secs => :seconds),
              expires_at = expires_at - make_interval(secs => :seconds)
            """, """
            update {schema}._private_job_queues set locked_at = locked_at - make_interval(secs => :seconds)
            where locked_at is not null
            """, """
            update {schema}._private_known_crontabs set known_since = known_since - make_interval(secs => :wholeMinutes),
              last_execution = last_execution - make_interval(secs => :wholeMinutes)
            """, """
            update {schema}.pgworker_paused_crontabs set paused_at = paused_at - make_interval(secs => :seconds)
            """, """
            update {schema}.pgworker_schedules set next_at = next_at - make_interval(secs => :seconds),
              last_at = last_at - make_interval(secs => :seconds), paused_at = paused_at - make_interval(secs => :seconds),
              created_at = created_at - make_interval(secs => :seconds), updated_at = updated_at - make_interval(secs => :seconds)
            """, """
            update {schema}._private_workers set last_heartbeat_at = last_heartbeat_at - make_interval(secs => :seconds),
              started_at = started_at - make_interval(secs => :seconds)
            """, """
            update {schema}.pgworker_batches set started_at = started_at - make_interval(secs => :seconds)
            """, """
            update {schema}.pgworker_running set locked_at = locked_at - make_interval(secs => :seconds),
              started_at = started_at - make_interval(secs => :seconds), updated_at = updated_at - make_interval(secs => :seconds)
            """, """
            update {schema}.pgworker_samples set taken_at = taken_at - make_interval(secs => :seconds),
              oldest_due = oldest_due - make_interval(secs => :seconds)
            """);

    /** Moves all times that the schema holds into the past. */
    void advance(Duration duration) {
        double seconds = duration.toMillis() / 1000.0;
        double wholeMinutes = duration.toMinutes() * 60.0;
        execute(client -> {
            for (String statement : ADVANCE) {
                client.sql(schema.in(statement))
                        .param("seconds", seconds)
                        .param("wholeMinutes", wholeMinutes)
                        .update();
            }
        });
    }

    // Names of tasks stay: others may know their ids.
    private static final List<String> CLEAR = List.of(
            "delete from {schema}._private_jobs",
            "delete from {schema}._private_job_queues",
            "delete from {schema}._private_known_crontabs",
            "delete from {schema}.pgworker_paused_crontabs",
            "delete from {schema}.pgworker_schedules",
            "delete from {schema}.pgworker_cleanup",
            "delete from {schema}._private_workers",
            "delete from {schema}.pgworker_recoveries",
            "delete from {schema}.pgworker_retirements",
            "delete from {schema}.pgworker_cancellations",
            "delete from {schema}.pgworker_batches",
            "delete from {schema}.pgworker_running",
            "delete from {schema}.pgworker_task_minutes",
            "delete from {schema}.pgworker_samples",
            "delete from {schema}.pgworker_steps",
            "delete from {schema}.pgworker_signals",
            "delete from {schema}.pgworker_flow_edges",
            "delete from {schema}.pgworker_flow_waits",
            "delete from {schema}.pgworker_ends");

    /** Deletes all jobs and what belongs to them. */
    void clear() {
        execute(client ->
                CLEAR.forEach(statement -> client.sql(schema.in(statement)).update()));
    }

    private interface Changes {
        void make(JdbcClient client);
    }

    /** A transaction that somebody left open must not keep a test waiting for ever. */
    private void execute(Changes changes) {
        try (Connection connection = dataSource.getConnection()) {
            SingleConnectionDataSource single = new SingleConnectionDataSource(connection, true);
            new TransactionTemplate(new JdbcTransactionManager(single)).executeWithoutResult(transaction -> {
                JdbcClient client = JdbcClient.create(single);
                client.sql("set local lock_timeout = '10s'").update();
                changes.make(client);
            });
        } catch (SQLException e) {
            throw new IllegalStateException("The schema " + schema.name() + " cannot be changed", e);
        }
    }
}
