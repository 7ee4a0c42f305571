package dev.pgworker.internal.store;

import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.jdbc.Connections;
import dev.pgworker.internal.jdbc.SqlArrays;
import dev.pgworker.internal.jdbc.StaleConnections;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.schema.WorkerSchema;

/**
 * The schedules of the database, as those who execute them see them. A schedule's next due time advances in the transaction that
 * locks its row and adds its jobs. Each method takes a connection of its own and commits before it returns. Plain JDBC, for
 * the reason that the package gives.
 */
public final class ScheduleStore {

    /** How long the server may take for one statement. */
    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(30);

    /** How long rows stay locked while it is decided what becomes of them, one more decision aside: interceptors may be slow. */
    private static final long DECISION_NANOS = TimeUnit.SECONDS.toNanos(1);

    /**
     * After which the server ends the transaction, so that an interceptor that hangs does not keep these rows locked.
     */
    private static final Duration IDLE_LIMIT = Duration.ofSeconds(10);

    /** A schedule whose execution takes longer has its turn apart from those that are in time, until it takes no longer. */
    public static final Duration SLOW = Duration.ofMillis(100);

    private final DataSource dataSource;
    private final WorkerSchema schema;

    /** Names of schedules that only those execute who declare them. */
    private final List<String> declared;

    /**
     * Creates a store for one worker.
     *
     * @param declared the names of the schedules that it declares
     */
    public ScheduleStore(DataSource dataSource, WorkerSchema schema, Collection<String> declared) {
        this.dataSource = dataSource;
        this.schema = schema;
        this.declared = List.copyOf(declared);
    }

    /**
     * What is to be done, for schedules that this worker may execute.
     *
     * @param now the database's time
     * @param due when the first schedule is due, maybe long ago; null for none
     * @param later when to continue with the first schedule that has failed or runs missed executions; null for none
     * @param awaiting whether there is a schedule that waits for the end of a job
     */
    public record Look(
            Instant now, @Nullable Instant due, @Nullable Instant later, boolean awaiting) {}

    // The two conditions stand for two sets of index entries: those that others declare must not be in the way.
    private static final String LOOK = """
            select pg_catalog.clock_timestamp(),
              least(
                (select pg_catalog.min(s.next_at) from {schema}.pgworker_schedules s
                  where s.next_at is not null and s.paused_at is null and s.retry_at is null and not s.declared),
                (select pg_catalog.min(s.next_at) from {schema}.pgworker_schedules s
                  where s.name = any(?) and s.declared and s.next_at is not null and s.paused_at is null and s.retry_at is null)),
              least(
                (select pg_catalog.min(s.retry_at) from {schema}.pgworker_schedules s
                  where s.retry_at is not null and s.paused_at is null and not s.declared),
                (select pg_catalog.min(s.retry_at) from {schema}.pgworker_schedules s
                  where s.name = any(?) and s.declared and s.retry_at is not null and s.paused_at is null)),
              exists (select from {schema}.pgworker_schedules s where s.awaits_end and s.paused_at is null)
            """;

