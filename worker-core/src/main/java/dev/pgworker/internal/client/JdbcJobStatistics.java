package dev.pgworker.internal.client;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.internal.store.DurationCounts;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.statistics.BacklogSample;
import dev.pgworker.statistics.JobStatistics;
import dev.pgworker.statistics.Quantiles;
import dev.pgworker.statistics.StatisticsPoint;
import dev.pgworker.statistics.TaskStatistics;

/** Reads what workers have recorded, with nothing but the right to. */
final class JdbcJobStatistics implements JobStatistics {

    private static final Duration SHORTEST = Duration.ofMinutes(1);

    private static final Duration LONGEST = Duration.ofHours(24);

    private final ClientConnections connections;
    private final WorkerSchema schema;

    JdbcJobStatistics(ClientConnections connections, WorkerSchema schema) {
        this.connections = connections;
        this.schema = schema;
    }

    // Intervals begin at multiples of their length, so that they stay the same from one reading to the next. Operators
    // get the very types for which pg_catalog has one, so that no other takes its place.
    private static final String SERIES = """
            with asked as materialized (
              select a.length, a.points, pg_catalog.floor(extract(epoch from pg_catalog.statement_timestamp())::double precision / a.length)
                as latest
              from (select ?::double precision as length, ?::double precision as points) a),
            range as materialized (
              select *, pg_catalog.to_timestamp((latest - points + 1::double precision) * length) as first from asked)
            select r.latest::bigint, p.* from range r
            left join lateral (
              select pg_catalog.floor(extract(epoch from m.begins_at)::double precision / r.length)::bigint,
                pg_catalog.sum(m.succeeded)::bigint, pg_catalog.sum(m.retried)::bigint, pg_catalog.sum(m.failed)::bigint,
                pg_catalog.string_agg(m.run::pg_catalog.text, ','), pg_catalog.string_agg(m.waited::pg_catalog.text, ','),
                null::bigint, null::bigint, null::bigint, null::bigint, null::double precision, null::bigint
              from {schema}.pgworker_task_minutes m
              where m.span = 0 and m.begins_at >= r.first
              group by 1
              union all
              (select distinct on (1) pg_catalog.floor(extract(epoch from s.taken_at)::double precision / r.length)::bigint,
                null::bigint, null::bigint, null::bigint, null::pg_catalog.text, null::pg_catalog.text,
                s.ready, s.scheduled, s.retrying, s.failed,
                greatest(extract(epoch from s.taken_at - s.oldest_due), 0)::double precision, s.workers
              from {schema}.pgworker_samples s
              where s.taken_at >= r.first
              order by 1, s.taken_at desc)) p on true
            """;

    @Override
    public List<StatisticsPoint> series(Duration window, int points) {
        requireWindow(window);
        Arguments.requireRange("points", points, 1, 1440);
        double length = Timestamps.millis(window) / 1_000 / points;
        return connections.query(
                "read the statistics",
                false,
                client -> client.sql(schema.in(SERIES))
                        .param(length)
                        .param(points)
                        .query(rows -> {
                            return series(rows, length, points);
                        }));
    }

    /** What was read of an interval. */
    private static final class Interval {
        private long succeeded;
        private long retried;
        private long failed;
        private @Nullable Quantiles run;
        private @Nullable Quantiles waited;
        private @Nullable BacklogSample backlog;

        StatisticsPoint from(Instant from) {
            return new StatisticsPoint(from, succeeded, retried, failed, run, waited, backlog);
        }
    }

    private static List<StatisticsPoint> series(ResultSet row, double length, int points) throws SQLException {
        Map<Long, Interval> intervals = new HashMap<>();
        long latest = 0;
        while (row.next()) {
            latest = row.getLong(1);
            long place = row.getLong(2);
            if (row.wasNull()) {
                continue;
            }
            Interval interval = intervals.computeIfAbsent(place, any -> new Interval());
            if (row.getString(6) != null) {
                interval.succeeded = row.getLong(3);
                interval.retried = row.getLong(4);
                interval.failed = row.getLong(5);
                interval.run = quantiles(row.getString(6));
                interval.waited = quantiles(row.getString(7));
            } else {
                interval.backlog = backlog(row);
            }
        }
        List<StatisticsPoint> result = new ArrayList<>(points);
        for (long place = latest - points + 1; place <= latest; place++) {
            Instant from = Instant.ofEpochMilli(Math.round(place * length * 1_000));
            result.add(intervals.getOrDefault(place, new Interval()).from(from));
        }
        return result;
    }

    private static BacklogSample backlog(ResultSet row) throws SQLException {
        double seconds = row.getDouble(12);
        Duration oldestDue = row.wasNull() ? null : Duration.ofMillis(Math.round(seconds * 1_000));
        return new BacklogSample(
                row.getLong(8), row.getLong(9), row.getLong(10), row.getLong(11), oldestDue, row.getLong(13));
    }

    // Minutes up to the first hour that begins within the window, and hours from there on.
    private static final String TASKS = """
            with range as materialized (
              select f.first, pg_catalog.date_trunc('hour', (f.first + interval '1 hour - 1 microsecond') at time zone 'UTC') at time zone 'UTC'
                as hours
              from (
                select pg_catalog.date_trunc('minute', (pg_catalog.statement_timestamp() - ?::double precision * interval '1 ms')
                  at time zone 'UTC') at time zone 'UTC' as first) f)
            select m.task, pg_catalog.sum(m.succeeded)::bigint, pg_catalog.sum(m.retried)::bigint, pg_catalog.sum(m.failed)::bigint,
              pg_catalog.string_agg(m.run::pg_catalog.text, ','), pg_catalog.string_agg(m.waited::pg_catalog.text, ','),
              pg_catalog.max(m.last_minute)
            from range r
            cross join lateral (
              select * from {schema}.pgworker_task_minutes h where h.span = 60 and h.begins_at >= r.hours
              union all
              select * from {schema}.pgworker_task_minutes h
              where h.span = 1 and h.begins_at >= r.first and h.begins_at < r.hours) m
            group by m.task
            order by m.task collate "C" limit 10000
            """;

    @Override
    public List<TaskStatistics> tasks(Duration window) {
        requireWindow(window);
        return connections.query(
                "read the statistics of tasks",
                false,
                client -> client.sql(schema.in(TASKS))
                        .param(Timestamps.millis(window))
                        .query((row, number) -> new TaskStatistics(
                                row.getString(1),
                                row.getLong(2),
                                row.getLong(3),
                                row.getLong(4),
                                quantiles(row.getString(5)),
                                quantiles(row.getString(6)),
                                Timestamps.nullableInstant(row, 7)))
                        .list());
    }

    private static void requireWindow(Duration window) {
        Arguments.requireNonNull("window", window);
        if (window.compareTo(SHORTEST) < 0 || window.compareTo(LONGEST) > 0) {
            throw new IllegalArgumentException("window must be between 1 minute and 24 hours, but is " + window);
        }
    }

    private static @Nullable Quantiles quantiles(String stored) {
        DurationCounts counts = DurationCounts.of(stored);
        return counts.total() == 0
                ? null
                : new Quantiles(counts.quantile(0.5), counts.quantile(0.95), counts.quantile(1));
    }
}
