package dev.pgworker.internal.client;

import java.sql.Array;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

import org.jspecify.annotations.Nullable;
import org.springframework.jdbc.core.simple.JdbcClient;

import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobSort;
import dev.pgworker.job.JobState;
import dev.pgworker.schema.WorkerSchema;

/**
 * Decides which jobs a query reads that must not read all: those that the best index finds, and of these the newest, or the
 * oldest if they come first. Each decision reads a bounded number of index entries.
 */
final class JobScan {

    /** A search ends when it has read about so many bytes of payloads. */
    private static final int MOST_BYTES = 8_000_000;

    /** Told without reading them. From 2 kB on they are stored compressed, to a tenth as a rule of thumb. */
    private static final String PAYLOAD_SIZE =
            "pg_catalog.pg_column_size(j.payload)::bigint * case when pg_catalog.pg_column_size(j.payload) > 2000 then 10 else 1 end";

    private final JdbcClient client;
    private final WorkerSchema schema;
    private final JobQuery query;
    private final int most;

    private JobScan(JdbcClient client, WorkerSchema schema, JobQuery query, int most) {
        this.client = client;
        this.schema = schema;
        this.query = query;
        this.most = most;
    }

    /**
     * What is read.
     *
     * @param filters conditions that these jobs meet
     * @param sort the order that is asked for
     * @param last the id of the last one in the order of ids; null if no job is left out for its id
     * @param complete whether no job is left out that may match the query
     * @param bounded whether nothing else may be read
     */
    record Reach(JobFilters filters, JobSort sort, @Nullable Long last, boolean complete, boolean bounded) {

        private Reach(JobFilters filters, JobSort sort, @Nullable Long last, boolean complete) {
            this(filters, sort, last, complete, true);
        }

        /** Returns a query for those of the jobs that match, whose values are {@link #values}. */
        String select(String what, JobQuery query) {
            JobFilters matching = JobFilters.of(query);
            if (!bounded) {
                return "select " + what + " from {schema}._private_jobs j where " + filters + " and " + matching;
            }
            // With an offset the planner cannot prefer an index that serves the outer conditions, for which it would
            // read more.
            String columns = JobFilters.readsPayloads(query) ? COLUMNS + ", j.payload" : COLUMNS;
            String order = isById(sort) ? " order by j.id " + direction(sort) : "";
            return "select " + what + " from (select " + columns + " from {schema}._private_jobs j where " + filters
                    + beyond() + order + " offset 0) j where " + matching;
        }

        private String beyond() {
            return last == null ? "" : " and j.id " + (sort == JobSort.OLDEST ? "<= " : ">= ") + last;
        }

        List<Object> values(JobQuery query) {
            List<Object> values = new ArrayList<>(filters.values());
            values.addAll(JobFilters.of(query).values());
            return values;
        }
    }

    /** What filters and orders look at. */
    private static final String COLUMNS =
            "j.id, j.task_id, j.job_queue_id, j.priority, j.run_at, j.attempts, j.updated_at, j.last_error, j.key, j.locked_at,"
                    + " j.flags, j.is_available";

    /** Returns what a query reads, on the page that it asks for. */
    static Reach of(JdbcClient client, WorkerSchema schema, JobQuery query) {
        JobFilters page = new JobFilters();
        if (isById(query.sort()) && query.after() != null) {
            page.add(query.sort() == JobSort.OLDEST ? "j.id > ?" : "j.id < ?", query.after());
        }
        Integer most = query.scanLimit();
        return most == null || query.key() != null
                ? new Reach(page, query.sort(), null, true, false)
                : new JobScan(client, schema, query, most).reach(page);
    }

    static boolean isById(JobSort sort) {
        return sort == JobSort.NEWEST || sort == JobSort.OLDEST;
    }

    private static String direction(JobSort sort) {
        return sort == JobSort.OLDEST ? "asc" : "desc";
    }

    /** Of a queue some jobs are better than none, even if the others are not to be had on a later page. */
    private Reach reach(JobFilters page) {
        boolean claimOrder = query.sort() == JobSort.PRIORITY || query.sort() == JobSort.RUN_AT;
        Found found = find();
        if (found != null && (found.complete || claimOrder || query.queueName() != null)) {
            page.addIds(found.ids);
            Reach end = found.complete || JobFilters.readsPayloads(query)
                    ? end(page)
                    : new Reach(page, query.sort(), null, false);
            return new Reach(page, query.sort(), end.last, found.complete && end.complete);
        }
        if (query.state() == JobState.FAILED) {
            page.add(JobFilters.condition(JobState.FAILED));
        }
        return query.state() == JobState.RUNNING ? running(page) : end(page);
    }

