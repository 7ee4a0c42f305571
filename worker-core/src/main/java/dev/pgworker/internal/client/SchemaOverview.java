package dev.pgworker.internal.client;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.time.Duration;
import java.time.Instant;
import java.util.List;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.internal.store.PauseStore;
import dev.pgworker.job.ActiveWorker;
import dev.pgworker.job.JobBacklog;
import dev.pgworker.job.NamedQueue;
import dev.pgworker.schema.WorkerSchema;

/** How a schema stands: its queues, its backlog and its workers. */
final class SchemaOverview {

    private final ClientConnections connections;
    private final WorkerSchema schema;

    SchemaOverview(ClientConnections connections, WorkerSchema schema) {
        this.connections = connections;
        this.schema = schema;
    }

    private static final String NOW = """
            select pg_catalog.clock_timestamp()
            """;

    Instant now() {
        return connections.query(
                "ask for the time",
                false,
                client -> client.sql(NOW)
                        .query((row, number) -> Timestamps.instant(row, 1))
                        .single());
    }

    /** The statement counts one more. */
    private static final long MOST_WAITING = 1_000;

    /** As many jobs that wait for limits are looked at; no index knows them by their queues. */
    private static final int MOST_PARKED = 10_000;

    private static final String QUEUES =
            """
            with parked as materialized (
              select c.job_queue_id, pg_catalog.count(*) as jobs
              from (
                select j.job_queue_id from {schema}._private_jobs j where {parked}
                order by j.locked_by collate "C", j.priority, j.run_at, j.id limit {most}) c
              group by c.job_queue_id)
            select q.queue_name,
                   coalesce(w.jobs, 0) + (select pg_catalog.count(*) from (
                     select from {schema}._private_jobs j where j.job_queue_id = q.id and j.is_available limit 1001) c),
                   case when p.kind is null then q.locked_at end, case when p.kind is null then q.locked_by end,
                   p.kind, p.name, p.paused_at, p.paused_by, p.reason
            from {schema}._private_job_queues q
            left join parked w on w.job_queue_id = q.id
            left join {schema}.pgworker_pauses p
              on p.kind = 'queue' and p.name = q.queue_name and p.resumed_at is null and q.locked_by = 'pgworker-paused'
            where q.queue_name > ?::pg_catalog.text
            order by q.queue_name limit ?
            """.replace("{parked}", JobFilters.PARKED).replace("{most}", String.valueOf(MOST_PARKED));

    List<NamedQueue> queues(@Nullable String after, int limit) {
        if (after != null && !after.isEmpty()) {
            Arguments.requireGivenText("after", after);
        }
        Arguments.requireRange("limit", limit, 1, 1000);
        return connections.query(
                "list the queues",
                false,
                client -> client.sql(schema.in(QUEUES))
                        .param(after == null ? "" : after)
                        .param(limit)
                        .query(SchemaOverview::namedQueue)
                        .list());
    }

    private static NamedQueue namedQueue(ResultSet row, int number) throws SQLException {
        long waiting = row.getLong(2);
        return new NamedQueue(
                row.getString(1),
                Math.min(waiting, MOST_WAITING),
                waiting > MOST_WAITING,
                Timestamps.nullableInstant(row, 3),
                row.getString(4),
                row.getString(5) == null ? null : PauseStore.pause(row, 5));
    }

    private static final String BACKLOG = """
            select b.ready, b.scheduled, b.retrying, b.failed, extract(epoch from pg_catalog.now() - b.oldest_due)::double precision,
                   (select pg_catalog.count(*) from {schema}._private_workers w
                    where w.last_heartbeat_at > pg_catalog.now() - interval '5 minutes'),
                   b.estimated,
                   (select pg_catalog.count(*) filter (where j.run_at <= pg_catalog.now()) from (
                     select j.run_at from {schema}._private_jobs j where {parked}
                     order by j.locked_by collate "C", j.priority, j.run_at, j.id limit 10000) j)
            from {schema}.pgworker_backlog(10000) b
            """.replace("{parked}", JobFilters.PARKED);

    JobBacklog backlog() {
        return connections.query(
                "look at the backlog",
                false,
                client -> client.sql(schema.in(BACKLOG))
                        .query(SchemaOverview::jobBacklog)
                        .single());
    }

    private static JobBacklog jobBacklog(ResultSet row, int number) throws SQLException {
        double seconds = row.getDouble(5);
        Duration oldestDue = row.wasNull() ? null : Duration.ofMillis(Math.round(seconds * 1_000));
        return new JobBacklog(
                row.getLong(1),
                row.getLong(2),
                row.getLong(3),
                row.getLong(8),
                row.getLong(4),
                oldestDue,
                row.getLong(6),
                row.getBoolean(7));
    }

    private static final String WORKERS = """
            select w.id, w.started_at, w.last_heartbeat_at, w.metadata, {held},
              w.last_heartbeat_at < pg_catalog.now() - (
                select t.usual
                from {schema}.pgworker_thresholds(
                  w.metadata, ?::double precision * interval '1 ms', ?::double precision * interval '1 ms', 1) t)
            from {schema}._private_workers w
            {join}
            order by w.started_at, w.id
            """;

    private static final String COUNTED =
            WORKERS.replace("{held}", "coalesce(held.jobs, 0)").replace("{join}", """
            left join (
              select j.locked_by, pg_catalog.count(*) as jobs from {schema}._private_jobs j
              where j.locked_by is not null
              group by j.locked_by) held on held.locked_by = w.id
            """);

    private static final String UNCOUNTED =
            WORKERS.replace("{held}", "null::bigint").replace("{join}", "");

    /**
     * Returns the registered workers.
     *
     * @param staleAfter how old the last heartbeat of a stale worker is that has published no threshold of its own
     * @param peersStaleAfter the least that counts as such; null if the threshold counts for every worker
     * @param counted whether to count the jobs that they hold, for which all jobs are read
     */
    List<ActiveWorker> workers(Duration staleAfter, @Nullable Duration peersStaleAfter, boolean counted) {
        Double peers = peersStaleAfter == null ? null : Timestamps.millis(peersStaleAfter);
        return connections.query(
                "list the workers",
                false,
                client -> client.sql(schema.in(counted ? COUNTED : UNCOUNTED))
                        .param(1, Timestamps.millis(staleAfter), Types.DOUBLE)
                        .param(2, peers, Types.DOUBLE)
                        .query((row, number) -> new ActiveWorker(
                                row.getString(1),
                                Timestamps.instant(row, 2),
                                Timestamps.instant(row, 3),
                                row.getString(4),
                                counted ? row.getLong(5) : null,
                                row.getBoolean(6)))
                        .list());
    }
}
