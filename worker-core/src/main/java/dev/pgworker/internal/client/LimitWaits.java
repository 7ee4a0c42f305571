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

/** Finds out which limits a job waits for. */
final class LimitWaits {

    private static final int MOST_AHEAD = 1_000;

    private LimitWaits() {}

    /**
     * A limit of a job. What is used is that of the job's value, which is not told: it comes from the payload.
     *
     * @param words what keeps the job back; null if the limit does not
     * @param next when the next token is there; null if there is one, or if the limit is none of a rate
     * @param turn of which fair shares the job waits for its turn; null if the limit is another one
     */
    private record Limiting(
            @Nullable String words,
            @Nullable Instant next,
            @Nullable String turn) {

        static Limiting of(ResultSet row, int number) throws SQLException {
            String limit = "limit \"" + row.getString(1) + "\", which ";
            String per = row.getString(2) == null ? "" : " per " + row.getString(2);
            long running = row.getLong(3);
            Integer maxRunning = row.getObject(4, Integer.class);
            Integer maxStarts = row.getObject(5, Integer.class);
            Instant next = Timestamps.nullableInstant(row, 7);
            String words = null;
            if (row.getString(8).equals("applying")) {
                words = limit + "is being put into effect";
            } else if (maxRunning != null && running >= maxRunning) {
                words = limit + "allows " + maxRunning + " running" + per + ", and " + running + " are";
            } else if (next != null) {
                words = limit + "allows " + maxStarts + " starts in " + Duration.ofNanos(row.getLong(6) * 1_000) + per;
            }
            return new Limiting(
                    words, next, maxRunning == null && maxStarts == null ? limit + "shares fairly" + per : null);
        }
    }

    private static final String LIMITS = """
            select l.name, pg_catalog.array_to_string(l.field, '.'), l.running, l.max_running, l.max_starts,
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
        List<Limiting> limits =
                client.sql(schema.in(LIMITS)).param(id).query(Limiting::of).list();
        int ahead = client.sql(schema.in(AHEAD)).param(id).query(Integer.class).single();
        List<Limiting> inTheWay =
                limits.stream().filter(limit -> limit.words != null).toList();
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
        String turn = limits.stream()
                .filter(limit -> limit.turn != null)
                .map(limit -> "Waits for its turn by " + limit.turn + ".")
                .findFirst()
                .orElse("Its limits have room: it starts when a worker that serves its task has a free handler.");
        String text = inTheWay.isEmpty()
                ? turn
                : inTheWay.stream().map(Limiting::words).collect(Collectors.joining("; ", "Waits for ", "."));
        return new JobWait(JobWait.Reason.LIMIT, until, ahead, text + others + unserved);
    }
}
