package dev.pgworker;

import java.time.Duration;
import java.util.List;

import org.jspecify.annotations.Nullable;

import dev.pgworker.history.HistoryLosses;
import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.job.Pause;

/**
 * The status of a running worker at one moment, determined without querying the database.
 *
 * @param workerId the id under which it locks jobs
 * @param running number of running handlers
 * @param waiting number of claimed jobs that wait for a handler
 * @param freeSlots number of further handlers that could run
 * @param listening whether notifications arrive; false if listening is disabled
 * @param sinceHeartbeat the time since the last heartbeat was written; null before the first one
 * @param sinceFetch the time since the worker last looked for jobs or determined that it did not have to, or since its
 *     start
 * @param deadThreads names of the worker's threads that have ended although the worker is running; normally empty
 * @param outage whether the database is currently unavailable
 * @param stall the reason why a due job that this worker may run has not started for half a minute although a handler
 *     is free, or a note that the schema is missing or that it cannot be read what is paused, with the remedy; null
 *     otherwise
 * @param reconciled number of jobs that the worker held without knowing it, or knew of without running them, and has
 *     released
 * @param stuckThreads names of the worker's threads that have been busy with one operation for two minutes (six for a
 *     sweep) without waiting for the database; normally empty
 * @param sinceAudit the time since the worker last compared its own state with the database, which includes checking
 *     that due jobs start, or since its start
 * @param heldSnapshot the snapshot that has been held for more than a minute while this worker finishes thousands of
 *     jobs, so that the jobs table grows; null if there is none
 * @param sinceStart the time since the worker started under this id
 * @param pollingOnly whether the worker does not listen for notifications, because {@link WorkerSettings#listen} is
 *     false
 * @param unservedTasks at most ten tasks whose jobs have been due for half a minute although no registered worker
 *     serves them; not necessarily all such tasks
 * @param pauses what is paused, as far as the worker knows, which starts no jobs of it
 * @param heldUp what keeps the worker from letting jobs of limited tasks through, from putting limits into effect or
 *     from knowing what is paused, although the database answers: a lock of another session or a missing right, each
 *     with the remedy; normally empty
 * @param starting what {@link Worker#start} has set going and is not done yet, each in a sentence without its full stop; empty once
 *     the worker has started, see {@link Worker#awaitStarted}
 * @param historyLosses what the history of jobs does not show, as of half a minute ago; null if nothing is missing
 * @param failing which of the loops that jobs need have not succeeded since a failure; normally empty
 * @since 0.1.0
 */
public record WorkerStatus(
        String workerId,
        int running,
        int waiting,
        int freeSlots,
        boolean listening,
        @Nullable Duration sinceHeartbeat,
        Duration sinceFetch,
        List<String> deadThreads,
        boolean outage,
        @Nullable String stall,
        long reconciled,
        List<String> stuckThreads,
        Duration sinceAudit,
        @Nullable HeldSnapshot heldSnapshot,
        Duration sinceStart,
        boolean pollingOnly,
        List<UnservedTask> unservedTasks,
        List<Pause> pauses,
        List<String> heldUp,
        List<String> starting,
        @Nullable HistoryLosses historyLosses,
        List<FailingLoop> failing) {

    /**
     * A task with due jobs that no registered worker serves.
     *
     * @param task the task's identifier
     * @param jobs number of such jobs that have been seen; there may be more
     * @param closest the served task with the most similar name, which may have been intended; null if there is none
     * @since 0.1.0
     */
    public record UnservedTask(
            String task, long jobs, @Nullable String closest) {}

    /**
     * A snapshot that prevents vacuum from removing the dead rows of finished jobs.
     *
     * @param holder a description of the holder: a session, a prepared transaction or a replication slot
     * @param age how long it has been held or, where the database does not report that, how long it has been observed
     * @since 0.1.0
     */
    public record HeldSnapshot(String holder, Duration age) {}

    /**
     * One of the loops that jobs need, which fails.
     *
     * @param name {@code heartbeat}, {@code claim}, {@code completion} or {@code listener}
     * @param time the time since its first failure after its last success
     * @param reason class and message of its last failure, in one line
     * @param outage whether that is because no part of the worker can use the database
     * @since 0.1.0
     */
    public record FailingLoop(String name, Duration time, String reason, boolean outage) {}

    /** Makes defensive copies of the lists. */
    public WorkerStatus {
        deadThreads = Arguments.requireList("deadThreads", deadThreads);
        stuckThreads = Arguments.requireList("stuckThreads", stuckThreads);
        unservedTasks = Arguments.requireList("unservedTasks", unservedTasks);
        pauses = Arguments.requireList("pauses", pauses);
        heldUp = Arguments.requireList("heldUp", heldUp);
        starting = Arguments.requireList("starting", starting);
        failing = Arguments.requireList("failing", failing);
    }
}
