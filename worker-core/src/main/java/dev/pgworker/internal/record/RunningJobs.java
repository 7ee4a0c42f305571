package dev.pgworker.internal.record;

import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.engine.run.Progress;
import dev.pgworker.internal.engine.run.RunningAttempts;
import dev.pgworker.internal.engine.run.RunningAttempts.LongRun;
import dev.pgworker.internal.failure.ErrorText;
import dev.pgworker.internal.store.RenewedLocks;
import dev.pgworker.internal.store.RunningStore;
import dev.pgworker.internal.store.RunningStore.Row;

/** Records jobs that have been running for a while, and how far they have come, as far as anything has changed. */
final class RunningJobs extends Recording {

    private static final Duration LONG = Duration.ofSeconds(1);

    private static final long INTERVAL_NANOS = Duration.ofSeconds(1).toNanos();

    /** The same while nothing runs. */
    private static final long IDLE_INTERVAL_NANOS = Duration.ofSeconds(2).toNanos();

    private static final int MOST = 1_000;

    private final RunningAttempts attempts;
    private final RenewedLocks locks;
    private final RunningStore store;

    /** What the database holds, by the ids of the jobs; null for what it may hold. */
    private final Map<Long, @Nullable Row> recorded = new HashMap<>();

    private boolean othersForgotten;

    RunningJobs(RunningAttempts attempts, RenewedLocks locks, RunningStore store) {
        super("Running jobs", "pgworker_running");
        this.attempts = attempts;
        this.locks = locks;
        this.store = store;
    }

    @Override
    long write() throws SQLException {
        List<Row> changed = new ArrayList<>();
        Set<Long> ended = new HashSet<>(recorded.keySet());
        for (LongRun run : attempts.longest(LONG, MOST)) {
            Row row = row(run);
            ended.remove(row.jobId());
            if (!isRecorded(row)) {
                changed.add(row);
            }
        }
        if (!changed.isEmpty()) {
            put(changed);
        }
        if (!ended.isEmpty()) {
            store.delete(ended);
            recorded.keySet().removeAll(ended);
        }
        return attempts.isEmpty() ? IDLE_INTERVAL_NANOS : INTERVAL_NANOS;
    }

    private Row row(LongRun run) {
        Progress progress = run.progress();
        return new Row(
                run.claim().jobId(),
                locks.current(run.claim()),
                Duration.ofNanos(run.nanos()),
                progress == null ? null : (Long) progress.done(),
                progress == null ? null : (Long) progress.total(),
                progress == null ? null : progress.text());
    }

    private boolean isRecorded(Row row) {
        Row before = recorded.get(row.jobId());
        return before != null
                && new Row(row.jobId(), row.lockedAt(), before.running(), row.done(), row.total(), row.text())
                        .equals(before);
    }

    private void put(List<Row> changed) throws SQLException {
        if (!othersForgotten) {
            store.forgetOthers();
            othersForgotten = true;
        }
        changed.forEach(row -> recorded.put(row.jobId(), null));
        try {
            putReadable(changed);
        } catch (SQLException | RuntimeException | Error e) {
            // A server that breaks down loses the last second.
            recorded.replaceAll((id, row) -> null);
            throw e;
        }
        changed.forEach(row -> recorded.put(row.jobId(), row));
    }

    /** One text that the database's encoding cannot hold is not to keep the others out. */
    private void putReadable(List<Row> changed) throws SQLException {
        try {
            store.put(changed);
        } catch (SQLException e) {
            if (!String.valueOf(e.getSQLState()).startsWith("22")) {
                throw e;
            }
            store.put(changed.stream().map(RunningJobs::inAscii).toList());
        }
    }

    private static Row inAscii(Row row) {
        String text = row.text() == null ? null : ErrorText.ascii(row.text());
        return new Row(row.jobId(), row.lockedAt(), row.running(), row.done(), row.total(), text);
    }

    @Override
    void finish() throws SQLException {
        if (!recorded.isEmpty()) {
            store.delete(recorded.keySet());
        }
    }
}
