package dev.pgworker.internal.client;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

import org.jspecify.annotations.Nullable;

import dev.pgworker.history.HistoryEntry;
import dev.pgworker.history.HistoryPage;
import dev.pgworker.history.HistoryQuery;
import dev.pgworker.history.HistoryStatus;
import dev.pgworker.history.JobHistory;
import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.argument.AsciiJson;
import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.internal.store.HistoryStore;
import dev.pgworker.internal.store.JobRows;
import dev.pgworker.schema.WorkerSchema;

/** Reads the history on the connection of the caller's transaction. */
final class JdbcJobHistory implements JobHistory {

    /** How many entries one call reads that filters may leave out. */
    private static final int MOST_READ = 20_000;

    /** Stands for a text that is not read, in every encoding of a database. */
    private static final String UNREAD = "pg_catalog.chr(1)";

    private static final int MOST_OF_A_JOB = 1_000;

    /** How many characters of texts one call returns, and an entry's more. */
    private static final int MOST_CHARACTERS = 8_000_000;

    /** A search ends when it has read about so many bytes of texts. */
    private static final int MOST_SEARCHED = 50_000_000;

    /** So much is read of an error where its entry has no other texts. */
    private static final int ERRORS = 10_000;

    /** What a search reads, told without reading it. From 2 kB on it is stored compressed, to a tenth as a rule of thumb. */
    private static final String SIZE =
            size("error") + " operator(pg_catalog.+) " + size("result") + " operator(pg_catalog.+) " + size("payload");

    private static String size(String column) {
        String size = "pg_catalog.pg_column_size(h." + column + ")";
        return "case when " + size + " operator(pg_catalog.>) 2000 then " + size
                + "::bigint operator(pg_catalog.*) 10 else coalesce(" + size + ", 0) end";
    }

    private final ClientConnections connections;
    private final WorkerSchema schema;

    JdbcJobHistory(ClientConnections connections, WorkerSchema schema) {
        this.connections = connections;
        this.schema = schema;
    }

    private static final String STATUS = """
            select s.enabled,
              least(extract(epoch from s.keep_for) operator(pg_catalog.*) 1000, 9223372036854774000)::bigint, s.keep_most,
              z.entries, z.bytes,
            """ + HistoryStore.LOSSES + """
            from {schema}.pgworker_history_settings s cross join {schema}.pgworker_history_sizes z
            """;

    private static final String OLDEST =
            "select h.ended_at from {schema}.pgworker_history h order by h.ended_at, h.job_id limit 1";

    @Override
    public HistoryStatus status() {
        return connections.query("look at the history", false, client -> {
            // A lock of the table against reading does not delay the question how large it is.
            boolean locked = client.sql(schema.in("select z.locked from {schema}.pgworker_history_sizes z"))
                    .query(Boolean.class)
                    .single();
            @Nullable Instant oldest = locked
                    ? null
                    : client.sql(schema.in(OLDEST))
                            .query((row, number) -> Timestamps.instant(row, 1))
                            .optional()
                            .orElse(null);
            return client.sql(schema.in(STATUS))
                    .query((row, number) -> new HistoryStatus(
                            row.getBoolean(1),
                            Duration.ofMillis(row.getLong(2)),
                            row.getLong(3),
                            row.getLong(4),
                            row.getLong(5),
                            oldest,
                            HistoryStore.losses(row, 6)))
                    .single();
        });
    }

    private static final String PLAIN =
            "h.job_id, h.task_identifier, h.queue_name, h.key, h.outcome, h.ended_at, h.started_at,"
                    + " h.took, h.attempt, h.max_attempts, h.priority, h.flags, h.created_at, h.run_at, h.worker_id, h.trace_id, h.error";

    /** Returns what is read of the table. */
    private static String stored(int payloadLimit) {
        return payloadLimit == 0 ? PLAIN : PLAIN + ", h.result, h.payload";
    }

    /** No number of microseconds is beyond a bigint. */
    private static final String TOOK = "case when h.took is not null then greatest(-9223372036854774000, least("
            + "extract(epoch from h.took) operator(pg_catalog.*) 1000000, 9223372036854774000))::bigint end as took";

    /** Returns what is read for lists: texts that may be a character longer than the limit, so that it shows. */
    private static String told(int payloadLimit) {
        String columns = PLAIN.replace("h.took", TOOK).replace(", h.error", "");
        return columns + ", " + beginning("error", payloadLimit == 0 ? ERRORS : payloadLimit) + ", "
                + (payloadLimit == 0
                        ? "null::text as result, null::text as payload"
                        : beginning("result", payloadLimit) + ", " + beginning("payload", payloadLimit));
    }

    /** The size in the table is known without reading the value. */
    private static String beginning(String column, int limit) {
        return "case when pg_catalog.pg_column_size(h." + column + ") operator(pg_catalog.>) " + HistoryFilters.LARGE
                + " then " + UNREAD + " else pg_catalog.left(h." + column + "::text, " + (limit + 1)
                + ") end as " + column;
    }

    private static final String LENGTH =
            "coalesce(pg_catalog.length(t.error), 0) operator(pg_catalog.+) coalesce(pg_catalog.length(t.result), 0)"
                    + " operator(pg_catalog.+) coalesce(pg_catalog.length(t.payload), 0)";

