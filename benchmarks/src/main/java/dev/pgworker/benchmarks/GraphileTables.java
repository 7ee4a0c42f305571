package dev.pgworker.benchmarks;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;

/** Fills the tables that PgWorker, the Node.js worker and the plain loop have in common; all of them get the same rows. */
final class GraphileTables {

    static final String TASK = "noop";
    static final String MARK = "select coalesce(max(id), 0) from graphile_worker._private_jobs";
    static final String UNFINISHED = "select exists (select from graphile_worker._private_jobs where id > ?)";

    private GraphileTables() {}

    private static final String ENSURE_TASK = """
            insert into graphile_worker._private_tasks (identifier) values ('noop') on conflict do nothing
            """;

    private static final String READY = """
            insert into graphile_worker._private_jobs (task_id, payload)
            select t.id, '%s'
            from graphile_worker._private_tasks t, generate_series(1, %s)
            where t.identifier = 'noop'
            """;

    /** Adds ready jobs without a queue. */
    static void ready(Connection connection, int jobs) throws SQLException {
        ready(connection, jobs, Payload.NOTHING);
    }

    /** Adds ready jobs without a queue and with a payload. */
    static void ready(Connection connection, int jobs, Payload payload) throws SQLException {
        execute(connection, ENSURE_TASK, READY.formatted(payload.json(), jobs));
    }

    private static final String PRIORITIZED = """
            insert into graphile_worker._private_jobs (task_id, payload, priority, run_at)
            select t.id, '%s', n %% %s - %s, now() + interval '%s' + n * interval '1 millisecond'
            from graphile_worker._private_tasks t, generate_series(1, %s) n
            where t.identifier = 'noop'
            """;

    /** Adds jobs that are not due for a day. */
    static void future(Connection connection, int jobs) throws SQLException {
        future(connection, jobs, 1);
    }

    /** Adds jobs that are not due for a day, of so many priorities, half of them before the usual one. */
    static void future(Connection connection, int jobs, int priorities) throws SQLException {
        execute(
                connection,
                ENSURE_TASK,
                PRIORITIZED.formatted(Payload.NOTHING.json(), priorities, priorities / 2, "1 day", jobs));
    }

    /** Adds ready jobs of so many priorities. */
    static void prioritized(Connection connection, int jobs, int priorities) throws SQLException {
        execute(
                connection,
                ENSURE_TASK,
                PRIORITIZED.formatted(Payload.NOTHING.json(), priorities, priorities / 2, "-1 day", jobs));
    }

    private static final String FOREIGN = """
            with task as (
              insert into graphile_worker._private_tasks (identifier) values ('foreign')
              on conflict (identifier) do update set identifier = excluded.identifier returning id)
            insert into graphile_worker._private_jobs (task_id, payload) select id, '%s' from task, generate_series(1, %s)
            """;

    /** Adds ready jobs of a task that nobody serves. */
    static void foreign(Connection connection, int jobs) throws SQLException {
        execute(connection, FOREIGN.formatted(Payload.NOTHING.json(), jobs));
    }

    private static final String FAILED = """
            insert into graphile_worker._private_jobs (task_id, payload, attempts, last_error)
            select t.id, '%s', 25, 'Error: it never works'
            from graphile_worker._private_tasks t, generate_series(1, %s)
            where t.identifier = 'noop'
            """;

    /** Adds jobs that have no attempts left. */
    static void failed(Connection connection, int jobs) throws SQLException {
        execute(connection, ENSURE_TASK, FAILED.formatted(Payload.NOTHING.json(), jobs));
    }

    private static final String ENSURE_QUEUES = """
            insert into graphile_worker._private_job_queues (queue_name)
            select 'queue ' || n from generate_series(0, %s - 1) n
            on conflict do nothing
            """;

    private static final String QUEUED = """
            insert into graphile_worker._private_jobs (task_id, payload, job_queue_id)
            select t.id, '%s', q.id
            from generate_series(0, %s - 1) n
            join graphile_worker._private_tasks t on t.identifier = 'noop'
            join graphile_worker._private_job_queues q on q.queue_name = 'queue ' || n / %s %% %s
            order by n
            """;

    private static final String FORGET_QUEUES = """
            delete from graphile_worker._private_job_queues q
            where not exists (select from graphile_worker._private_jobs j where j.job_queue_id = q.id)
            """;

    /** Removes queues without jobs. */
    static void forgetQueues(Connection connection) throws SQLException {
        execute(connection, FORGET_QUEUES, "vacuum graphile_worker._private_job_queues");
    }

    /**
     * Adds ready jobs with queues that take turns.
     *
     * @param consecutive how many jobs of one queue follow each other
     */
    static void queued(Connection connection, int jobs, int queues, int consecutive, Payload payload)
            throws SQLException {
        execute(
                connection,
                ENSURE_TASK,
                ENSURE_QUEUES.formatted(queues),
                QUEUED.formatted(payload.json(), jobs, consecutive, queues));
    }

    private static void execute(Connection connection, String... statements) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            for (String sql : statements) {
                statement.execute(sql);
            }
        }
    }
}
