package dev.pgworker.internal.client;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

import org.jspecify.annotations.Nullable;
import org.springframework.jdbc.core.simple.JdbcClient;

import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.internal.store.PauseStore;
import dev.pgworker.job.ActiveWorker;
import dev.pgworker.job.JobWait;
import dev.pgworker.job.JobWait.Reason;
import dev.pgworker.schema.WorkerSchema;

/** Finds out why a job does not run, and explains it in plain words. */
final class JobWaits {

    private static final int MOST_AHEAD = 1_000;

    /** After that administration takes a lock for a forgotten one, unless its worker lives. */
    private static final Duration OLD_LOCK = Duration.ofHours(4);

    /** For how long it has been what has been since -infinity. */
    private static final Duration EVER = Duration.ofSeconds(100_000_000_000_000L);

    private final ClientConnections connections;
    private final WorkerSchema schema;
    private final Supplier<List<ActiveWorker>> workers;

    /** Creates what asks for the registered workers when it needs them. */
    JobWaits(ClientConnections connections, WorkerSchema schema, Supplier<List<ActiveWorker>> workers) {
        this.connections = connections;
        this.schema = schema;
        this.workers = workers;
    }

    /** The content of a job's row and of its queue's. */
    private record Row(
            long id,
            String task,
            Attempts attempts,
            @Nullable Instant runAt,
            boolean due,
            boolean waits,
            boolean flagged,
            boolean limited,
            @Nullable Lock lock,
            @Nullable Queue queue) {}

    private record Attempts(int made, int most) {}

    private record Queue(int id, String name, @Nullable Lock lock) {}

    private record Lock(String workerId, Duration age) {

        static @Nullable Lock of(ResultSet row, int workerId, int seconds) throws SQLException {
            String worker = row.getString(workerId);
            return worker == null ? null : new Lock(worker, Duration.ofSeconds(row.getLong(seconds)));
        }
    }

    private static final String ROW = """
            select j.id, coalesce(t.identifier, pg_catalog.concat('task ', j.task_id)), j.attempts, j.max_attempts,
              case when pg_catalog.isfinite(j.run_at) then j.run_at end, j.run_at <= pg_catalog.now(),
              j.run_at = {schema}.pgworker_forever(), j.flags is not null,
              {parked}, case when j.locked_at is not null and not {parked} then coalesce(j.locked_by, '') end,
              case when j.locked_at = 'infinity' then 0 when j.locked_at = '-infinity' then {ever}
                else extract(epoch from pg_catalog.now() - j.locked_at)::bigint end,
              q.id, q.queue_name,
              case when q.locked_at is not null then coalesce(q.locked_by, '') end,
              case when q.locked_at = 'infinity' then 0 when q.locked_at = '-infinity' then {ever}
                else extract(epoch from pg_catalog.now() - q.locked_at)::bigint end
            from {schema}._private_jobs j
            left join {schema}._private_tasks t on t.id = j.task_id
            left join {schema}._private_job_queues q on q.id = j.job_queue_id
            where j.id = ?
            """.replace("{parked}", "coalesce(" + JobFilters.PARKED + ", false)")
            .replace("{ever}", String.valueOf(EVER.toSeconds()));

    private static Row row(ResultSet row, int number) throws SQLException {
        String queue = row.getString(13);
        return new Row(
                row.getLong(1),
                row.getString(2),
                new Attempts(row.getInt(3), row.getInt(4)),
                Timestamps.nullableInstant(row, 5),
                row.getBoolean(6),
                row.getBoolean(7),
                row.getBoolean(8),
                row.getBoolean(9),
                Lock.of(row, 10, 11),
                queue == null ? null : new Queue(row.getInt(12), queue, Lock.of(row, 14, 15)));
    }

    Optional<JobWait> of(long id) {
        return connections.query(
                "find out what job " + id + " waits for",
                false,
                client -> client.sql(schema.in(ROW))
                        .param(id)
                        .query(JobWaits::row)
                        .optional()
                        .map(job -> wait(client, job)));
    }

    private JobWait wait(JdbcClient client, Row job) {
        if (job.lock != null) {
            return locked(job.lock);
        }
        if (job.attempts.made >= job.attempts.most) {
            return new JobWait(
                    Reason.FAILED,
                    null,
                    null,
                    "Has failed permanently after " + count(job.attempts.made, "attempt")
                            + ". Retry it to run it again.");
        }
        Optional<JobWait> predecessors = job.waits ? FlowWaits.of(client, schema, job.id) : Optional.empty();
        if (predecessors.isPresent()) {
            return predecessors.get();
        }
        if (!job.due) {
            Optional<JobWait> step = JobStepList.wait(client, schema, job.id);
            return step.isPresent()
                    ? step.get()
                    : job.attempts.made == 0
                            ? new JobWait(Reason.TIME, job.runAt, null, "It is not due yet" + until(job) + ".")
                            : new JobWait(
                                    Reason.RETRY,
                                    job.runAt,
                                    null,
                                    "Attempt " + job.attempts.made + " of " + job.attempts.most
                                            + " has failed; the time of the next one has not come" + until(job) + ".");
        }
        return due(client, job);
    }

    private static String until(Row job) {
        return job.runAt == null ? ": it is due at infinity, which is never" : "";
    }

    private JobWait locked(Lock lock) {
        ActiveWorker worker = find(lock.workerId);
        if (worker != null && worker.stale()) {
            return new JobWait(
                    Reason.WORKER_DEAD,
                    null,
                    null,
                    name(lock) + " has held it for " + words(lock.age)
                            + " and has sent no heartbeat for longer than its threshold. A sweep gives the job back.");
        }
        if (worker == null && lock.age.compareTo(OLD_LOCK) >= 0) {
            return new JobWait(
                    Reason.WORKER_DEAD,
                    null,
                    null,
                    name(lock) + ", which is not registered, has held it for " + words(lock.age)
                            + ". If it is dead, force its unlocking; workers of Node.js take such a job again by themselves.");
        }
        return new JobWait(Reason.RUNS, null, null, name(lock) + " has been running it for " + words(lock.age) + ".");
    }

