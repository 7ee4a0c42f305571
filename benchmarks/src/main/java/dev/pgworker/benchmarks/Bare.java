package dev.pgworker.benchmarks;

import java.sql.SQLException;
import java.util.List;
import java.util.Optional;
import javax.sql.DataSource;

import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;

/**
 * What PostgreSQL can do: jobs are taken and deleted in a loop, and inserted without looking. It has no handlers, payloads,
 * queues, events or fences.
 *
 * @param connections how many loops there are
 * @param tables makes the tables
 * @param turn what a loop does again and again
 */
record Bare(String name, int connections, Tables tables, Loops.Turn turn) implements Contender {

    private static final String OWN_CLAIM = """
            update graphile_worker._private_jobs j
            set locked_at = now(), locked_by = 'bare', attempts = j.attempts + 1
            from (
              select id from graphile_worker._private_jobs
              where is_available and job_queue_id is null and run_at <= now()
              order by priority, run_at, id
              limit ?
              for update skip locked) ready
            where j.id = ready.id
            returning j.id
            """;

    private static final String OWN_DELETE = """
            delete from graphile_worker._private_jobs where id = any(?)
            """;

    private static final Loops.Turn CLAIM_AND_DELETE = new Loops.Turn(OWN_CLAIM, OWN_DELETE, "bigint", false);

    private static final String PEER_CLAIM = """
            with candidates as (
              select id, job_queue_id, priority, run_at from graphile_worker._private_jobs j
              where is_available = true and run_at <= now() and task_id = any(array[1])
                and (job_queue_id is null or job_queue_id in (
                  select q.id from graphile_worker._private_job_queues q
                  where q.is_available = true
                  for update skip locked))
              order by priority, run_at
              limit ?
              for update skip locked),
            firsts as (
              select distinct on (job_queue_id, case when job_queue_id is null then id end) id, job_queue_id
              from candidates
              order by job_queue_id, case when job_queue_id is null then id end, priority, run_at),
            queues as (
              update graphile_worker._private_job_queues q
              set locked_by = 'bare', locked_at = now()
              from firsts where q.id = firsts.job_queue_id)
            update graphile_worker._private_jobs j
            set attempts = j.attempts + 1, locked_by = 'bare', locked_at = now()
            from firsts
            where j.id = firsts.id
            returning *
            """;

    private static final String PEER_DELETE = """
            delete from graphile_worker._private_jobs j using unnest(?) done (id) where j.id = done.id
            """;

    private static final Loops.Turn AS_PEERS_DO = new Loops.Turn(PEER_CLAIM, PEER_DELETE, "bigint", false);

    private static final String TAKE = """
            select ctid as id, payload from graphile_worker._private_jobs
            where is_available and job_queue_id is null and run_at <= now()
            order by priority, run_at
            limit ?
            for update skip locked
            """;

    private static final String DELETE_TAKEN = """
            delete from graphile_worker._private_jobs where ctid = any(?)
            """;

    private static final Loops.Turn TAKE_AND_DELETE = new Loops.Turn(TAKE, DELETE_TAKEN, "tid", true);

    static final Contender ONE = new Bare("bare", 1, Bare::own, CLAIM_AND_DELETE);
    static final Contender TWO = new Bare("bare-2", 2, Bare::own, CLAIM_AND_DELETE);
    static final Contender PEER = new Bare("peer-loop", 2, PeerTables::create, AS_PEERS_DO);
    static final Contender HELD = new Bare("held-loop", 2, PeerTables::create, TAKE_AND_DELETE);

    /** Makes the tables of jobs in an empty database. */
    interface Tables {
        void create(DataSource dataSource) throws SQLException;
    }

    private static void own(DataSource dataSource) {
        new SchemaMigrator(dataSource, WorkerSchema.DEFAULT).migrate();
    }

    @Override
    public boolean wakes() {
        return false;
    }

    @Override
    public boolean addsItsOwnWay() {
        return this == ONE;
    }

    @Override
    public boolean onGraphileTables() {
        return true;
    }

    @Override
    public String mark() {
        return GraphileTables.MARK;
    }

    @Override
    public String unfinished() {
        return GraphileTables.UNFINISHED;
    }

    @Override
    public List<String> command(Options options, String jdbcUrl) {
        return JvmQueue.command(this, options, jdbcUrl);
    }

    @Override
    public Optional<JvmQueue.Factory> jvmQueue() {
        return Optional.of((dataSource, probe) -> new Loops(this, dataSource, probe));
    }
}