    private static final String MAY_READ = """
            select coalesce(pg_catalog.has_table_privilege(pg_catalog.to_regclass('{schema}.pgworker_running')::pg_catalog.oid, 'select'), false)
            """;

    private static final String LONG_RUNNING = """
            select j.id from {schema}.pgworker_running r
            join {schema}._private_jobs j on j.id = r.job_id and j.locked_by = r.worker_id and j.locked_at = r.locked_at
            where {which} order by r.started_at, r.job_id limit {most}
            """;

    private static final String RUNNING = """
            select j.id from {schema}._private_jobs j where {which} and {running} order by j.id desc limit {most}
            """.replace("{running}", JobFilters.RUNNING);

    /**
     * Reads the running ones among the newest or oldest, and all that workers have been running for some time, however old they are. Where
     * some of these are outside, nothing is known of what is further away.
     */
    private Reach running(JobFilters page) {
        Reach end = end(page);
        if (end.complete
                || !client.sql(schema.in(MAY_READ)).query(Boolean.class).single()) {
            return end;
        }
        long last = end.last == null ? 0 : end.last;
        Set<Long> ids = new LinkedHashSet<>(ids(LONG_RUNNING, page.toString(), page.values()));
        if (ids.stream().allMatch(id -> query.sort() == JobSort.OLDEST ? id <= last : id >= last)) {
            return end;
        }
        ids.addAll(ids(RUNNING, page + end.beyond(), page.values()));
        page.addIds(ids);
        return new Reach(page, query.sort(), JobFilters.readsPayloads(query) ? end(page).last : null, false);
    }

    private List<Long> ids(String sql, String which, List<Object> values) {
        return client.sql(schema.in(sql.replace("{which}", which).replace("{most}", String.valueOf(most))))
                .params(values)
                .query(Long.class)
                .list();
    }

    /** The ids of jobs, and whether there are no others of their kind. */
    private record Found(List<Long> ids, boolean complete) {}

    private static final String QUEUE = """
            select q.id from {schema}._private_job_queues q where q.queue_name = ?::pg_catalog.text
            """;

    /** Returns the jobs that wait or, of a queue, all; null if there is no index for what is asked. */
    private @Nullable Found find() {
        boolean waiting =
                query.state() != null && query.state() != JobState.RUNNING && query.state() != JobState.FAILED;
        if (query.queueName() == null) {
            return waiting ? waiting(List.of(ClaimOrder.UNQUEUED, ClaimOrder.QUEUED), "true") : null;
        }
        List<Integer> queue = client.sql(schema.in(QUEUE))
                .param(query.queueName())
                .query(Integer.class)
                .list();
        if (queue.isEmpty()) {
            return new Found(List.of(), true);
        }
        int id = queue.get(0);
        if (query.state() == null) {
            return ofQueue(id);
        }
        return waiting ? waiting(List.of(ClaimOrder.ofQueue(id)), "j.job_queue_id = " + id) : null;
    }

    /** Reads jobs that wait for a worker, for a limit, or for their time. */
    private Found waiting(List<String> lanes, String ofThem) {
        JobState state = query.state();
        JobFilters times = new JobFilters();
        if (state != null) {
            boolean due = state == JobState.READY || state == JobState.LIMITED;
            times.add(due ? ClaimOrder.DUE : "j.run_at > pg_catalog.now()");
        }
        times.addRunTimes(query);
        Found free = state == JobState.LIMITED ? new Found(List.of(), true) : free(lanes, times);
        Found limited = state == JobState.READY ? new Found(List.of(), true) : limited(times, ofThem);
        List<Long> ids = new ArrayList<>(free.ids);
        ids.addAll(limited.ids);
        return new Found(ids, free.complete && limited.complete);
    }

    private Found free(List<String> lanes, JobFilters times) {
        List<Object> values = new ArrayList<>();
        lanes.forEach(lane -> values.addAll(times.values()));
        List<Long> ids = client.sql(schema.in(ClaimOrder.ids(lanes, times.toString(), most + 1)))
                .params(values)
                .query(Long.class)
                .list();
        return new Found(ids.subList(0, Math.min(most, ids.size())), ids.size() <= most);
    }

