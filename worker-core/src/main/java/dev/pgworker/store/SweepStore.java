package dev.pgworker.store;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import dev.pgworker.event.RecoveryOutcome;
import dev.pgworker.job.Job;
import dev.pgworker.job.SweepOptions;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.JobRecoveryHandler;
import dev.pgworker.task.RecoveryDecision;

/**
 * Finds dead workers and takes their jobs and queues from them, in one transaction under the advisory lock that sweeps of
 * Rust workers take, too.
 *
 * <p>Handlers are asked within the transaction but before it locks the row of a job, so that they may do with jobs
 * whatever they like. Meanwhile it locks the dead workers' registrations alone.
 */
public final class SweepStore {

    private static final Logger log = LoggerFactory.getLogger(SweepStore.class);

    /** How long the server may take for one statement of a sweep, which may read all jobs. */
    private static final Duration ANSWER_LIMIT = Duration.ofMinutes(1);

    /** For how long the server waits for the next statement of a sweep while others cannot sweep. */
    private static final Duration IDLE_LIMIT = Duration.ofSeconds(5);

    /** The same where handlers are asked in between. */
    private static final Duration IDLE_LIMIT_WITH_HANDLERS = Duration.ofMinutes(5);

    private final DataSource dataSource;
    private final WorkerSchema schema;
    private final List<JobRecoveryHandler> handlers;
    private final Duration idleLimit;

    /** Creates a store whose sweeps ask the given handlers. */
    public SweepStore(DataSource dataSource, WorkerSchema schema, List<JobRecoveryHandler> handlers) {
        this(dataSource, schema, handlers, handlers.isEmpty() ? IDLE_LIMIT : IDLE_LIMIT_WITH_HANDLERS);
    }

    SweepStore(DataSource dataSource, WorkerSchema schema, List<JobRecoveryHandler> handlers, Duration idleLimit) {
        this.dataSource = dataSource;
        this.schema = schema;
        this.handlers = List.copyOf(handlers);
        this.idleLimit = idleLimit;
    }

    /**
     * What to look for and what to do.
     *
     * @param threshold how old the last heartbeat of a dead worker is
     * @param resilientThreshold the same for workers that hold a job with a resilient flag
     * @param delay when recovered jobs run again
     * @param maxRecoveries how often a job is recovered without its attempt being counted
     * @param orphans whether to look for locks of unregistered workers, which reads all jobs
     * @param dryRun whether to find the dead workers only
     */
    public record Request(
            Duration threshold,
            Duration resilientThreshold,
            List<String> resilientFlags,
            Duration delay,
            int maxRecoveries,
            boolean orphans,
            boolean dryRun) {

        /** Returns this request without the look at all jobs. */
        public Request withoutOrphans() {
            return new Request(threshold, resilientThreshold, resilientFlags, delay, maxRecoveries, false, dryRun);
        }

        /** Returns this request as changed by hand; the ratio of the thresholds stays. */
        Request with(SweepOptions options) {
            Duration given = options.threshold();
            double ratio = (double) resilientThreshold.toNanos() / threshold.toNanos();
            return new Request(
                    given == null ? threshold : given,
                    given == null ? resilientThreshold : Duration.ofNanos((long) (given.toNanos() * ratio)),
                    resilientFlags,
                    options.recoveryDelay() == null ? delay : options.recoveryDelay(),
                    maxRecoveries,
                    orphans,
                    options.dryRun());
        }
    }

    /**
     * What a sweep has done.
     *
     * @param locked false if another sweep was at work, so that nothing was done
     * @param workerIds the dead workers
     * @param jobs the jobs taken from them
     */
    public record Result(boolean locked, List<String> workerIds, List<Recovered> jobs) {}

    /** A job as it was locked by the dead worker, and what has become of it. */
    public record Recovered(Job job, String deadWorkerId, RecoveryOutcome outcome) {}

    /**
     * Sweeps on a connection of its own; has taken effect when it returns. A process that is paused, or cut off, in the
     * middle of it does not keep others from sweeping for good: the server ends its transaction.
     */
    public Result sweep(Request request) throws SQLException {
        try (Connection connection = dataSource.getConnection()) {
            return Connections.answered(
                    connection,
                    ANSWER_LIMIT,
                    () -> Connections.inTransaction(connection, () -> {
                        limitIdleness(connection);
                        return sweep(connection, request);
                    }));
        }
    }

    private static final String LIMIT_IDLENESS = """
            select set_config('idle_in_transaction_session_timeout', ?, true)
            """;

