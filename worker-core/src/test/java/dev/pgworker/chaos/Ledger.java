package dev.pgworker.chaos;

import java.sql.Timestamp;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;

import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.core.simple.JdbcClient;

import dev.pgworker.job.Job;
import dev.pgworker.task.JobContext;

/**
 * What was added and what was run, in tables beside those of the worker. A run without a row has done nothing, because its
 * handler gives up when the row cannot be written; a run that its row calls done has done its work.
 */
final class Ledger {

    /** An added job, written in the transaction that added it. */
    record Added(int n, ChaosJob.Kind kind, String queue, String jobKey, long job, Instant runAt) {}

    /**
     * A run.
     *
     * @param token null if the process is of Node.js, which has none
     * @param recoveries how often the job had lost its worker by then; -1 if the row was gone
     * @param endedAt when the handler ended; null if its process died before that could be told, and so is {@code how}
     */
    record Run(
            UUID id,
            String token,
            int n,
            long job,
            String queue,
            String worker,
            int process,
            int attempt,
            int recoveries,
            Instant runAt,
            Instant startedAt,
            boolean done,
            Instant endedAt,
            String how) {}

    /** An outcome that was not recorded because its worker held the job no longer. */
    record LostJob(String worker, int process, long job, Instant noticedAt) {}

    /** A worker that a sweep has found dead. */
    record FoundDead(String worker, Instant at) {}

    /** A job that is in the table after all others are gone. */
    record Left(long id, int n, String lockedBy, int attempts, int maxAttempts, int recoveries, String lastError) {}

    private final JdbcClient sql;
    private final InstantSource clock;
    private final LinkedBlockingQueue<Runnable> notes = new LinkedBlockingQueue<>();
    private final Thread writer = new Thread(this::writeNotes, "ledger");

    Ledger(DataSource dataSource) {
        this(dataSource, InstantSource.system());
    }

    /** Creates a ledger with a clock that goes as the database's does. */
    Ledger(DataSource dataSource, InstantSource clock) {
        sql = JdbcClient.create(dataSource);
        this.clock = clock;
    }

    JdbcClient sql() {
        return sql;
    }

    /** Creates the tables, and a trigger that refuses some deletions of jobs while {@link #refuseDeletions} says so. */
    void create() {
        List.of(
                        "create schema chaos",
                        """
                        create table chaos.added (
                          n int primary key, kind text, queue text, job_key text, job bigint, run_at timestamptz)""",
                        """
                        create table chaos.run (
                          id uuid primary key, token text, n int, job bigint, queue text, worker text, process int,
                          attempt int, recoveries int, run_at timestamptz, started_at timestamptz default clock_timestamp(),
                          done boolean default false, ended_at timestamptz, how text)""",
                        "create table chaos.effect (n int)",
                        "create table chaos.lost (worker text, reason text)",
                        "create table chaos.lost_job (worker text, process int, job bigint, noticed_at timestamptz)",
                        "create table chaos.found_dead (worker text, found_at timestamptz)",
                        "create table chaos.refusing (refusing boolean)",
                        "insert into chaos.refusing values (false)",
                        """
                        create function chaos.refuse() returns trigger language plpgsql as $$
                        begin
                          if random() < 0.3 and (select refusing from chaos.refusing) then
                            raise 'No space left on device' using errcode = 'disk_full';
                          end if;
                          return old;
                        end $$""",
                        """
                        create trigger refuse before delete on graphile_worker._private_jobs
                        for each row execute function chaos.refuse()""")
                .forEach(statement -> sql.sql(statement).update());
    }

    void refuseDeletions(boolean refuse) {
        sql.sql("update chaos.refusing set refusing = ?").param(refuse).update();
    }

    void added(ChaosJob payload, Job job) {
        sql.sql("insert into chaos.added values (?, ?, ?, ?, ?, ?)")
                .params(
                        payload.n(),
                        payload.kind().name(),
                        job.queueName(),
                        job.key(),
                        job.id(),
                        Timestamp.from(job.runAt()))
                .update();
    }

    void started(UUID run, ChaosJob payload, int process, JobContext context) {
        Job job = context.job();
        sql.sql("""
                        insert into chaos.run (id, token, n, job, queue, worker, process, attempt, run_at, recoveries)
                        values (?, ?, ?, ?, ?, ?, ?, ?, ?, coalesce(
                          (select coalesce(r.recoveries, 0) from graphile_worker._private_jobs j
                             left join graphile_worker.pgworker_recoveries r on r.job_id = j.id and r.revision = j.revision
                             where j.id = ?), -1))""")
                .params(
                        run,
                        context.fencingToken(),
                        payload.n(),
                        job.id(),
                        job.queueName(),
                        context.workerId(),
                        process,
                        context.attempt(),
                        Timestamp.from(job.runAt()),
                        job.id())
                .update();
    }

    void done(UUID run) {
        sql.sql("update chaos.run set done = true where id = ?").param(run).update();
    }

    /** Notes the present time as the end of a run; returns before that is written. */
    void ended(UUID run, String how) {
        Timestamp now = Timestamp.from(clock.instant());
        notes.add(() -> sql.sql("update chaos.run set ended_at = ?, how = ? where id = ?")
                .params(now, how, run)
                .update());
    }

    /** Notes that a worker knows to have been declared dead; returns before that is written. */
    void lost(String worker, String reason) {
        notes.add(() -> sql.sql("insert into chaos.lost values (?, ?)")
                .params(worker, reason)
                .update());
    }

