package dev.pgworker.internal.store;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.util.Objects;
import java.util.Set;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.job.Job;

/** Reads the rows of one answer, all of which have been claimed at the same time. */
final class ClaimedRows {

    /** Times that are those before are left out: a driver that makes dates of all would have a third of a claim's work with them. */
    static final String COLUMNS = """
            id, queue_name, task_id, payload, priority, run_at, attempts, max_attempts, last_error,
            case when created_at operator(pg_catalog.<>) run_at then created_at end,
            case when updated_at operator(pg_catalog.<>) created_at then updated_at end,
            key, revision, flags, address, locked_at""";

    private static final String NO_PAYLOAD = "null";

    private final JobSql sql;
    private final TaskIds tasks;
    private final int first;
    private @Nullable Instant lockedAt;
    private @Nullable String passedOver;

    ClaimedRows(JobSql sql, TaskIds tasks, int first) {
        this.sql = sql;
        this.tasks = tasks;
        this.first = first;
    }

    /** Returns when the jobs were claimed; null if no row has said so. */
    @Nullable Instant lockedAt() {
        return lockedAt;
    }

    /** Returns a queue that was passed over, as {@link Claimed}. */
    @Nullable String passedOver() {
        return passedOver;
    }

    /** Returns false for the row that stands for jobs that have not been claimed. */
    boolean read(ResultSet row, Claimed claimed) throws SQLException {
        long id = row.getLong(first);
        if (row.wasNull()) {
            Instant at = Timestamps.nullableInstant(row, first + 15);
            lockedAt = at == null ? lockedAt : at;
            passedOver = row.getString(first + 1);
            return at != null;
        }
        if (lockedAt == null) {
            lockedAt = Timestamps.instant(row, first + 15);
        }
        try {
            Job job = job(row, id, lockedAt);
            sql.addresses().put(id, row.getString(first + 14));
            // Last: a job is in one list or in the other.
            claimed.jobs().add(job);
        } catch (SQLException | RuntimeException | Error e) {
            claimed.unreadable().add(new Unreadable(unreadable(row, id, lockedAt), e));
        }
        return true;
    }

    private Job job(ResultSet row, long id, Instant lockedAt) throws SQLException {
        int taskId = row.getInt(first + 2);
        String task = tasks.identifiers().get(taskId);
        if (task == null) {
            throw new IllegalStateException(
                    "The database handed out a job of task id " + taskId + ", which this worker did not ask for");
        }
        Instant runAt = Timestamps.instant(row, first + 5);
        Instant createdAt = Timestamps.instant(row, first + 9, runAt);
        return new Job(
                id,
                task,
                Objects.requireNonNullElse(row.getString(first + 3), NO_PAYLOAD),
                row.getString(first + 1),
                row.getInt(first + 4),
                runAt,
                row.getInt(first + 6),
                row.getInt(first + 7),
                row.getString(first + 8),
                createdAt,
                Timestamps.instant(row, first + 10, createdAt),
                row.getString(first + 11),
                lockedAt,
                sql.workerId(),
                row.getInt(first + 12),
                JobRows.flags(row, first + 13));
    }

    /** Reads what it takes to give a job up. */
    private Job unreadable(ResultSet row, long id, Instant lockedAt) throws SQLException {
        int taskId = row.getInt(first + 2);
        return new Job(
                id,
                tasks.nameOf(taskId),
                NO_PAYLOAD,
                row.getString(first + 1),
                row.getInt(first + 4),
                Instant.EPOCH,
                row.getInt(first + 6),
                row.getInt(first + 7),
                null,
                Instant.EPOCH,
                Instant.EPOCH,
                row.getString(first + 11),
                lockedAt,
                sql.workerId(),
                row.getInt(first + 12),
                Set.of());
    }
}