    private void limitIdleness(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(LIMIT_IDLENESS)) {
            statement.setString(1, idleLimit.toMillis() + "ms");
            statement.executeQuery().close();
        }
    }

    /** Sweeps in the transaction of the given connection. */
    Result sweep(Connection connection, Request request) throws SQLException {
        if (!lock(connection)) {
            return new Result(false, List.of(), List.of());
        }
        List<String> dead = deadWorkers(connection, request);
        if (dead.isEmpty() || request.dryRun) {
            return new Result(true, dead, List.of());
        }
        List<Recovered> recovered = recover(connection, dead, decide(heldJobs(connection, dead)), request);
        delete(connection, dead);
        return new Result(true, dead, recovered);
    }

    // The numbers are the Rust worker's.
    private static final String LOCK = """
            select pg_try_advisory_xact_lock(1196905043, 1398228304)
            """;

    private boolean lock(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(LOCK);
                ResultSet row = statement.executeQuery()) {
            row.next();
            return row.getBoolean(1);
        }
    }

    private static final String DEAD = """
            select {schema}.pgworker_dead_workers(? * interval '1 ms', ? * interval '1 ms', ?, ?)
            """;

    private List<String> deadWorkers(Connection connection, Request request) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(schema.in(DEAD))) {
            statement.setDouble(1, request.threshold.toNanos() / 1e6);
            statement.setDouble(2, request.resilientThreshold.toNanos() / 1e6);
            statement.setArray(3, connection.createArrayOf("text", request.resilientFlags.toArray()));
            statement.setBoolean(4, request.orphans);
            List<String> dead = new ArrayList<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    dead.add(rows.getString(1));
                }
            }
            return dead;
        }
    }

    private static final String HELD = """
            select j.id, j.payload, j.priority, j.run_at, j.attempts, j.max_attempts, j.last_error, j.created_at, j.updated_at,
              j.key, j.locked_at, j.locked_by, j.revision, j.flags, coalesce(t.identifier, 'task ' || j.task_id), q.queue_name,
              j.pgworker_recoveries, {schema}.pgworker_retired(j.key, j.attempts, j.max_attempts, j.last_error)
            from {schema}._private_jobs j
            left join {schema}._private_tasks t on t.id = j.task_id
            left join {schema}._private_job_queues q on q.id = j.job_queue_id
            where j.locked_by = any(?)
            order by j.id
            """;

    /** A job of a dead worker; superseded if it is not to run again whatever anybody decides. */
    private record Held(Job job, boolean superseded) {}

    private List<Held> heldJobs(Connection connection, List<String> workerIds) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(schema.in(HELD))) {
            statement.setArray(1, connection.createArrayOf("text", workerIds.toArray()));
            List<Held> held = new ArrayList<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    Job job = JobRows.addedJob(rows, rows.getString(15), rows.getString(16))
                            .withRecoveries(rows.getInt(17));
                    held.add(new Held(job, rows.getBoolean(18)));
                }
            }
            return held;
        }
    }

    private Map<Job, RecoveryDecision> decide(List<Held> held) {
        Map<Job, RecoveryDecision> decisions = new LinkedHashMap<>();
        for (Held one : held) {
            decisions.put(one.job, one.superseded ? RecoveryDecision.useDefault() : decide(one.job));
        }
        return decisions;
    }

    private RecoveryDecision decide(Job job) {
        for (JobRecoveryHandler handler : handlers) {
            try {
                RecoveryDecision decision = Objects.requireNonNull(
                        handler.decide(job, Objects.requireNonNull(job.lockedBy())), "a handler must decide");
                if (decision.kind() != RecoveryDecision.Kind.DEFAULT) {
                    return decision;
                }
            } catch (RuntimeException | Error e) {
                log.warn(
                        "Recovery handler {} failed on {}, which is recovered as usual",
                        handler.getClass().getName(),
                        job,
                        e);
                return RecoveryDecision.useDefault();
            }
        }
        return RecoveryDecision.useDefault();
    }

    private static final String RECOVER = """
            select id, outcome from {schema}.pgworker_recover(worker_ids => ?, job_ids => ?,
              recovery_delay => ? * interval '1 ms', max_recoveries => ?, actions => ?, run_ats => ?, attempts => ?)
            """;

    private List<Recovered> recover(
            Connection connection, List<String> dead, Map<Job, RecoveryDecision> decisions, Request request)
            throws SQLException {
        Map<Long, Job> jobs = new HashMap<>();
        List<Long> ids = new ArrayList<>();
        List<String> actions = new ArrayList<>();
        List<@Nullable String> runAts = new ArrayList<>();
        List<@Nullable Integer> attempts = new ArrayList<>();
        decisions.forEach((job, decision) -> {
            if (decision.kind() != RecoveryDecision.Kind.SKIP) {
                jobs.put(job.id(), job);
                ids.add(job.id());
                actions.add(action(decision));
                Instant runAt = decision.runAt();
                runAts.add(runAt == null ? null : runAt.toString());
                attempts.add(decision.attempts());
            }
        });
        try (PreparedStatement statement = connection.prepareStatement(schema.in(RECOVER))) {
            statement.setArray(1, connection.createArrayOf("text", dead.toArray()));
            statement.setArray(2, connection.createArrayOf("int8", ids.toArray()));
            statement.setDouble(3, request.delay.toNanos() / 1e6);
            statement.setInt(4, request.maxRecoveries);
            statement.setArray(5, connection.createArrayOf("text", actions.toArray()));
            statement.setArray(6, connection.createArrayOf("timestamptz", runAts.toArray()));
            statement.setArray(7, connection.createArrayOf("int4", attempts.toArray()));
            List<Recovered> recovered = new ArrayList<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    Job job = Objects.requireNonNull(jobs.get(rows.getLong(1)));
                    recovered.add(
                            new Recovered(job, Objects.requireNonNull(job.lockedBy()), outcome(rows.getString(2))));
                }
            }
            return recovered;
        }
    }

    private static RecoveryOutcome outcome(String name) {
        return switch (name) {
            case "returned" -> RecoveryOutcome.RETURNED;
            case "rescheduled" -> RecoveryOutcome.RESCHEDULED;
            case "failed" -> RecoveryOutcome.FAILED;
            case "exhausted" -> RecoveryOutcome.FAILED_PERMANENTLY;
            case "superseded" -> RecoveryOutcome.SUPERSEDED;
            default -> throw new IllegalStateException("The database answered with outcome " + name);
        };
    }

    private static String action(RecoveryDecision decision) {
        return switch (decision.kind()) {
            case RESCHEDULE -> "reschedule";
            case FAIL_WITH_BACKOFF -> "fail";
            case DEFAULT, SKIP -> "default";
        };
    }

    private static final String DELETE = """
            select {schema}.delete_stale_workers(?)
            """;

    private void delete(Connection connection, List<String> dead) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(schema.in(DELETE))) {
            statement.setArray(1, connection.createArrayOf("text", dead.toArray()));
            statement.execute();
        }
    }
}
