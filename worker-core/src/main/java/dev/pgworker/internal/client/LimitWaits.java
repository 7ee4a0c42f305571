package dev.pgworker.internal.client;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.stream.Collectors;

import org.jspecify.annotations.Nullable;
import org.springframework.jdbc.core.simple.JdbcClient;

import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.job.JobWait;
import dev.pgworker.schema.WorkerSchema;

/** Says which limits a job waits for. */
final class LimitWaits {

    private static final int MOST_AHEAD = 1_000;

    private static final int LONGEST_VALUE = 100;

    private LimitWaits() {}

    /**
     * A limit of a job.
     *
     * @param running how many jobs hold a permit
     * @param next when the next token is there; null if there is one, or if the limit is none of a rate
     */
    private record Limiting(
            String name,
            @Nullable String value,
            long running,
            @Nullable Integer maxRunning,
            @Nullable Integer maxStarts,
            @Nullable Duration period,
            @Nullable Instant next,
            String state) {

        private boolean isInTheWay() {
            return !state.equals("active") || (maxRunning == null ? next != null : running >= maxRunning);
        }

        private String text() {
            String limit = "limit \"" + name + "\"";
            if (state.equals("applying")) {
                return limit + ", which is being put into effect";
            }
            String which = value == null || value.isEmpty() ? "" : " for \"" + cut(value) + "\"";
            return maxRunning == null
                    ? limit + ", which allows " + maxStarts + " starts in " + period + which
                    : limit + ", which allows " + maxRunning + " running" + which + ", and " + running + " are";
        }

        private static String cut(String value) {
            return value.length() <= LONGEST_VALUE ? value : value.substring(0, LONGEST_VALUE) + "…";
        }
    }

    private static final String LIMITS = """
            select l.name, l.value, l.running, l.max_running, l.max_starts,
              (extract(epoch from l.period) operator(pg_catalog.*) 1000000)::bigint, l.next_at, l.state
            from {schema}.pgworker_job_limits(?) l
            """;

    private static final String AHEAD =
            """
            select pg_catalog.count(*) from (
              select from {schema}._private_jobs o
              cross join {schema}._private_jobs j
              where o.id = ? and {parked} and j.locked_by collate "C" = o.locked_by collate "C"
                and (j.priority, j.run_at, j.id) < (o.priority, o.run_at, o.id)
              limit {most}) a
            """.replace("{parked}", JobFilters.PARKED).replace("{most}", String.valueOf(MOST_AHEAD));

    /** Returns why a job waits that is due and waits for limits. */
    static JobWait of(JdbcClient client, WorkerSchema schema, long id, String unserved) {
        List<Limiting> limits = client.sql(schema.in(LIMITS))
                .param(id)
                .query((row, number) -> limiting(row))
                .list();
        int ahead = client.sql(schema.in(AHEAD)).param(id).query(Integer.class).single();
        List<Limiting> inTheWay = limits.stream().filter(Limiting::isInTheWay).toList();
        Instant until = inTheWay.stream()
                .map(Limiting::next)
                .filter(Objects::nonNull)
                .max(Comparator.naturalOrder())
                .filter(next -> ahead == 0 && inTheWay.stream().allMatch(limit -> limit.next != null))
                .orElse(null);
        String others = ahead == 0
                ? ""
                : " " + (ahead >= MOST_AHEAD ? "1,000 jobs or more" : ahead == 1 ? "1 job" : ahead + " jobs")
                        + " of its kind " + (ahead == 1 ? "starts" : "start") + " before it.";
        String text = inTheWay.isEmpty()
                ? "Its limits have room: it starts as soon as a worker lets it."
                : inTheWay.stream().map(Limiting::text).collect(Collectors.joining("; ", "Waits for ", "."));
        return new JobWait(JobWait.Reason.LIMIT, until, ahead, text + others + unserved);
    }

    private static Limiting limiting(ResultSet row) throws SQLException {
        long micros = row.getLong(6);
        Duration period = row.wasNull() ? null : Duration.ofNanos(micros * 1_000);
        return new Limiting(
                row.getString(1),
                row.getString(2),
                row.getLong(3),
                row.getObject(4, Integer.class),
                row.getObject(5, Integer.class),
                period,
                Timestamps.nullableInstant(row, 7),
                row.getString(8));
    }
}