    /**
     * Returns the entries of a query, whose columns are those that are {@link #told}; of those beyond the largest page there are no texts.
     */
    private static String bounded(String entries, String columns) {
        String texts = "";
        for (String text : List.of("error", "result", "payload")) {
            texts += ", case when p.beyond and p." + text + " is not null then " + UNREAD + " else p." + text + " end";
        }
        return "select p.job_id, p.task_identifier, p.queue_name, p.key, p.outcome, p.ended_at, p.started_at, p.took, p.attempt,"
                + " p.max_attempts, p.priority, p.flags, p.created_at, p.run_at, p.worker_id, p.trace_id" + texts
                + ", p.beyond" + columns + " from (select t.*, (pg_catalog.sum(" + LENGTH
                + ") over (order by t.ended_at desc, t.job_id desc rows unbounded preceding) operator(pg_catalog.-) ("
                + LENGTH
                + ")) operator(pg_catalog.>) " + MOST_CHARACTERS + " as beyond from (" + entries + " offset 0) t) p"
                + " order by p.ended_at desc, p.job_id desc";
    }

    private static HistoryEntry entry(ResultSet row, int payloadLimit) throws SQLException {
        long micros = row.getLong(8);
        Duration took = row.wasNull()
                ? null
                : Duration.ofSeconds(Math.floorDiv(micros, 1_000_000L), Math.floorMod(micros, 1_000_000L) * 1_000);
        String result = cut(row.getString(18), payloadLimit);
        return new HistoryEntry(
                row.getLong(1),
                row.getString(2),
                row.getString(3),
                row.getString(4),
                HistoryFilters.outcome(row.getString(5)),
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
                cut(row.getString(17), payloadLimit == 0 ? ERRORS : payloadLimit),
                result == null ? null : AsciiJson.unescape(result),
                row.getString(16),
                cut(row.getString(19), payloadLimit));
    }

    private static @Nullable String cut(@Nullable String text, int limit) {
        return text == null ? null : JobColumns.cut(text.equals("\u0001") ? null : text, limit);
    }

    @Override
    public List<HistoryEntry> of(long jobId, int payloadLimit) {
        Arguments.requireRange("payloadLimit", payloadLimit, 0, 1_000_000);
        String entries = "select " + told(payloadLimit) + " from {schema}.pgworker_history h"
                + " where h.job_id operator(pg_catalog.=) ?::bigint order by h.ended_at desc limit " + MOST_OF_A_JOB;
        return connections.query(
                "look at the history of job " + jobId,
                false,
                client -> client.sql(schema.in(bounded(entries, "")))
                        .param(jobId)
                        .query((row, number) -> entry(row, payloadLimit))
                        .list());
    }

    @Override
    public HistoryPage list(HistoryQuery query) {
        Arguments.requireNonNull("query", query);
        HistoryFilters filters = new HistoryFilters(query);
        return connections.query("list the history", false, client -> {
            List<Line> lines = client.sql(schema.in(listing(query, filters)))
                    .params(filters.values())
                    .query((row, number) ->
                            new Line(entry(row, query.payloadLimit()), row.getBoolean(20), row.getBoolean(21)))
                    .list();
            return page(query, lines);
        });
    }

    private static HistoryPage page(HistoryQuery query, List<Line> lines) {
        List<HistoryEntry> found = new ArrayList<>();
        for (Line line : lines) {
            if (line.edge()) {
                return new HistoryPage(found, HistoryFilters.cursor(line.entry()), true);
            }
            if (line.beyond() || found.size() == query.pageSize()) {
                return new HistoryPage(found, HistoryFilters.cursor(found.get(found.size() - 1)), false);
            }
            found.add(line.entry());
        }
        return new HistoryPage(found, null, false);
    }

    /**
     * A row of the answer.
     *
     * @param beyond whether the page ends before it
     * @param edge whether it is no entry of the page, but the last one that was read while there are more
     */
    private record Line(HistoryEntry entry, boolean beyond, boolean edge) {}

    private static final String LATEST = " order by h.ended_at desc, h.job_id desc limit ";

    /** One statement, so that the page and its end are of the same moment. */
    private static String listing(HistoryQuery query, HistoryFilters filters) {
        String told = "select " + told(query.payloadLimit()) + " from ";
        String stored = "(select " + stored(query.payloadLimit()) + " from {schema}.pgworker_history h where "
                + filters.range() + LATEST;
        int most = query.pageSize() + 1;
        if (!filters.hasOthers()) {
            return bounded(told + stored + most + ") h", ", false as edge");
        }
        String near = "h.place operator(pg_catalog.<=) " + MOST_READ + " and h.bytes operator(pg_catalog.<=) "
                + MOST_SEARCHED;
        String read = "with r as materialized (select h.*, pg_catalog.row_number() over w as place, "
                + (HistoryFilters.readsPayloads(query)
                        ? "pg_catalog.sum(" + SIZE + ") over w operator(pg_catalog.-) (" + SIZE + ")"
                        : "0")
                + " as bytes from " + stored + (MOST_READ + 1)
                + ") h window w as (order by h.ended_at desc, h.job_id desc rows unbounded preceding)) ";
        String page = told + "r h where " + near + " and " + filters.others() + LATEST + most;
        String edge = "select " + told(0) + ", false, true from r h where " + near
                + " and exists (select from r h where not (" + near + ")) order by h.ended_at, h.job_id limit 1";
        return read + "select * from ((" + bounded(page, ", false as edge") + ") union all (" + edge
                + ")) l order by l.edge, l.ended_at desc, l.job_id desc";
    }
}
