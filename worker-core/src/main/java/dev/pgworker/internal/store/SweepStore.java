package dev.pgworker.internal.store;

import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.event.RecoveryOutcome;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.jdbc.Connections;
import dev.pgworker.internal.jdbc.SqlArrays;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.job.DeadWorker;
import dev.pgworker.job.Job;
import dev.pgworker.job.SweepOptions;
import dev.pgworker.recovery.RecoverySettings;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.JobRecoveryHandler;
import dev.pgworker.task.RecoveryDecision;

/**
 * Finds dead workers and takes their jobs and queues from them, in one transaction during which no other worker of the schema
 * sweeps.
 *
 * <p>Handlers are asked within the transaction but before it locks the row of a job, so that they may do with jobs
 * whatever they like. Meanwhile it locks the dead workers' registrations alone. Plain JDBC, for the reason that the package
 * gives.
 */
public final class SweepStore {

    private static final Logger log = WorkerLog.of(SweepStore.class);

    /** How long this process waits for one statement of a sweep, which may read all jobs. */
    private static final Duration ANSWER_LIMIT = Duration.ofMinutes(1);

    /** When the server ends such a statement, so that it does not continue after its client has given up. */
    private static final Duration STATEMENT_LIMIT = Duration.ofSeconds(55);

    /** For how long the server waits for the next statement of a sweep while others cannot sweep. */
    private static final Duration IDLE_LIMIT = Duration.ofSeconds(5);

    /** The same where handlers are asked in between. */
    private static final Duration IDLE_LIMIT_WITH_HANDLERS = Duration.ofMinutes(5);

    private final DataSource dataSource;
    private final WorkerSchema schema;
    private final RecoveryHandlers handlers;
    private final Duration idleLimit;
    private final Duration statementLimit;

    /** Jobs that could not be taken from a dead worker, each told once. */
    private final Set<Long> refused = ConcurrentHashMap.newKeySet();

    /** Creates a store whose sweeps ask the given handlers. */
    public SweepStore(DataSource dataSource, WorkerSchema schema, List<JobRecoveryHandler> handlers) {
        this(dataSource, schema, handlers, handlers.isEmpty() ? IDLE_LIMIT : IDLE_LIMIT_WITH_HANDLERS, STATEMENT_LIMIT);
    }

    SweepStore(
            DataSource dataSource,
            WorkerSchema schema,
            List<JobRecoveryHandler> handlers,
            Duration idleLimit,
            Duration statementLimit) {
        this.dataSource = dataSource;
        this.schema = schema;
        this.handlers = new RecoveryHandlers(handlers);
        this.idleLimit = idleLimit;
        this.statementLimit = statementLimit;
    }

    /**
     * What to look for and what to do.
     *
     * @param threshold how old the last heartbeat of a dead worker is that has published no threshold of its own
     * @param peerThreshold the least that counts as such; null if the threshold counts for every worker, whatever it has
     *     published
     * @param settings what else there is to know
     * @param delay when recovered jobs run again
     * @param whole whether to look for locks of unregistered workers, too, and at workers that were found dead before but kept jobs;
     *     both read all jobs
     * @param dryRun whether to find the dead workers only
     */
    public record Request(
            Duration threshold,
            @Nullable Duration peerThreshold,
            RecoverySettings settings,
            Duration delay,
            boolean whole,
            boolean dryRun) {

        /** Returns what a sweep with these settings does that leaves nothing out. */
        public static Request of(RecoverySettings settings) {
            return new Request(
                    settings.sweepThreshold(),
                    settings.peerThreshold(),
                    settings,
                    settings.recoveryDelay(),
                    true,
                    false);
        }

        /**
         * Returns this request for workers that have just died, without what reads all jobs though no worker has died.
         */
        public Request ofTheNewlyDead() {
            return new Request(threshold, peerThreshold, settings, delay, false, dryRun);
        }

        /** Returns this request as changed by hand. */
        public Request with(SweepOptions options) {
            Duration given = options.threshold();
            return new Request(
                    given == null ? threshold : given,
                    given == null ? peerThreshold : null,
                    settings,
                    options.recoveryDelay() == null ? delay : options.recoveryDelay(),
                    whole,
                    options.dryRun());
        }
    }

    /**
     * What a sweep has done.
     *
     * @param locked false if another sweep was at work, so that nothing was done
     * @param workers the dead workers
     * @param jobs the jobs taken from them
     * @param worthTelling false if the workers have been found dead before and no job was taken this time
     */
    public record Result(boolean locked, List<DeadWorker> workers, List<Recovered> jobs, boolean worthTelling) {

        /** Returns the ids of the dead workers. */
        public List<String> workerIds() {
            return workers.stream().map(DeadWorker::id).toList();
        }
    }

