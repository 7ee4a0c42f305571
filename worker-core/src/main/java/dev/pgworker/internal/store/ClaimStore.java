package dev.pgworker.internal.store;

import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.ToIntFunction;

import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;

import dev.pgworker.internal.failure.DatabaseContact;
import dev.pgworker.internal.jdbc.NetworkTimeout;
import dev.pgworker.internal.jdbc.SqlArrays;
import dev.pgworker.internal.jdbc.Timestamps;

/** The claims of one worker. Each statement is committed before the method returns. Thread-safe. */
public final class ClaimStore {

    /** The claims that are under way. */
    private final Set<Statement> claiming = ConcurrentHashMap.newKeySet();

    /** The claims that were to be cancelled. */
    private final Set<Statement> cancelled = ConcurrentHashMap.newKeySet();

    private final JobSql sql;

    ClaimStore(JobSql sql) {
        this.sql = sql;
    }

    private static final String TASK_IDS = """
            select identifier, id from {schema}.pgworker_task_ids(?)
            """;

    /** Looks up the ids of the given tasks and creates those that do not exist. */
    public TaskIds tasks(Collection<String> identifiers) throws SQLException {
        return sql.call(TASK_IDS, (connection, statement) -> {
            statement.setArray(1, connection.createArrayOf("text", identifiers.toArray()));
            Map<Integer, String> tasks = new HashMap<>();
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    tasks.put(rows.getInt(2), rows.getString(1));
                }
            }
            return new TaskIds(tasks);
        });
    }

    private static final String CLAIM = "select " + ClaimedRows.COLUMNS
            + " from {schema}.pgworker_claim(worker_id => ?, task_ids => ?, wanted => ?, forbidden => ?, runs => ?,"
            + " levels => ?, floor_run_ats => ?, floor_ids => ?, strays => ?, breadth => ?, most_bytes => ?, parity => ?,"
            + " unqueued_task_ids => ?, " + QueueStart.ARGUMENTS
            + ", front_level => ?, front_run_at => ?::pg_catalog.timestamptz, front_id => ?)";

    private static final String CLAIM_CAREFULLY = "select " + ClaimedRows.COLUMNS + ", refusal, refusal_state, queue_id"
            + " from {schema}.pgworker_claim_carefully(worker_id => ?, task_ids => ?, wanted => ?, forbidden => ?,"
            + " passed_jobs => ?, passed_queues => ?, most_bytes => ?, passed_tasks => ?, " + QueueStart.ARGUMENTS
            + ")";

    /** For a job whose payload cannot be read. */
    private static final String CLAIM_WITHOUT_PAYLOAD = CLAIM_CAREFULLY.replace(" payload,", " null as payload,");

    /**
     * Claims due jobs, one of a queue, and passes over those that cannot be claimed, because of a trigger of somebody's for
     * instance. Takes longer than {@link #claim}, a second at most, and may leave jobs behind.
     */
    public CarefullyClaimed claimCarefully(TaskIds tasks, CarefulClaimRequest request) throws SQLException {
        return sql.call(request.withPayload() ? CLAIM_CAREFULLY : CLAIM_WITHOUT_PAYLOAD, (connection, statement) -> {
            statement.setString(1, sql.workerId());
            statement.setArray(2, connection.createArrayOf("int4", tasks.ids()));
            statement.setInt(3, request.wanted());
            statement.setArray(4, SqlArrays.texts(connection, request.forbidden()));
            statement.setArray(5, SqlArrays.ids(connection, request.passedOver().jobIds().stream()));
            statement.setArray(
                    6,
                    connection.createArrayOf(
                            "int4", request.passedOver().queueIds().toArray()));
            statement.setLong(7, request.mostBytes());
            statement.setArray(
                    8,
                    connection.createArrayOf(
                            "int4", tasks.ids(request.passedOver().tasks())));
            QueueStart.set(statement, 9, request.queueStart());
            List<Refused> refused = new ArrayList<>();
            Claimed claimed = claimed(statement, tasks, rows -> {
                String reason = rows.getString(17);
                if (reason != null) {
                    refused.add(new Refused(
                            rows.getLong(1),
                            tasks.nameOf(rows.getInt(3)),
                            rows.getString(2),
                            rows.getObject(19, Integer.class),
                            reason,
                            rows.getString(18)));
                }
                return reason != null;
            });
            return new CarefullyClaimed(claimed, refused);
        });
    }

    /** Claims due jobs. Ends with an exception, and claims nothing, when {@link #cancelClaims} is called meanwhile. */
    public Claimed claim(TaskIds tasks, ClaimRequest request) throws SQLException {
        return sql.call(CLAIM, (connection, statement) -> {
            Integer[] ids = tasks.ids();
            ClaimStart start = request.start();
            statement.setString(1, sql.workerId());
            statement.setArray(2, connection.createArrayOf("int4", ids));
            statement.setInt(3, request.wanted());
            statement.setArray(4, SqlArrays.texts(connection, request.forbidden()));
            statement.setArray(5, runs(connection, tasks, ids, request.runs()));
            statement.setArray(6, start == null ? null : connection.createArrayOf("int4", start.levels()));
            statement.setArray(7, start == null ? null : start.runAts(connection));
            statement.setArray(8, start == null ? null : start.ids(connection));
            statement.setArray(
                    9,
                    start == null || start.strays().isEmpty()
                            ? null
                            : SqlArrays.ids(connection, start.strays().stream()));
            statement.setInt(10, request.front().queues());
            statement.setLong(11, request.mostBytes());
            statement.setObject(12, request.chain().parity, Types.INTEGER);
            statement.setArray(
                    13, tasks.onlyQueued().isEmpty() ? null : connection.createArrayOf("int4", tasks.unqueuedIds()));
            QueueStart.set(statement, 14, request.queueStart());
            IndexPosition place = request.front().place();
            statement.setObject(18, request.front().priority(), Types.INTEGER);
            statement.setString(19, place == null ? null : Timestamps.text(place.runAt()));
            statement.setObject(20, place == null ? null : place.jobId(), Types.BIGINT);
            return claimed(statement, tasks, rows -> false);
        });
    }

    private static final String CLAIM_TOLD = "select " + ClaimedRows.COLUMNS
            + " from {schema}.pgworker_claim_told(worker_id => ?, job_id => ?, task_ids => ?)";

    /** Meanwhile nothing else is heard on the connection. */
    private static final Duration LIMIT_OF_TOLD = Duration.ofSeconds(3);

    /**
     * Claims one job on the given connection, if it is due, has no flags, is in no queue, and nobody holds it. As {@link #claim},
     * it can be cancelled.
     *
     * @param connection in auto-commit mode and in no transaction; it is broken where the server does not answer
     */
    public Claimed claimTold(Connection connection, TaskIds tasks, long jobId) throws SQLException {
        return NetworkTimeout.limiting(connection, LIMIT_OF_TOLD, () -> {
            try (PreparedStatement statement = connection.prepareStatement(sql.in(CLAIM_TOLD))) {
                statement.setString(1, sql.workerId());
                statement.setLong(2, jobId);
                statement.setArray(3, connection.createArrayOf("int4", tasks.unqueuedIds()));
                Claimed claimed = claimed(statement, tasks, rows -> false);
                DatabaseContact.made();
                return claimed;
            }
        });
    }

    /** Takes the present row, if it is no job that has been claimed; returns whether it has. */
    @FunctionalInterface
    private interface OtherRows {
        boolean take(ResultSet rows) throws SQLException;
    }

    private Claimed claimed(PreparedStatement statement, TaskIds tasks, OtherRows others) throws SQLException {
        claiming.add(statement);
        try (ResultSet rows = statement.executeQuery()) {
            Claimed claimed = new Claimed();
            ClaimedRows reader = new ClaimedRows(sql, tasks, 1);
            boolean cut = false;
            while (rows.next()) {
                if (!others.take(rows)) {
                    cut |= !reader.read(rows, claimed);
                }
            }
            return new Claimed(claimed.jobs(), claimed.unreadable(), cut, reader.lockedAt(), reader.passedOver());
        } finally {
            claiming.remove(statement);
            cancelled.remove(statement);
        }
    }

    /**
     * Ends the claims that are under way, which may wait for a lock. May be called from any thread; opens connections. The first
     * time may come before the server has the statement, and the driver cancels a statement only once: call again.
     *
     * @return whether there were any
     */
    public boolean cancelClaims() throws SQLException {
        boolean any = false;
        for (Statement statement : claiming) {
            any = true;
            if (cancelled.add(statement)) {
                statement.cancel();
            } else {
                statement.getConnection().unwrap(PGConnection.class).cancelQuery();
            }
        }
        return any;
    }

    private static @Nullable Array runs(
            Connection connection, TaskIds tasks, Integer[] taskIds, ToIntFunction<String> runOfTask)
            throws SQLException {
        Integer[] runs = new Integer[taskIds.length];
        boolean allSingle = true;
        for (int i = 0; i < runs.length; i++) {
            runs[i] = runOfTask.applyAsInt(
                    Objects.requireNonNull(tasks.identifiers().get(taskIds[i])));
            allSingle &= runs[i] <= 1;
        }
        return allSingle ? null : connection.createArrayOf("int4", runs);
    }
}