    private @Nullable ActiveWorker find(String workerId) {
        return workers.get().stream()
                .filter(worker -> worker.id().equals(workerId))
                .findFirst()
                .orElse(null);
    }

    private static final String PAUSES = "select " + PauseStore.COLUMNS + """
             from {schema}.pgworker_pauses p
            where p.resumed_at is null
              and (p.kind = 'all' or p.kind = 'task' and p.name = ?::pg_catalog.text or p.kind = 'queue' and p.name = ?::pg_catalog.text)
            order by p.kind
            """;

    private Optional<JobWait> paused(JdbcClient client, Row job) {
        return client
                .sql(schema.in(PAUSES))
                .param(job.task)
                .param(job.queue == null ? "" : job.queue.name)
                .query((row, number) -> PauseStore.pause(row, 1))
                .list()
                .stream()
                .findFirst()
                .map(pause -> new JobWait(Reason.PAUSED, null, null, sentence(pause.text())));
    }

    private static String sentence(String text) {
        return Character.toUpperCase(text.charAt(0)) + text.substring(1) + (text.endsWith(".") ? "" : ".");
    }

    private JobWait due(JdbcClient client, Row job) {
        return paused(client, job).orElseGet(() -> notPaused(client, job));
    }

    private JobWait notPaused(JdbcClient client, Row job) {
        boolean served = workers.get().stream()
                .anyMatch(
                        worker -> !worker.stale() && TaskOverview.tasks(worker).contains(job.task));
        String unserved =
                served ? "" : " No live worker serves task \"" + job.task + "\"; workers for Node.js do not register.";
        if (job.limited) {
            return LimitWaits.of(client, schema, job.id, unserved);
        }
        Queue queue = job.queue;
        if (queue != null && queue.lock != null) {
            return queueRuns(client, job, queue, queue.lock, unserved);
        }
        if (!served) {
            return new JobWait(Reason.NO_WORKER, null, null, unserved.strip());
        }
        if (queue != null) {
            int ahead = ahead(client, List.of(ClaimOrder.ofQueue(queue.id)), job.id);
            if (ahead > 0) {
                return new JobWait(
                        Reason.QUEUE_ORDER,
                        null,
                        ahead,
                        "Waits for " + many(ahead) + " of queue \"" + queue.name + "\".");
            }
        }
        int ahead = ahead(client, List.of(ClaimOrder.UNQUEUED, ClaimOrder.QUEUED), job.id);
        return new JobWait(Reason.TURN, null, ahead, turn(ahead) + (job.flagged ? FLAGGED : ""));
    }

    private static final String FLAGGED = " It has flags: workers that forbid one of them pass it over.";

    private static String turn(int ahead) {
        return ahead == 0
                ? "Is next, as soon as a worker has a free handler."
                : "Waits for a free handler; " + many(ahead) + " may run before it.";
    }

    private static final String RUNNING_OF_QUEUE = """
            select j.id from {schema}._private_jobs j
            where j.id = any(array(
                select n.id from {schema}._private_jobs n where n.id < ? order by n.id desc limit 1000)
              ) and j.job_queue_id = ? and j.locked_at is not null
            order by j.id limit 1
            """;

    private JobWait queueRuns(JdbcClient client, Row job, Queue queue, Lock lock, String unserved) {
        int ahead = ahead(client, List.of(ClaimOrder.ofQueue(queue.id)), job.id);
        Optional<Long> running = client.sql(schema.in(RUNNING_OF_QUEUE))
                .param(job.id)
                .param(queue.id)
                .query(Long.class)
                .optional();
        ActiveWorker worker = find(lock.workerId);
        String what = "queue \"" + queue.name + "\", of which "
                + running.map(id -> "job " + id).orElse("a job") + " has been running for " + words(lock.age) + " on "
                + name(lock).replaceFirst("^Worker", "worker");
        String text = ahead == 0 ? "Is next in " + what : "Waits for " + many(ahead) + " of " + what;
        String dead = worker != null && worker.stale() ? ", which has sent no heartbeat for too long" : "";
        return new JobWait(Reason.QUEUE_RUNS, null, ahead, text + dead + "." + unserved);
    }

    /** Returns how many due jobs are claimed before one, counted up to 1,000. */
    private int ahead(JdbcClient client, List<String> lanes, long id) {
        List<Long> first = client.sql(schema.in(ClaimOrder.ids(lanes, ClaimOrder.DUE, MOST_AHEAD + 1)))
                .query(Long.class)
                .list();
        int place = first.indexOf(id);
        return Math.min(MOST_AHEAD, place < 0 ? first.size() : place);
    }

    private static String many(int ahead) {
        return ahead >= MOST_AHEAD ? "1,000 jobs or more" : count(ahead, "job");
    }

    private static String count(int number, String noun) {
        return number + " " + noun + (number == 1 ? "" : "s");
    }

    private static String name(Lock lock) {
        return lock.workerId.isEmpty() ? "Worker without a name" : "Worker " + lock.workerId;
    }

    /** Returns how long something has lasted, such as "3 min". */
    private static String words(Duration time) {
        if (time.equals(EVER)) {
            return "ever";
        }
        if (time.toSeconds() < 120) {
            return Math.max(0, time.toSeconds()) + " s";
        }
        if (time.toMinutes() < 120) {
            return time.toMinutes() + " min";
        }
        return time.toHours() < 48 ? time.toHours() + " h" : time.toDays() + " days";
    }
}