    /** A job as it was locked by the dead worker, and what has become of it. */
    public record Recovered(Job job, DeadWorker worker, RecoveryOutcome outcome) {}

    /** Workers found dead, with all that they hold by one look. */
    private static final class Found {
        final Map<String, DeadWorker> workers = new LinkedHashMap<>();
        final List<Long> jobIds = new ArrayList<>();
        final List<Integer> idleQueues = new ArrayList<>();
        boolean anyNew;

        Object[] ids() {
            return workers.keySet().toArray();
        }
    }

    /**
     * Sweeps on a connection of its own; has taken effect when it returns. A process that is paused, or cut off, in the
     * middle of it does not keep others from sweeping for good: the server ends its transaction.
     *
     * @param workerId who sweeps
     */
    public Result sweep(Request request, String workerId) throws SQLException {
        return Connections.transact(dataSource, ANSWER_LIMIT, connection -> {
            limitTimes(connection);
            return sweep(connection, request, workerId);
        });
    }

    private static final String LIMIT_TIMES = """
            select pg_catalog.set_config('idle_in_transaction_session_timeout', ?, true),
              pg_catalog.set_config('statement_timeout', ?, true)
            """;

    private void limitTimes(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(LIMIT_TIMES)) {
            statement.setString(1, idleLimit.toMillis() + "ms");
            statement.setString(2, statementLimit.toMillis() + "ms");
            statement.executeQuery().close();
        }
    }

    /** Sweeps in the transaction of the given connection. */
    public Result sweep(Connection connection, Request request, String workerId) throws SQLException {
        if (!lock(connection)) {
            return new Result(false, List.of(), List.of(), false);
        }
        Found found = deadWorkers(connection, request, workerId);
        List<DeadWorker> dead = List.copyOf(found.workers.values());
        if (dead.isEmpty() || request.dryRun) {
            return new Result(true, dead, List.of(), found.anyNew);
        }
        List<Recovered> recovered = recover(connection, found, decide(found, heldJobs(connection, found)), request);
        bury(connection, found);
        return new Result(true, dead, recovered, found.anyNew || !recovered.isEmpty());
    }

    private static final String LOCK = """
            select {schema}.pgworker_sweeps_alone()
            """;

    private boolean lock(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(schema.in(LOCK));
                ResultSet row = statement.executeQuery()) {
            row.next();
            return row.getBoolean(1);
        }
    }

    private static final String DEAD = """
            select worker_id, registered, known, job_ids, idle_queues from {schema}.pgworker_dead_workers(
              threshold => ?::double precision * interval '1 ms', peer_threshold => ?::double precision * interval '1 ms', multiplier => ?,
              resilient_flags => ?, with_orphans => ?, again => ?)
            """;

    private Found deadWorkers(Connection connection, Request request, String workerId) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(schema.in(DEAD))) {
            statement.setDouble(1, Timestamps.millis(request.threshold));
            Duration peerThreshold = request.peerThreshold;
            statement.setObject(2, peerThreshold == null ? null : Timestamps.millis(peerThreshold), Types.DOUBLE);
            statement.setInt(3, request.settings.resilientSweepThresholdMultiplier());
            statement.setArray(
                    4,
                    connection.createArrayOf(
                            "text", request.settings.resilientJobFlags().toArray()));
            statement.setBoolean(5, request.whole && request.settings.orphans());
            statement.setBoolean(6, request.whole);
            Found found = new Found();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    String id = rows.getString(1);
                    DeadWorker.Reason reason = !rows.getBoolean(2)
                            ? DeadWorker.Reason.ORPHAN_LOCK
                            : peerThreshold == null ? DeadWorker.Reason.BY_HAND : DeadWorker.Reason.NO_HEARTBEAT;
                    found.workers.put(id, new DeadWorker(id, reason, workerId));
                    found.anyNew |= !rows.getBoolean(3);
                    addAll(found.jobIds, rows.getArray(4));
                    addAll(found.idleQueues, rows.getArray(5));
                }
            }
            return found;
        }
    }

    @SuppressWarnings("unchecked")
    private static <T> void addAll(List<T> list, @Nullable Array array) throws SQLException {
        if (array != null) {
            Collections.addAll(list, (T[]) array.getArray());
        }
    }

    private static final String HELD = """
            select (h.job).id, (h.job).payload, (h.job).priority, (h.job).run_at, (h.job).attempts, (h.job).max_attempts,
              (h.job).last_error, (h.job).created_at, (h.job).updated_at, (h.job).key, (h.job).locked_at, (h.job).locked_by,
              (h.job).revision, (h.job).flags, h.task, h.queue, h.recoveries, h.retired
            from {schema}.pgworker_held_jobs(?, ?) h
            """;

    /** A job of a dead worker; superseded if it is not to run again whatever a handler decides. */
    private record Held(Job job, boolean superseded) {}

    private List<Held> heldJobs(Connection connection, Found found) throws SQLException {
        if (found.jobIds.isEmpty()) {
            return List.of();
        }
        try (PreparedStatement statement = connection.prepareStatement(schema.in(HELD))) {
            statement.setArray(1, connection.createArrayOf("text", found.ids()));
            statement.setArray(2, connection.createArrayOf("int8", found.jobIds.toArray()));
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

    private Map<Job, RecoveryDecision> decide(Found found, List<Held> held) throws SQLException {
        Map<Job, RecoveryDecision> decisions = new LinkedHashMap<>();
        RecoveryHandlers.Round round = handlers.begin();
        for (Held one : held) {
            decisions.put(
                    one.job,
                    one.superseded ? RecoveryDecision.useDefault() : round.decide(one.job, worker(found, one.job)));
        }
        round.tellLeft();
        return decisions;
    }

    private static DeadWorker worker(Found found, Job job) {
        return Objects.requireNonNull(found.workers.get(Objects.requireNonNull(job.lockedBy())));
    }

    /** Begins the outcome of a job that the database does not let be changed. */
    private static final String REFUSED = "refused";

    private static final String RECOVER = """
            select id, outcome from {schema}.pgworker_recover(worker_ids => ?, job_ids => ?, idle_queues => ?,
              recovery_delay => ?::double precision * interval '1 ms', max_recoveries => ?, actions => ?,
              run_ats => ?::pg_catalog.timestamptz[], attempts => ?)
            """;

    private List<Recovered> recover(
            Connection connection, Found found, Map<Job, RecoveryDecision> decisions, Request request)
            throws SQLException {
        Map<Long, Job> jobs = new LinkedHashMap<>();
        List<RecoveryDecision> decided = new ArrayList<>();
        decisions.forEach((job, decision) -> {
            jobs.put(job.id(), job);
            decided.add(decision);
        });
        try (PreparedStatement statement = connection.prepareStatement(schema.in(RECOVER))) {
            statement.setArray(1, connection.createArrayOf("text", found.ids()));
            statement.setArray(2, SqlArrays.ids(connection, jobs.keySet().stream()));
            statement.setArray(3, connection.createArrayOf("int4", found.idleQueues.toArray()));
            statement.setDouble(4, Timestamps.millis(request.delay));
            statement.setInt(5, request.settings.maxRecoveries());
            statement.setArray(6, SqlArrays.array(connection, "text", decided, SweepStore::action));
            statement.setArray(7, SqlArrays.times(connection, decided, RecoveryDecision::runAt));
            statement.setArray(8, SqlArrays.array(connection, "int4", decided, RecoveryDecision::attempts));
            List<Recovered> recovered = new ArrayList<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    Job job = Objects.requireNonNull(jobs.get(rows.getLong(1)));
                    String outcome = rows.getString(2);
                    if (outcome.startsWith(REFUSED)) {
                        tellRefused(job, outcome);
                    } else {
                        recovered.add(new Recovered(job, worker(found, job), outcome(outcome)));
                    }
                }
            }
            return recovered;
        }
    }

    private void tellRefused(Job job, String outcome) {
        if (refused.add(job.id())) {
            log.warn(
                    "{} of the dead worker {} stays locked, because the database does not allow it to be changed ({}); each sweep"
                            + " tries again",
                    job,
                    job.lockedBy(),
                    outcome);
        }
    }

    private static RecoveryOutcome outcome(String name) {
        return switch (name) {
            case "returned" -> RecoveryOutcome.RETURNED;
            case "rescheduled" -> RecoveryOutcome.RESCHEDULED;
            case "failed" -> RecoveryOutcome.FAILED;
            case "exhausted" -> RecoveryOutcome.FAILED_PERMANENTLY;
            case "superseded" -> RecoveryOutcome.SUPERSEDED;
            case "cancelled" -> RecoveryOutcome.CANCELLED;
            default -> throw new IllegalStateException("The database answered with outcome " + name);
        };
    }

    private static String action(RecoveryDecision decision) {
        return switch (decision.kind()) {
            case RESCHEDULE -> "reschedule";
            case FAIL_WITH_BACKOFF -> "fail";
            case SKIP -> "skip";
            case DEFAULT -> "default";
        };
    }

    private static final String BURY = """
            select {schema}.pgworker_bury(?, ?)
            """;

    private void bury(Connection connection, Found found) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(schema.in(BURY))) {
            statement.setArray(1, connection.createArrayOf("text", found.ids()));
            statement.setArray(2, connection.createArrayOf("int8", found.jobIds.toArray()));
            statement.execute();
        }
    }
}
