package dev.pgworker.internal.store;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.util.Objects;
import java.util.Set;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.internal.store.Claimed.Unreadable;
import dev.pgworker.job.Job;

/** Reads the rows of one claim, all of which have been claimed at the same time. */
final class ClaimedRows {

    static final String COLUMNS =
            "id, queue_id, queue_name, task_id, payload, priority, run_at, attempts, max_attempts,"
                    + " last_error, created_at, updated_at, key, revision, flags, address, locked_at";

    private static final int PRIORITY = 6;
    private static final int RUN_AT = 7;
    private static final int LOCKED_AT = 17;

    private final String workerId;
    private final TaskIds tasks;
    private final boolean limited;
    private @Nullable Instant lockedAt;

    private ClaimedRows(String workerId, TaskIds tasks, boolean limited) {
        this.workerId = workerId;
        this.tasks = tasks;
        this.limited = limited;
    }

    static Claimed read(ResultSet rows, String workerId, TaskIds tasks) throws SQLException {
        return read(rows, new ClaimedRows(workerId, tasks, false));
    }

    /** Reads the rows of a claim of limited jobs. */
    static Claimed readLimited(ResultSet rows, String workerId, TaskIds tasks) throws SQLException {
        return read(rows, new ClaimedRows(workerId, tasks, true));
    }

    private static Claimed read(ResultSet rows, ClaimedRows reader) throws SQLException {
        Claimed claimed = new Claimed();
        while (rows.next()) {
            long id = rows.getLong(1);
            if (rows.wasNull()) {
                return claimed.ended(
                        Timestamps.instant(rows, LOCKED_AT),
                        rows.getInt(PRIORITY) == 1,
                        Timestamps.nullableInstant(rows, RUN_AT));
            }
            reader.read(rows, id, claimed);
        }
        return claimed.ended(null, false, null);
    }

    private void read(ResultSet row, long id, Claimed claimed) throws SQLException {
        Instant time = lockedAt;
        if (time == null) {
            time = Timestamps.instant(row, LOCKED_AT);
            lockedAt = time;
        }
        try {
            ClaimedJob job = new ClaimedJob(job(row, id, time), row.getInt(2), row.getString(16), limited);
            // Last: a job is in one list or in the other.
            claimed.jobs().add(job);
        } catch (SQLException | RuntimeException | Error e) {
            ClaimedJob job = new ClaimedJob(unreadable(row, id, time), row.getInt(2), row.getString(16), limited);
            claimed.unreadable().add(new Unreadable(job, e));
        }
    }

    private Job job(ResultSet row, long id, Instant time) throws SQLException {
        int taskId = row.getInt(4);
        String task = tasks.identifiers().get(taskId);
        if (task == null) {
            throw new IllegalStateException(
                    "The database handed out a job of task id " + taskId + ", which this worker did not ask for");
        }
        Instant runAt = Timestamps.instant(row, RUN_AT);
        Instant createdAt = Timestamps.instant(row, 11, runAt);
        return new Job(
                id,
                task,
                Objects.requireNonNullElse(row.getString(5), ""),
                row.getString(3),
                row.getInt(PRIORITY),
                runAt,
                row.getInt(8),
                row.getInt(9),
                row.getString(10),
                createdAt,
                Timestamps.instant(row, 12, createdAt),
                row.getString(13),
                time,
                workerId,
                row.getInt(14),
                JobRows.flags(row, 15));
    }

    /** Reads what it takes to give a job up. */
    private Job unreadable(ResultSet row, long id, Instant time) throws SQLException {
        return new Job(
                id,
                tasks.nameOf(row.getInt(4)),
                "null",
                row.getString(3),
                row.getInt(PRIORITY),
                Instant.EPOCH,
                row.getInt(8),
                row.getInt(9),
                null,
                Instant.EPOCH,
                Instant.EPOCH,
                row.getString(13),
                time,
                workerId,
                row.getInt(14),
                Set.of());
    }
}
