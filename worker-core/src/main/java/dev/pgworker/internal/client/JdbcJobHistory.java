package dev.pgworker.internal.client;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Locale;

import dev.pgworker.history.HistoryEntry;
import dev.pgworker.history.HistoryOutcome;
import dev.pgworker.history.HistoryPage;
import dev.pgworker.history.HistoryQuery;
import dev.pgworker.history.HistoryStatus;
import dev.pgworker.history.JobHistory;
import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.internal.store.JobRows;
import dev.pgworker.schema.WorkerSchema;

/** Reads the history on the connection of the caller's transaction. */
final class JdbcJobHistory implements JobHistory {

    /** How many entries one call reads that filters may leave out. */
    private static final int MOST_READ = 20_000;

    private static final int MOST_OF_A_JOB = 1_000;

    private final ClientConnections connections;
    private final WorkerSchema schema;

    JdbcJobHistory(ClientConnections connections, WorkerSchema schema) {
        this.connections = connections;
        this.schema = schema;
    }

    private static final String STATUS = """
            select s.enabled and (
                select pg_catalog.count(*) from pg_catalog.pg_trigger t
                where t.tgrelid operator(pg_catalog.=) '{schema}._private_jobs'::pg_catalog.regclass
                  and t.tgname operator(pg_catalog.=) any (
                    array['pgworker_history_deleted', 'pgworker_history_updated']::pg_catalog.name[])) operator(pg_catalog.=) 2,
              (extract(epoch from s.keep_for) operator(pg_catalog.*) 1000)::bigint, s.keep_most,
              coalesce((select pg_catalog.sum(z.entries) from {schema}.pgworker_history_sizes z), 0)::bigint,
              coalesce((select pg_catalog.sum(z.bytes) from {schema}.pgworker_history_sizes z), 0)::bigint,
              (select h.ended_at from {schema}.pgworker_history h order by h.ended_at, h.job_id limit 1)
            from {schema}.pgworker_history_settings s
            """;

    @Override
    public HistoryStatus status() {
        return connections.query(
                "look at the history",
                false,
                client -> client.sql(schema.in(STATUS))
                        .query((row, number) -> new HistoryStatus(
                                row.getBoolean(1),
                                Duration.ofMillis(row.getLong(2)),
                                row.getLong(3),
                                row.getLong(4),
                                row.getLong(5),
                                Timestamps.nullableInstant(row, 6)))
                        .single());
    }

    private static final String COLUMNS = """
            h.job_id, h.task_identifier, h.queue_name, h.key, h.outcome, h.ended_at, h.started_at,
            (extract(epoch from h.took) operator(pg_catalog.*) 1000000)::bigint, h.attempt, h.max_attempts, h.priority, h.flags,
            h.created_at, h.run_at, h.worker_id, h.error, h.result, h.trace_id, h.payload
            """;

    private static HistoryEntry entry(ResultSet row, int number) throws SQLException {
        long micros = row.getLong(8);
        Duration took = row.wasNull() ? null : Duration.ofSeconds(micros / 1_000_000, micros % 1_000_000 * 1_000);
        return new HistoryEntry(
                row.getLong(1),
                row.getString(2),
                row.getString(3),
                row.getString(4),
                HistoryOutcome.valueOf(row.getString(5).toUpperCase(Locale.ROOT)),
                Timestamps.instant(row, 6),
                Timestamps.nullableInstant(row, 7),
                took,
                row.getInt(9),
                row.getInt(10),
                row.getInt(11),
                JobRows.flags(row, 12),
                Timestamps.instant(row, 13),
                Timestamps.instant(row, 14),
                row.getString(15),
                row.getString(16),
                row.getString(17),
                row.getString(18),
                row.getString(19));
    }

    private static final String OF = "select " + COLUMNS + """
            from {schema}.pgworker_history h
            where h.job_id operator(pg_catalog.=) ?::bigint
            order by h.ended_at desc limit ?
            """;

    @Override
    public List<HistoryEntry> of(long jobId) {
        return connections.query(
                "look at the history of job " + jobId,
                false,
                client -> client.sql(schema.in(OF))
                        .param(jobId)
                        .param(MOST_OF_A_JOB)
                        .query(JdbcJobHistory::entry)
                        .list());
    }

    @Override
    public HistoryPage list(HistoryQuery query) {
        Arguments.requireNonNull("query", query);
        HistoryFilters filters = new HistoryFilters(query);
        List<Line> lines = connections.query(
                "list the history",
                false,
                client -> client.sql(schema.in(listing(query, filters)))
                        .params(filters.values())
                        .query((row, number) -> new Line(entry(row, number), row.getBoolean(20)))
                        .list());
        List<HistoryEntry> found =
                lines.stream().filter(line -> !line.edge()).map(Line::entry).toList();
        if (found.size() > query.pageSize()) {
            List<HistoryEntry> page = found.subList(0, query.pageSize());
            return new HistoryPage(page, HistoryFilters.cursor(page.get(page.size() - 1)), false);
        }
        for (Line line : lines) {
            if (line.edge()) {
                return new HistoryPage(found, HistoryFilters.cursor(line.entry()), true);
            }
        }
        return new HistoryPage(found, null, false);
    }

    /** A row of the answer: an entry of the page, or the last one that was read. */
    private record Line(HistoryEntry entry, boolean edge) {}

    /** One statement, so that the page and its end are of the same moment. */
    private static String listing(HistoryQuery query, HistoryFilters filters) {
        String read = "(select * from {schema}.pgworker_history h where " + filters.range()
                + " order by h.ended_at desc, h.job_id desc ";
        String page = "select " + COLUMNS + ", false as edge from " + read + " limit " + MOST_READ + ") h where "
                + filters.others() + " limit " + (query.pageSize() + 1);
        if (!filters.hasOthers()) {
            return page;
        }
        String edge = "select " + COLUMNS + ", true from " + read + " offset " + (MOST_READ - 1) + " limit 1) h";
        return "select * from ((" + page + ") union all (" + edge
                + ")) l order by l.edge, l.ended_at desc, l.job_id desc";
    }
}
