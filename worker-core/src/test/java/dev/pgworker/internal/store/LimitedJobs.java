package dev.pgworker.internal.store;

import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.springframework.jdbc.core.simple.JdbcClient;

import dev.pgworker.testing.ClaimSql;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** What tests of limits do in SQL: put limits, claim, and look at jobs. */
final class LimitedJobs {

    private static final Pattern BUFFERS = Pattern.compile("shared hit=(\\d+)(?: read=(\\d+))?");

    private final TestSchema db;

    LimitedJobs(TestSchema db) {
        this.db = db;
    }

    /** Puts a limit of concurrency and waits until it holds. */
    void limit(String name, String tasks, String field, int maxRunning) {
        putLimit(name, tasks, field, maxRunning);
        apply();
    }

    void putLimit(String name, String tasks, String field, int maxRunning) {
        db.sql("select name from {schema}.pgworker_put_limit(?, ?::text[], ?::text[], max_running => ?)")
                .params(name, tasks, field, maxRunning)
                .query(String.class)
                .single();
    }

    /** Puts a limit of rate and waits until it holds. */
    void rate(String name, String tasks, String field, int maxStarts, String period, int burst) {
        db.sql("select name from {schema}.pgworker_put_limit(?, ?::text[], ?::text[], max_starts => ?, period =>"
                        + " ?::interval, burst => ?)")
                .params(name, tasks, field, maxStarts, period, burst)
                .query(String.class)
                .single();
        apply();
    }

    /** Puts a fair share and waits until it holds. */
    void share(String name, String tasks, String field, String weights) {
        db.sql("select name from {schema}.pgworker_put_fair_share(?, ?::text[], ?::text[], ?::jsonb)")
                .params(name, tasks, field, weights)
                .query(String.class)
                .single();
        apply();
    }

    void delete(String name) {
        db.sql("select {schema}.pgworker_delete_limit(?)")
                .param(name)
                .query(Boolean.class)
                .single();
    }

    /** Does what there is to do for limits that were put or deleted, but for what has to wait for transactions of others. */
    void apply() {
        for (int steps = 0; steps < 10_000; steps++) {
            String left = db.sql("select {schema}.pgworker_apply_limits(500)")
                    .query(String.class)
                    .single();
            if (left.equals("done") || left.equals("later")) {
                return;
            }
            Thread.onSpinWait();
        }
        throw new IllegalStateException("limits are not applied");
    }

    long add(String task, String payload) {
        return db.sql("select id from {schema}.add_job(?, ?::json)")
                .params(task, payload)
                .query(Long.class)
                .single();
    }

    /** Adds a job with further arguments, which are SQL. */
    long add(String task, String payload, String arguments) {
        return db.sql("select id from {schema}.add_job(?, ?::json, " + arguments + ")")
                .params(task, payload)
                .query(Long.class)
                .single();
    }

    /** Adds so many jobs whose payload is SQL with "n", their number. */
    void addMany(String task, String payload, int number) {
        db.sql("select {schema}.pgworker_add_jobs(array_agg(?::text), array_agg((" + payload
                        + ")::text), null, null, null, null, null) from generate_series(1, ?) n")
                .params(task, number)
                .query()
                .listOfRows();
    }

    long addWithKey(String task, String payload, String key, String mode) {
        return db.sql("select id from {schema}.add_job(?, ?::json, job_key => ?, job_key_mode => ?)")
                .params(task, payload, key, mode)
                .query(Long.class)
                .single();
    }

    /** Claims jobs of limited tasks. */
    List<Long> claim(String worker, int wanted) {
        return claim(worker, wanted, "null", "true");
    }

    /**
     * As {@link #claim(String, int)}.
     *
     * @param forbidden an array of flags, or null
     * @param tasks a condition on the tasks "t" that the worker serves
     */
    List<Long> claim(String worker, int wanted, String forbidden, String tasks) {
        return db.sql("select c.id from " + claimed(forbidden, tasks) + " c where c.id is not null")
                .params(worker, wanted)
                .query(Long.class)
                .list();
    }

    /** Returns what stands for all rows of a claim, with the parameters worker and wanted. */
    static String claimed(String forbidden, String tasks) {
        return "{schema}.pgworker_claim_limited(row(?, array(select t.id from {schema}._private_tasks t where " + tasks
                + " order by t.id), null, null, null, true, " + forbidden + ", null)::{schema}.pgworker_request, ?)";
    }

    /** Claims as for tasks without limits. */
    List<Long> claimOrdinary(String worker, int wanted) {
        return db.sql("select id from " + ClaimSql.claim("?", "?") + " c order by id")
                .params(worker, wanted)
                .query(Long.class)
                .list();
    }

    void complete(String worker, long id) {
        List<Integer> queues = queues(id);
        db.sql("select * from {schema}.pgworker_complete(?, array[?::bigint], (select array[locked_at] from"
                        + " {schema}._private_jobs where id = ?), array[1])")
                .params(worker, id, id)
                .query()
                .listOfRows();
        free(worker, queues);
    }

    private List<Integer> queues(long id) {
        return db.sql("select job_queue_id from {schema}._private_jobs where id = ? and job_queue_id is not null")
                .param(id)
                .query(Integer.class)
                .list();
    }

    private void free(String worker, List<Integer> queues) {
        for (int queue : queues) {
            db.sql("select {schema}.pgworker_free_queues(array[?], array[?])")
                    .params(queue, worker)
                    .query()
                    .listOfRows();
        }
    }

    /** Gives the job back as the worker does; returns the outcome. */
    String release(String worker, long id, String action, double delay) {
        List<Integer> queues = queues(id);
        String outcome = db.sql("select outcome from {schema}.pgworker_release(?, array["
                        + ClaimSql.outcome("?", "?", "?::float8", "'e'", "null", "null") + "])")
                .params(worker, id, id, action, delay)
                .query(String.class)
                .single();
        free(worker, queues);
        return outcome;
    }

    /** Returns "parked", "available", "running", "failed" or "gone". */
    String state(long id) {
        return db.sql("select case when j.locked_at = '9999-01-01 00:00:00+00' and j.locked_by like 'pgworker-limit:%'"
                        + " then 'parked' when j.is_available then 'available' when j.locked_at is not null then"
                        + " 'running' else 'failed' end from {schema}._private_jobs j where id = ?")
                .param(id)
                .query(String.class)
                .optional()
                .orElse("gone");
    }

    /** Returns how many permits of all limits are in use. */
    long used() {
        return db.sql("select coalesce(sum(t.used), 0)::bigint from {schema}.pgworker_limited_totals() t")
                .query(Long.class)
                .single();
    }

    String phase(String name) {
        return db.sql("select state from {schema}.pgworker_limits where name = ?")
                .param(name)
                .query(String.class)
                .optional()
                .orElse("gone");
    }

    /** Runs the statement and returns how many buffers it touched. */
    long buffers(String statement, Object... parameters) {
        String plan = String.join(
                "\n",
                db.sql("explain (analyze, buffers) " + statement)
                        .params(parameters)
                        .query(String.class)
                        .list());
        Matcher matcher = BUFFERS.matcher(plan);
        assertThat(matcher.find()).as(plan).isTrue();
        return Long.parseLong(matcher.group(1)) + (matcher.group(2) == null ? 0 : Long.parseLong(matcher.group(2)));
    }

    JdbcClient.StatementSpec sql(String text) {
        return db.sql(text);
    }
}
