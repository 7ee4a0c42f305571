package dev.pgworker;

import java.time.Duration;
import java.util.List;

import org.jspecify.annotations.Nullable;

/**
 * How a running worker does at one moment, without a look at the database.
 *
 * @param workerId the id under which it locks jobs
 * @param running how many handlers run
 * @param waiting how many claimed jobs wait for a handler
 * @param freeSlots how many more handlers could run
 * @param listening whether notifications arrive; false if they are not wanted
 * @param sinceHeartbeat the time since the last sign of life was written; null before the first one
 * @param sinceFetch the time since the worker last looked for jobs or found that it need not, or since its start
 * @param deadThreads names of the worker's threads that have ended although the worker runs; empty in good health
 * @param outage whether the database cannot be used
 * @param stall why a due job that this worker may run does not start although a handler is free, if that has been so for
 *     half a minute, or that there is no schema, with the remedy; null otherwise
 * @param reconciled how many jobs the worker held without knowing it, or knew without running them, and has given back
 * @param stuckThreads names of the worker's threads that have been at one thing for two minutes (a sweep: six) without
 *     waiting for the database; empty in good health
 * @param sinceAudit the time since the worker last compared what it does with what the database says, and with it whether
 *     due jobs start, or since its start
 * @param heldSnapshot who holds a snapshot for more than a minute while this worker finishes thousands of jobs, so that the
 *     table of jobs grows; null if nobody does
 * @param sinceStart the time since the worker started under this id
 * @param pollingOnly whether the worker does not listen, as {@link WorkerSettings#listen} says
 * @param unservedTasks at most ten tasks of which jobs have been due for half a minute though no registered worker serves them,
 *     not necessarily all such tasks
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
        List<UnservedTask> unservedTasks) {

    /**
     * Jobs that wait for a task.
     *
     * @param task the task's identifier
     * @param jobs how many have been seen; there may be more
     * @param closest the served task that may have been meant; null if none has a similar name
     * @since 0.1.0
     */
    public record UnservedTask(
            String task, long jobs, @Nullable String closest) {}

    /**
     * A snapshot that keeps what finished jobs leave behind from being removed.
     *
     * @param holder who holds it, in words: a session, a prepared transaction or a replication slot
     * @param age how long it has been held, or has been seen to be, where the database does not tell
     * @since 0.1.0
     */
    public record HeldSnapshot(String holder, Duration age) {}

    /** Copies the lists. */
    public WorkerStatus {
        deadThreads = List.copyOf(deadThreads);
        stuckThreads = List.copyOf(stuckThreads);
        unservedTasks = List.copyOf(unservedTasks);
    }
}