    /** Looks what is to be done when. */
    public Look look() throws SQLException {
        return Connections.call(dataSource, schema.in(LOOK), ANSWER_LIMIT, (connection, statement) -> {
            Array names = ScheduleEnds.names(connection, declared);
            statement.setArray(1, names);
            statement.setArray(2, names);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return new Look(
                        Timestamps.instant(row, 1),
                        Timestamps.nullableInstant(row, 2),
                        Timestamps.nullableInstant(row, 3),
                        row.getBoolean(4));
            }
        });
    }

    /** Decides, in the transaction that has locked the rows, what becomes of each. */
    @FunctionalInterface
    public interface Plan {
        ScheduleStep of(DueSchedule due);
    }

    /**
     * How long to wait.
     *
     * @param lock for a job that has the key of another
     * @param adding for each statement that adds jobs: triggers may be slow
     */
    public record Limits(Duration lock, Duration adding) {}

    /**
     * What has been done for a schedule.
     *
     * @param jobIds the ids of its jobs, in the order of the step
     */
    public record Done(ScheduleStep step, List<Long> jobIds) {}

    private static final String SELECT = "select " + ScheduleRow.COLUMNS + """
            from {schema}.pgworker_schedules s
            """;

    private static final String LOCK_DUE = SELECT + """
            where s.next_at <= ? and s.next_at is not null and s.paused_at is null and s.retry_at is null and not s.declared
            order by s.next_at limit ? for update of s skip locked
            """;

    private static final String LOCK_DECLARED = SELECT + """
            where s.name = any(?) and s.declared and s.next_at <= ? and s.paused_at is null and s.retry_at is null
            order by s.next_at limit ? for update of s skip locked
            """;

    /**
     * Executes schedules that are due, unless others do or are changing them: as many as there is time for. If a job
     * cannot be added, none is.
     *
     * @param most how many, of those that are declared and of others
     */
    public List<Done> executeDue(Instant now, int most, Limits limits, Plan plan) throws SQLException {
        return limitingLocks(limits.lock(), connection -> {
            List<ScheduleRow> rows = new ArrayList<>();
            try (PreparedStatement lock = connection.prepareStatement(schema.in(LOCK_DUE))) {
                lock.setObject(1, Timestamps.offset(now), Types.TIMESTAMP_WITH_TIMEZONE);
                lock.setInt(2, most);
                read(lock, rows);
            }
            if (!declared.isEmpty()) {
                try (PreparedStatement lock = connection.prepareStatement(schema.in(LOCK_DECLARED))) {
                    lock.setArray(1, ScheduleEnds.names(connection, declared));
                    lock.setObject(2, Timestamps.offset(now), Types.TIMESTAMP_WITH_TIMEZONE);
                    lock.setInt(3, most);
                    read(lock, rows);
                }
            }
            return execute(connection, rows, plan, limits.adding());
        });
    }

    private static final String LOCK_ONE = SELECT + """
            where s.name = ?::pg_catalog.text and s.next_at <= ? and s.paused_at is null and (s.retry_at is null or s.retry_at <= ?)
            for update of s skip locked
            """;

    /** As {@link #executeDue}, but for one schedule, even if it has failed before. Returns nothing if there is nothing to do. */
    public Optional<Done> executeOne(String name, Instant now, Limits limits, Plan plan) throws SQLException {
        return limitingLocks(limits.lock(), connection -> {
            List<ScheduleRow> rows = new ArrayList<>();
            try (PreparedStatement lock = connection.prepareStatement(schema.in(LOCK_ONE))) {
                lock.setString(1, name);
                lock.setObject(2, Timestamps.offset(now), Types.TIMESTAMP_WITH_TIMEZONE);
                lock.setObject(3, Timestamps.offset(now), Types.TIMESTAMP_WITH_TIMEZONE);
                read(lock, rows);
            }
            return execute(connection, rows, plan, limits.adding()).stream().findFirst();
        });
    }

    private static final String LATER = """
            (select s.name, s.retry_at from {schema}.pgworker_schedules s
              where s.retry_at <= ? and s.retry_at is not null and s.paused_at is null and not s.declared
              order by s.retry_at limit ?)
            union all
            (select s.name, s.retry_at from {schema}.pgworker_schedules s
              where s.name = any(?) and s.declared and s.retry_at <= ? and s.paused_at is null
              order by s.retry_at limit ?)
            order by retry_at
            """;

    /** Returns the names of schedules that have failed or run missed executions, and whose turn it is. */
    public List<String> later(Instant now, int most) throws SQLException {
        return Connections.call(dataSource, schema.in(LATER), ANSWER_LIMIT, (connection, statement) -> {
            statement.setObject(1, Timestamps.offset(now), Types.TIMESTAMP_WITH_TIMEZONE);
            statement.setInt(2, most);
            statement.setArray(3, ScheduleEnds.names(connection, declared));
            statement.setObject(4, Timestamps.offset(now), Types.TIMESTAMP_WITH_TIMEZONE);
            statement.setInt(5, most);
            return ScheduleEnds.texts(statement);
        });
    }

    private static final String PUT_OFF = """
            update {schema}.pgworker_schedules s set retry_at = ?, problem = ?
            from (
              select l.name from {schema}.pgworker_schedules l where l.name = ?::pg_catalog.text and l.next_at <= ? and l.paused_at is null
              for update skip locked) l
            where s.name = l.name
            """;

    /**
     * Puts off a schedule that could not be executed, with the reason if there is one, unless another session is
     * changing it.
     */
    public void putOff(String name, Instant now, Instant retryAt, @Nullable String problem) throws SQLException {
        Connections.call(dataSource, schema.in(PUT_OFF), ANSWER_LIMIT, (connection, statement) -> {
            statement.setObject(1, Timestamps.offset(retryAt), Types.TIMESTAMP_WITH_TIMEZONE);
            statement.setString(2, problem);
            statement.setString(3, name);
            statement.setObject(4, Timestamps.offset(now), Types.TIMESTAMP_WITH_TIMEZONE);
            return statement.executeUpdate();
        });
    }

    private static final String LIMIT_LOCKS = """
            select pg_catalog.set_config('lock_timeout', ?, true),
              pg_catalog.set_config('idle_in_transaction_session_timeout', ?, true)
            """;

    /** Works in a transaction of its own, in which no statement waits longer than that for a lock. */
    private <T> T limitingLocks(Duration lockLimit, StaleConnections.Work<T> work) throws SQLException {
        return Connections.transact(dataSource, ANSWER_LIMIT, connection -> {
            try (PreparedStatement limit = connection.prepareStatement(LIMIT_LOCKS)) {
                limit.setString(1, lockLimit.toMillis() + "ms");
                limit.setString(2, IDLE_LIMIT.toMillis() + "ms");
                limit.execute();
            }
            return work.on(connection);
        });
    }

    private static void read(PreparedStatement statement, List<ScheduleRow> into) throws SQLException {
        try (ResultSet rows = statement.executeQuery()) {
            while (rows.next()) {
                into.add(ScheduleRow.read(rows));
            }
        }
    }

    private static final String LIMIT_ADDING = """
            select pg_catalog.set_config('statement_timeout', ?, true)
            """;

    private List<Done> execute(Connection connection, List<ScheduleRow> rows, Plan plan, Duration adding)
            throws SQLException {
        if (rows.isEmpty()) {
            return List.of();
        }
        Set<Long> living = living(connection, rows);
        try (PreparedStatement limit = connection.prepareStatement(LIMIT_ADDING)) {
            limit.setString(1, adding.toMillis() + "ms");
            limit.execute();
        }
        long begin = System.nanoTime();
        List<ScheduleStep> steps = decide(rows, living, plan);
        IdentityHashMap<ScheduleStep.NewJob, Long> ids = new ScheduledJobs(schema, connection).add(steps);
        List<Done> done = steps.stream()
                .map(step -> new Done(
                        step,
                        step.jobs().stream()
                                .map(job -> Objects.requireNonNull(ids.get(job)))
                                .toList()))
                .toList();
        advance(connection, rows.size() == 1 && isSlow(begin) ? apart(done) : done);
        return done;
    }

    private static boolean isSlow(long beginNanos) {
        return System.nanoTime() - beginNanos > SLOW.toNanos();
    }

    private static List<Done> apart(List<Done> done) {
        return done.stream()
                .map(one -> new Done(one.step().apart(), one.jobIds()))
                .toList();
    }

    /** What there is no time for remains due. */
    private static List<ScheduleStep> decide(List<ScheduleRow> rows, Set<Long> living, Plan plan) {
        long begin = System.nanoTime();
        List<ScheduleStep> steps = new ArrayList<>();
        for (ScheduleRow row : rows) {
            if (!steps.isEmpty() && System.nanoTime() - begin > DECISION_NANOS) {
                break;
            }
            long beginOfOne = System.nanoTime();
            ScheduleStep step = plan.of(due(row, living));
            steps.add(isSlow(beginOfOne) ? step.apart() : step);
        }
        return steps;
    }

    private static DueSchedule due(ScheduleRow row, Set<Long> living) {
        Long lastJob = row.status().lastJobId();
        return new DueSchedule(row, Objects.requireNonNull(row.nextAt()), lastJob != null && living.contains(lastJob));
    }

    private static final String LIVING = """
            select j.id from {schema}._private_jobs j
            where j.id = any(?) and (j.attempts < j.max_attempts or {schema}.pgworker_locked(j.locked_at, j.locked_by))
            """;

    /**
     * Returns which jobs wait or run, of those where it matters. Asked after the rows are locked: a statement that waits for a row
     * sees its newest version, but not the job that was added with it.
     */
    private Set<Long> living(Connection connection, List<ScheduleRow> rows) throws SQLException {
        List<Long> asked = new ArrayList<>();
        for (ScheduleRow row : rows) {
            Long lastJob = row.status().lastJobId();
            if (lastJob != null && row.dependsOnLastJob()) {
                asked.add(lastJob);
            }
        }
        Set<Long> living = new HashSet<>();
        if (asked.isEmpty()) {
            return living;
        }
        try (PreparedStatement statement = connection.prepareStatement(schema.in(LIVING))) {
            statement.setArray(1, SqlArrays.ids(connection, asked.stream()));
            try (ResultSet jobs = statement.executeQuery()) {
                while (jobs.next()) {
                    living.add(jobs.getLong(1));
                }
            }
        }
        return living;
    }

    private static final String ADVANCE = """
            update {schema}.pgworker_schedules s set
              next_at = u.next_at, last_at = coalesce(u.last_at, s.last_at), last_job_id = coalesce(u.job_id, s.last_job_id),
              awaits_end = u.awaits_end, retry_at = u.retry_at, problem = u.problem
            from unnest(
                ?::pg_catalog.text[], ?::pg_catalog.timestamptz[], ?::pg_catalog.timestamptz[], ?::pg_catalog.int8[],
                ?::pg_catalog.bool[], ?::pg_catalog.timestamptz[], ?::pg_catalog.text[])
              u(name, next_at, last_at, job_id, awaits_end, retry_at, problem)
            where s.name = u.name
            """;

    private void advance(Connection connection, List<Done> done) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(schema.in(ADVANCE))) {
            statement.setArray(
                    1,
                    SqlArrays.array(
                            connection, "text", done, one -> one.step().due().name()));
            statement.setArray(
                    2, SqlArrays.times(connection, done, one -> one.step().nextAt()));
            statement.setArray(3, SqlArrays.times(connection, done, ScheduleStore::lastAt));
            statement.setArray(4, SqlArrays.array(connection, "int8", done, ScheduleStore::lastJob));
            statement.setArray(
                    5,
                    SqlArrays.array(connection, "bool", done, one -> one.step().awaitsEnd()));
            statement.setArray(
                    6, SqlArrays.times(connection, done, one -> one.step().laterAt()));
            statement.setArray(
                    7,
                    SqlArrays.array(connection, "text", done, one -> one.step().problem()));
            statement.executeUpdate();
        }
    }

    private static @Nullable Instant lastAt(Done done) {
        List<ScheduleStep.NewJob> jobs = done.step().jobs();
        return jobs.isEmpty() ? null : jobs.get(jobs.size() - 1).dueAt();
    }

    private static @Nullable Long lastJob(Done done) {
        return done.jobIds().isEmpty() ? null : done.jobIds().get(done.jobIds().size() - 1);
    }

    /** Returns the same schedules, as those see them who await the ends of their jobs. */
    public ScheduleEnds ends() {
        return new ScheduleEnds(dataSource, schema);
    }
}