    /** Notes that the outcome of a job was not recorded because the worker held it no longer. */
    void lostJob(String worker, int process, long job) {
        Timestamp now = Timestamp.from(clock.instant());
        notes.add(() -> sql.sql("insert into chaos.lost_job values (?, ?, ?, ?)")
                .params(worker, process, job, now)
                .update());
    }

    /** Notes that sweeping found a worker dead. */
    void foundDead(String worker) {
        Timestamp now = Timestamp.from(clock.instant());
        notes.add(() -> sql.sql("insert into chaos.found_dead values (?, ?)")
                .params(worker, now)
                .update());
    }

    /** Begins to write notes, each as often as it takes. */
    void startNotes() {
        writer.setDaemon(true);
        writer.start();
    }

    /** Ends when all notes are written. */
    void finishNotes() throws InterruptedException {
        notes.add(() -> Thread.currentThread().interrupt());
        writer.join(Duration.ofMinutes(2).toMillis());
    }

    private void writeNotes() {
        try {
            while (!Thread.currentThread().isInterrupted()) {
                write(notes.take());
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static void write(Runnable note) throws InterruptedException {
        while (true) {
            try {
                note.run();
                return;
            } catch (DataAccessException e) {
                TimeUnit.MILLISECONDS.sleep(50);
            }
        }
    }

    List<Added> allAdded() {
        return sql.sql("select n, kind, queue, job_key, job, run_at from chaos.added order by n")
                .query((row, number) -> new Added(
                        row.getInt(1),
                        ChaosJob.Kind.valueOf(row.getString(2)),
                        row.getString(3),
                        row.getString(4),
                        row.getLong(5),
                        instant(row.getTimestamp(6))))
                .list();
    }

    List<Run> allRuns() {
        return sql.sql("""
                        select id, token, n, job, queue, worker, process, attempt, recoveries, run_at, started_at, done, ended_at, how
                        from chaos.run order by started_at""")
                .query((row, number) -> new Run(
                        row.getObject(1, UUID.class),
                        row.getString(2),
                        row.getInt(3),
                        row.getLong(4),
                        row.getString(5),
                        row.getString(6),
                        row.getInt(7),
                        row.getInt(8),
                        row.getInt(9),
                        instant(row.getTimestamp(10)),
                        instant(row.getTimestamp(11)),
                        row.getBoolean(12),
                        instant(row.getTimestamp(13)),
                        row.getString(14)))
                .list();
    }

    List<Integer> effects() {
        return sql.sql("select n from chaos.effect").query(Integer.class).list();
    }

    List<String> lostWorkers() {
        return sql.sql("select worker from chaos.lost").query(String.class).list();
    }

    List<LostJob> lostJobs() {
        return sql.sql("select worker, process, job, noticed_at from chaos.lost_job order by noticed_at")
                .query((row, number) ->
                        new LostJob(row.getString(1), row.getInt(2), row.getLong(3), instant(row.getTimestamp(4))))
                .list();
    }

    List<FoundDead> foundDead() {
        return sql.sql("select worker, found_at from chaos.found_dead order by found_at")
                .query((row, number) -> new FoundDead(row.getString(1), instant(row.getTimestamp(2))))
                .list();
    }

    /** Releases what is locked by others than PgWorkers, as an operator does who knows that they are gone. */
    void releaseLocksOfNode() {
        sql.sql("""
                        select graphile_worker.force_unlock_workers(array(
                          select locked_by from graphile_worker._private_jobs where locked_by not like 'pgworker-%'
                          union
                          select locked_by from graphile_worker._private_job_queues where locked_by not like 'pgworker-%'))""").query().listOfRows();
    }

    /** Returns the processes that run the job, as far as is known. */
    List<Integer> processesIn(int n) {
        return sql.sql("select process from chaos.run where n = ? and how is null")
                .param(n)
                .query(Integer.class)
                .list();
    }

    /** Lets jobs that have lost many workers, and wait for minutes because of that, run at once; returns true. */
    boolean retryCrashedNow() {
        sql.sql("""
                select graphile_worker.reschedule_jobs(array(
                  select id from graphile_worker._private_jobs
                  where locked_at is null and attempts < max_attempts and run_at > now() + interval '30 seconds'
                    and last_error like 'WorkerCrashed%'), run_at => now())
                """).query().listOfRows();
        return true;
    }

    List<Left> leftJobs() {
        return sql.sql("""
                        select j.id, (payload->>'n')::int, locked_by, attempts, max_attempts, coalesce(r.recoveries, 0), last_error
                        from graphile_worker._private_jobs j
                        left join graphile_worker.pgworker_recoveries r on r.job_id = j.id and r.revision = j.revision
                        order by j.id""")
                .query((row, number) -> new Left(
                        row.getLong(1),
                        row.getInt(2),
                        row.getString(3),
                        row.getInt(4),
                        row.getInt(5),
                        row.getInt(6),
                        row.getString(7)))
                .list();
    }

    List<String> lockedQueues() {
        return sql.sql("""
                        select queue_name || ' by ' || coalesce(locked_by, 'nobody') from graphile_worker._private_job_queues
                        where locked_at is not null or locked_by is not null""").query(String.class).list();
    }

    List<String> registeredWorkers() {
        return sql.sql("select id from graphile_worker._private_workers")
                .query(String.class)
                .list();
    }

    private static Instant instant(Timestamp timestamp) {
        return timestamp == null ? null : timestamp.toInstant();
    }
}