    /** So many jobs that wait for limits are looked at, in the order of their index. */
    private static final int MOST_LIMITED = 20_000;

    private static final String LIMITED =
            """
            select pg_catalog.array_agg(j.id) filter (where {which}), pg_catalog.count(*) <= {most}
            from (
              select j.id, j.run_at, j.job_queue_id from {schema}._private_jobs j where {parked}
              order by j.locked_by collate "C", j.priority, j.run_at, j.id limit {most} + 1) j
            """.replace("{parked}", JobFilters.PARKED).replace("{most}", String.valueOf(MOST_LIMITED));

    private Found limited(JobFilters times, String ofThem) {
        Found all = client.sql(schema.in(LIMITED.replace("{which}", times + " and " + ofThem)))
                .params(times.values())
                .query(JobScan::found)
                .single();
        return all.ids.size() <= most ? all : new Found(all.ids.subList(0, most), false);
    }

    /** Failed and running jobs are in no index of queues. */
    private static final String OTHERS_OF_QUEUE = """
            select pg_catalog.array_cat(f.ids, r.ids), f.jobs <= {most} and r.jobs <= {most}
            from {schema}._private_job_queues q
            cross join (
              select pg_catalog.array_agg(x.id) filter (where x.job_queue_id = {queue}), pg_catalog.count(*) from (
                select j.id, j.job_queue_id from {schema}._private_jobs j
                where j.locked_at is null and not j.is_available
                order by j.id desc limit {most} + 1) x) f(ids, jobs)
            cross join (
              select pg_catalog.array_agg(j.id) filter (where j.job_queue_id = {queue} and {running}), pg_catalog.count(*)
              from (
                select h.id, h.job_queue_id, h.locked_at from {schema}._private_jobs h
                order by h.id desc limit {most} + 1) j) r(ids, jobs)
            where q.id = {queue}
            """.replace("{running}", JobFilters.RUNNING);

    private Found ofQueue(int queue) {
        Found waiting = waiting(List.of(ClaimOrder.ofQueue(queue)), "j.job_queue_id = " + queue);
        String sql = OTHERS_OF_QUEUE.replace("{most}", String.valueOf(most)).replace("{queue}", String.valueOf(queue));
        List<Found> others = client.sql(schema.in(sql)).query(JobScan::found).list();
        List<Long> ids = new ArrayList<>(waiting.ids);
        others.forEach(found -> ids.addAll(found.ids));
        return new Found(ids, waiting.complete && others.stream().allMatch(Found::complete));
    }

    private static Found found(ResultSet row, int number) throws SQLException {
        Array ids = row.getArray(1);
        return new Found(ids == null ? List.of() : List.of((Long[]) ids.getArray()), row.getBoolean(2));
    }

    private static final String END = """
            select {last}(r.id) filter (where r.place <= {most} and r.bytes_before <= {bytes}),
              pg_catalog.count(*) filter (where r.place > {most} or r.bytes_before > {bytes}) = 0
            from (
              select s.id, pg_catalog.row_number() over w as place, (pg_catalog.sum(s.bytes) over w)::bigint - s.bytes as bytes_before
              from (
                select j.id, {size} as bytes from {schema}._private_jobs j where {which} order by j.id {order} limit {most} + 1) s
              window w as (order by s.id {order} rows unbounded preceding)) r
            """;

    /** Returns how far reading goes among jobs that meet the conditions. */
    private Reach end(JobFilters which) {
        String sql = END.replace("{last}", query.sort() == JobSort.OLDEST ? "pg_catalog.max" : "pg_catalog.min")
                .replace("{most}", String.valueOf(most))
                .replace("{bytes}", String.valueOf(MOST_BYTES))
                .replace("{size}", JobFilters.readsPayloads(query) ? PAYLOAD_SIZE : "0::bigint")
                .replace("{order}", direction(query.sort()))
                .replace("{which}", which.toString());
        return client.sql(schema.in(sql))
                .params(which.values())
                .query((row, number) -> {
                    long last = row.getLong(1);
                    return row.getBoolean(2)
                            ? new Reach(which, query.sort(), null, true)
                            : new Reach(which, query.sort(), last, false);
                })
                .single();
    }
}
