package dev.pgworker.internal.store;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.springframework.jdbc.core.simple.JdbcClient;

import dev.pgworker.testing.ClaimSql;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** What tests of limits do in SQL: put limits, admit, claim, and look at jobs. */
final class LimitedJobs {

    private static final String ALL_TASKS = "array(select id from {schema}._private_tasks)";

    private static final Pattern BUFFERS = Pattern.compile("shared hit=(\\d+)(?: read=(\\d+))?");

    private final TestSchema db;

    LimitedJobs(TestSchema db) {
        this.db = db;
    }

    /** Puts a limit of concurrency and waits until it holds. */
    void limit(String name, String tasks, String field, int maxRunning) {
        db.sql("select name from {schema}.pgworker_put_limit(?, ?::text[], ?::text[], max_running => ?)")
                .params(name, tasks, field, maxRunning)
                .query(String.class)
                .single();
        apply();
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

    /** Does what there is to do for limits that were put or deleted, but for what has to wait for somebody for long. */
    void apply() {
        for (int steps = 0; steps < 10_000; steps++) {
            List<Map<String, Object>> rows = db.sql("select * from {schema}.pgworker_apply_limits(500)")
                    .query()
                    .listOfRows();
            if (rows.isEmpty() || "later".equals(rows.get(0).get("note"))) {
                return;
            }
            if (rows.get(0).get("note") != null) {
                Thread.onSpinWait();
            }
        }
        throw new IllegalStateException("limits are not applied");
    }

    long add(String task, String payload) {
        return db.sql("select id from {schema}.add_job(?, ?::json)")
                .params(task, payload)
                .query(Long.class)
                .single();
    }

    /** Adds so many jobs of "t" without payload. */
    void addMany(int number) {
        db.sql(
                        "select {schema}.pgworker_add_jobs(array_agg('t'::text), array_agg('{}'::text), null, null, null, null, null)"
                                + " from generate_series(1, ?)")
                .param(number)
                .query()
                .listOfRows();
    }

    long addWithKey(String task, String payload, String key, String mode) {
        return db.sql("select id from {schema}.add_job(?, ?::json, job_key => ?, job_key_mode => ?)")
                .params(task, payload, key, mode)
                .query(Long.class)
                .single();
    }

    /**
     * Looks at everything, as a gate of a worker that serves all tasks does and that was told of all jobs that were parked. Returns how
     * many jobs were admitted.
     */
    long admit() {
        return admit(ALL_TASKS);
    }

    long admit(String taskIds) {
        db.sql("select {schema}.pgworker_lower_floors(array(select distinct"
                        + " {schema}.pgworker_place(substr(locked_by, 16), priority, run_at)"
                        + " from {schema}._private_jobs where {schema}.pgworker_parked(locked_at)))")
                .query()
                .listOfRows();
        return admitUntold(taskIds);
    }

    /** As {@link #admit()}, but the gate was told of nothing. */
    long admitUntold() {
        return admitUntold(ALL_TASKS);
    }

    private long admitUntold(String taskIds) {
        return db.sql("select admitted from {schema}.pgworker_admit(" + taskIds + ", null, null, true, null, 1000)")
                .query(Long.class)
                .single();
    }

    /** Lets so many thousands of jobs through gates that are told of nothing, and deletes them. */
    void admitAndDelete(int number) {
        for (int i = 0; i < number / 1000; i++) {
            lookAtAllHolders();
            assertThat(admitUntold()).isEqualTo(1000);
            db.sql("delete from {schema}._private_jobs where is_available").update();
        }
        lookAtAllHolders();
    }

    /** Makes the next gate look at all holders of a limit, of which it looks at some only if it did so a moment ago. */
    void lookAtAllHolders() {
        db.sql("update {schema}.pgworker_limit_buckets set looked_at = null").update();
    }

    List<Long> claim(String worker, int wanted) {
        return db.sql("select id from " + ClaimSql.claim("?", "?") + " c order by id")
                .params(worker, wanted)
                .query(Long.class)
                .list();
    }

    List<Long> admitAndClaim(String worker) {
        admit();
        return claim(worker, 1000);
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

    List<Long> permits() {
        return db.sql("select job_id from {schema}.pgworker_permits order by job_id, bucket_id")
                .query(Long.class)
                .list();
    }

    /** Runs the statement and returns how many buffers it touched. */
    long buffers(String statement) {
        String plan = String.join(
                "\n",
                db.sql("explain (analyze, buffers) " + statement)
                        .query(String.class)
                        .list());
        Matcher matcher = BUFFERS.matcher(plan);
        assertThat(matcher.find()).as(plan).isTrue();
        return Long.parseLong(matcher.group(1)) + (matcher.group(2) == null ? 0 : Long.parseLong(matcher.group(2)));
    }

    /** Makes it so much longer ago that jobs were admitted. */
    void age(Duration by) {
        db.sql(
                        "update {schema}.pgworker_limit_buckets set since = array(select s - ? from unnest(since) with ordinality u(s, n)"
                                + " order by n)")
                .param((int) by.toSeconds())
                .update();
    }

    JdbcClient.StatementSpec sql(String text) {
        return db.sql(text);
    }
}
