package dev.pgworker.internal.engine.claim;

import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.engine.queue.LocalQueue;
import dev.pgworker.internal.engine.run.JobExecutor;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.store.ClaimRequest;
import dev.pgworker.internal.store.ClaimStore;
import dev.pgworker.internal.store.Claimed;
import dev.pgworker.internal.store.TaskIds;

/**
 * Claims a job whose id was announced, while nothing else is due: by that id, on the thread and the connection that have heard of it.
 * That takes less than half of the server's work for a claim that looks for jobs, and wakes no other thread. Where there is
 * anything else to think of, it is left to {@link ClaimLoop}.
 *
 * <p>Such a claim shows nothing about the floors, so another one follows after some.
 *
 * <p>Used by {@code worker-listen} alone.
 */
public final class AnnouncedClaims {

    private static final Logger log = WorkerLog.of(AnnouncedClaims.class);

    /** After so many, claims that look for jobs are to learn where to begin. */
    private static final int MOST_IN_A_ROW = 500;

    /** For so long no job is claimed here after a claim has broken the connection, which is needed to hear of other things. */
    private static final long REST_NANOS = Duration.ofMinutes(1).toNanos();

    private final WorkerContext context;
    private final ClaimStore store;
    private final ClaimPermission permission;
    private final ClaimTracker tracker;
    private final LocalQueue localQueue;
    private final ClaimLoop claimLoop;
    private final JobExecutor executor;

    private int inARow;

    /** When the connection was last broken, by {@link System#nanoTime}; null if it never was. */
    private @Nullable Long brokenAt;

    /**
     * Creates what claims for one worker.
     *
     * @param claimLoop makes the other claims
     * @param executor takes the jobs
     */
    public AnnouncedClaims(
            WorkerContext context,
            ClaimStore store,
            ClaimPermission permission,
            ClaimTracker tracker,
            LocalQueue localQueue,
            ClaimLoop claimLoop,
            JobExecutor executor) {
        this.context = context;
        this.store = store;
        this.permission = permission;
        this.tracker = tracker;
        this.localQueue = localQueue;
        this.claimLoop = claimLoop;
        this.executor = executor;
    }

    /**
     * Claims a job, or does not.
     *
     * @param connection in auto-commit mode and in no transaction
     * @return whether it need not be looked for any more, because it was claimed here or is not for ordinary claims of
     *     this worker
     * @throws SQLException if the connection is broken
     */
    public boolean claim(Connection connection, long jobId) throws SQLException {
        TaskIds tasks = permission.tasks().ordinary();
        if (!claimLoop.isQuiet()
                || isResting()
                || tasks.identifiers().isEmpty()
                || permission.flags().isAsked()
                || !permission.ownership().mayClaim()) {
            return false;
        }
        if (++inARow > MOST_IN_A_ROW) {
            inARow = 0;
            return false;
        }
        int room = localQueue.reserve();
        try {
            return room > 0 && claim(connection, tasks, jobId);
        } finally {
            localQueue.unreserve(room);
        }
    }

    private boolean isResting() {
        Long broken = brokenAt;
        return broken != null && System.nanoTime() - broken < REST_NANOS;
    }

    private boolean claim(Connection connection, TaskIds tasks, long jobId) throws SQLException {
        context.publish(() -> new WorkerEvent.FetchStarted(context.workerId(), 1));
        Claimed claimed;
        try {
            claimed = tracker.during(() -> {
                Claimed answer =
                        store.claimIds(connection, ClaimRequest.of(tasks.unqueued(), List.of()), List.of(jobId));
                executor.submit(answer);
                return answer;
            });
        } catch (SQLException e) {
            context.publish(() -> new WorkerEvent.FetchFailed(context.workerId(), e));
            if (connection.isClosed()) {
                brokenAt = System.nanoTime();
                throw e;
            }
            log.debug("Job {} was announced, but could not be claimed by its id", jobId, e);
            return false;
        }
        context.publish(() -> claimed.size() == 0
                ? new WorkerEvent.FetchEmpty(context.workerId())
                : new WorkerEvent.JobsFetched(context.workerId(), claimed.size()));
        // A direct batch may wait for it.
        return claimed.size() > 0 || tasks.onlyQueued().isEmpty();
    }
}
