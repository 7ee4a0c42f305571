package dev.pgworker.event;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Set;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.job.DeadWorker;
import dev.pgworker.job.Job;
import dev.pgworker.job.Pause;

/**
 * An event in a worker. The documentation of each event names the thread on which it is published; events of one thread
 * are delivered in the order in which they are published. Listeners receive events on another thread unless they are
 * direct.
 *
 * @since 0.1.0
 */
public sealed interface WorkerEvent {

    /** Returns the id of the worker in which the event occurred, as {@code locked_by} has it. */
    String workerId();

    /**
     * An event that concerns one job.
     *
     * @since 0.1.0
     */
    sealed interface OfJob extends WorkerEvent {

        /** Returns the job as it was claimed, with its payload. */
        Job job();
    }

    /**
     * An event that concerns the scheduling of recurring jobs.
     *
     * @since 0.1.0
     */
    sealed interface OfCron extends WorkerEvent {}

    /**
     * An event that concerns a schedule of the database.
     *
     * @since 0.1.0
     */
    sealed interface OfSchedule extends WorkerEvent {

        /** Returns the name of the schedule. */
        String schedule();
    }

    /**
     * A limit that was created, changed or deleted is now as it should be. Published on {@code worker-limit-keeper} by each
     * worker that sees it.
     *
     * @param limit the name of the limit
     * @param removed whether the limit exists no longer
     * @since 0.1.0
     */
    record LimitApplied(String workerId, String limit, boolean removed) implements WorkerEvent {}

    /**
     * The worker has looked up the ids of its tasks and starts looking for jobs. Published on {@code worker-fetch}.
     *
     * @param tasks the identifiers of the tasks that it serves
     * @since 0.1.0
     */
    record WorkerStarted(String workerId, Set<String> tasks) implements WorkerEvent {}

    /**
     * The worker begins to stop and claims no more jobs. Published on the thread that stops it.
     *
     * @since 0.1.0
     */
    record WorkerStopping(String workerId) implements WorkerEvent {}

    /**
     * The worker has stopped and is deregistered. Published on the thread that stopped it.
     *
     * @since 0.1.0
     */
    record WorkerStopped(String workerId) implements WorkerEvent {}

    /**
     * Listeners were too slow, and events before this one were dropped. Published on {@code worker-events}.
     *
     * @param count number of events dropped
     * @since 0.1.0
     */
    record EventsDropped(String workerId, long count) implements WorkerEvent {}

    /**
     * Another program has migrated the schema. Published on {@code worker-migrations}.
     *
     * @param migration the newest id of the ledger
     * @param breaking whether this worker cannot continue with the schema and therefore stops
     * @since 0.1.0
     */
    record SchemaMigrated(String workerId, int migration, boolean breaking) implements WorkerEvent {}

    /**
     * The worker is about to open its listener connection. Published on {@code worker-listen}, at each attempt.
     *
     * @since 0.1.0
     */
    record ListenerConnecting(String workerId) implements WorkerEvent {}

    /**
     * The worker has started to listen, and receives notifications from now on. Published on {@code worker-listen}.
     *
     * @since 0.1.0
     */
    record ListenerConnected(String workerId) implements WorkerEvent {}

    /**
     * The worker lost its listener connection or could not open one. Published on {@code worker-listen}, once per
     * outage.
     *
     * @since 0.1.0
     */
    record ListenerDisconnected(String workerId, Exception error) implements WorkerEvent {}

    /**
     * The worker is about to claim jobs. Published on {@code worker-fetch} or {@code worker-listen}.
     *
     * @param wanted maximum number of jobs to claim
     * @since 0.1.0
     */
    record FetchStarted(String workerId, int wanted) implements WorkerEvent {}

    /**
     * Jobs have been claimed, not including jobs of a named queue that are claimed by the completion of the job before
     * them. Published on {@code worker-fetch} or {@code worker-listen}.
     *
     * @param count number of jobs, at least one
     * @since 0.1.0
     */
    record JobsFetched(String workerId, int count) implements WorkerEvent {}

    /**
     * No job could be claimed. Published on {@code worker-fetch} or {@code worker-listen}.
     *
     * @since 0.1.0
     */
    record FetchEmpty(String workerId) implements WorkerEvent {}

    /**
     * Claiming failed and will be retried. Published on {@code worker-fetch} or {@code worker-listen}, at each
     * attempt.
     *
     * @since 0.1.0
     */
    record FetchFailed(String workerId, Exception error) implements WorkerEvent {}

    /**
     * A handler is about to be called. Published on the handler's thread.
     *
     * @param waited the time since the job became due, by this JVM's clock; not negative
     * @since 0.1.0
     */
    record JobStarted(String workerId, Job job, Duration waited) implements OfJob {}

    /**
     * The handler returned, or its transaction has been committed; the row may or may not have been deleted yet.
     * Published on the handler's thread.
     *
     * @param took how long the attempt took
     * @since 0.1.0
     */
    record JobSucceeded(String workerId, Job job, Duration took) implements OfJob {}

    /**
     * The handler failed; the outcome has not been written yet. Published on the handler's thread, or on {@code
     * worker-timeout} if the handler continues after exceeding its timeout.
     *
     * @param took how long the attempt took
     * @since 0.1.0
     */
    record JobErrored(String workerId, Job job, Throwable error, Duration took) implements OfJob {}

    /**
     * The handler ended with neither success nor failure. It snoozed the job, the worker is stopping, the job has been
     * cancelled, or it turned out to be held by another worker. {@link JobSnoozed}, {@link JobReturned}, {@link JobSuperseded}, {@link
     * JobCancelled} or {@link JobLost} follows. Published on the handler's thread, or on the thread that stops the worker if the handler
     * continues.
     *
     * @param took how long the attempt took
     * @since 0.1.0
     */
    record JobEnded(String workerId, Job job, Duration took) implements OfJob {}

    /**
     * A running handler is being interrupted. Published on the thread that stops the worker, on {@code worker-timeout} or on {@code
     * worker-cancel}.
     *
     * @param timedOut true if the handler has exceeded its timeout, false if the worker is stopping or the job has been
     *     cancelled
     * @since 0.1.0
     */
    record JobInterrupted(String workerId, Job job, boolean timedOut) implements OfJob {}

    /**
     * The job succeeded and its row has been deleted. Published on {@code worker-complete}, or on the thread of a
     * direct batch when the batch is committed.
     *
     * @since 0.1.0
     */
    record JobCompleted(String workerId, Job job) implements OfJob {}

    /**
     * The attempt failed and the failure has been written. Published on {@code worker-complete}.
     *
     * @param permanently whether the job has no attempts left, according to the database rather than to the job as it
     *     was claimed
     * @since 0.1.0
     */
    record JobFailed(String workerId, Job job, Throwable error, boolean permanently) implements OfJob {}

    /**
     * The handler snoozed the job, so that it runs again later without the attempt being counted. Published on {@code
     * worker-complete}.
     *
     * @since 0.1.0
     */
    record JobSnoozed(String workerId, Job job) implements OfJob {}

    /**
     * The job was released without its attempt being counted, because the worker is stopping. Published on {@code
     * worker-complete}.
     *
     * @param started whether its handler had been called
     * @since 0.1.0
     */
    record JobReturned(String workerId, Job job, boolean started) implements OfJob {}

    /**
     * The attempt ended, but this worker no longer held the job, so no outcome was written. Published on {@code
     * worker-complete}.
     *
     * @since 0.1.0
     */
    record JobLost(String workerId, Job job) implements OfJob {}

    /**
     * The attempt did not succeed, but the job had been superseded or removed by its key in the meantime, so it does
     * not run again. Published on {@code worker-complete} instead of {@link JobFailed}, {@link JobSnoozed} or {@link
     * JobReturned}.
     *
     * @since 0.1.0
     */
    record JobSuperseded(String workerId, Job job) implements OfJob {}

    /**
     * A running job has been cancelled, and its handler can see that from now on. It is interrupted, at once or after {@code
     * pgworker.cancel.interrupt-after}. {@link JobCancelled} follows, or {@link JobCompleted} if the handler succeeds all the same.
     * Published on {@code worker-cancel}, or on the handler's thread.
     *
     * @since 0.1.0
     */
    record JobCancelRequested(String workerId, Job job) implements OfJob {}

    /**
     * The attempt did not succeed, and its job had been cancelled in the meantime; it has been deleted. Published on {@code
     * worker-complete} instead of {@link JobFailed}, {@link JobSnoozed} or {@link JobReturned}; for a job that has lost its worker,
     * like {@link JobRecovered}.
     *
     * @since 0.1.0
     */
    record JobCancelled(String workerId, Job job) implements OfJob {}

    /**
     * This worker held jobs or had locked queues without a run. Either it did not know of them, for example because
     * a response was lost, or none of its threads was running them. They have been
     * released without counting the attempt. Published on {@code worker-reconcile}.
     *
     * @param jobs number of jobs
     * @param queues number of queues without a job
     * @since 0.1.0
     */
    record ClaimsReconciled(String workerId, int jobs, int queues) implements WorkerEvent {}

    /**
     * This worker, and no other, has recovered a job from a worker that died. Published on {@code worker-sweep}; for a
     * manual sweep, where the worker's id is {@value DeadWorker#BY_HAND}, on the calling thread after its commit.
     *
     * @param job the job as the dead worker had it locked, with the interrupted attempt counted
     * @param deadWorker the worker that held it, and why it is considered dead
     * @param outcome the outcome for the job; never {@code SUPERSEDED} or {@code CANCELLED}
     * @since 0.1.0
     */
    record JobRecovered(String workerId, Job job, DeadWorker deadWorker, RecoveryOutcome outcome) implements OfJob {

        /** Returns the id of the worker that died. */
        public String deadWorkerId() {
            return deadWorker.id();
        }
    }

    /**
     * A job that was superseded under its key, or removed, while it ran has lost its worker. It remains as permanently
     * failed, with a last error that states this. Published like {@link JobRecovered}.
     *
     * @param deadWorker the worker that held it, and why it is considered dead
     * @since 0.1.0
     */
    record SupersededJobEnded(String workerId, Job job, DeadWorker deadWorker) implements OfJob {

        /** Returns the id of the worker that died. */
        public String deadWorkerId() {
            return deadWorker.id();
        }
    }

    /**
     * This worker has found other workers dead and deleted their registrations, except for those that still hold a job.
     * Published like {@link JobRecovered}, after the events of the jobs.
     *
     * @param deadWorkers the dead workers, and why each is considered dead
     * @param jobs number of jobs recovered from them
     * @since 0.1.0
     */
    record WorkersRecovered(String workerId, List<DeadWorker> deadWorkers, int jobs) implements WorkerEvent {

        /** Makes a defensive copy of the list. */
        public WorkersRecovered {
            deadWorkers = Arguments.requireList("deadWorkers", deadWorkers);
        }

        /** Returns the ids of the workers that died. */
        public List<String> deadWorkerIds() {
            return deadWorkers.stream().map(DeadWorker::id).toList();
        }
    }

    /**
     * The worker could not send a heartbeat for as long as others wait before they declare it dead, or they have
     * declared it dead. Its handlers are interrupted, and it claims no more jobs under this id. Published on {@code
     * worker-restart}.
     *
     * @since 0.1.0
     */
    record WorkerLost(String workerId, String reason) implements WorkerEvent {}

    /**
     * The worker restarts under a new id after it was lost. Published on {@code worker-restart}.
     *
     * @param lostWorkerId the id that it had before
     * @since 0.1.0
     */
    record WorkerReplaced(String workerId, String lostWorkerId) implements WorkerEvent {}

    /**
     * This worker starts no more jobs of what is paused: it has seen a pause, when it began or when the worker started. Published
     * on {@code worker-pauses}.
     *
     * @param pause what is paused, and who has paused it when and why
     * @since 0.1.0
     */
    record PauseBegan(String workerId, Pause pause) implements WorkerEvent {}

    /**
     * This worker has seen that a pause is over. Published on {@code worker-pauses}.
     *
     * @param pause what was paused
     * @since 0.1.0
     */
    record PauseEnded(String workerId, Pause pause) implements WorkerEvent {}

    /**
     * Jobs were changed by {@link dev.pgworker.job.JobChanges} or {@link dev.pgworker.job.WorkerOperations}. Published on the thread that called it, after its
     * commit, to the listeners of that administration; of a change in chunks, one event for each.
     *
     * @param workerId {@link DeadWorker#BY_HAND}
     * @param action what was done: {@code complete}, {@code fail}, {@code reschedule}, {@code run-now}, {@code remove},
     *     {@code cancel}, {@code sweep}, {@code force-unlock}, {@code cleanup}, {@code pause} or {@code resume}
     * @param jobIds the ids of the jobs that were changed; the first 1,000 of a sweep, none of {@code force-unlock}, {@code
     *     cleanup}, {@code pause} and {@code resume}
     * @param count number of jobs that were changed; of {@code force-unlock} the number of workers, of {@code cleanup}
     *     the number of rows that were deleted, of {@code pause} and {@code resume} 1
     * @param user in whose name; null if no name was given
     * @since 0.1.0
     */
    record JobsChanged(
            String workerId,
            String action,
            List<Long> jobIds,
            long count,
            @Nullable String user) implements WorkerEvent {

        /** Makes a defensive copy of the list. */
        public JobsChanged {
            jobIds = Arguments.requireList("jobIds", jobIds);
        }
    }

    /**
     * A limit was created, changed or deleted by {@link dev.pgworker.limit.JobLimits}; what an application declares at
     * its start is not published. Published on the thread that called it, after its commit, to the listeners of these
     * limits. When it is in effect, {@link LimitApplied} follows.
     *
     * @param workerId {@link DeadWorker#BY_HAND}
     * @param limit its name
     * @param allows what it allows, such as {@code "3 running per tenant"}; null if it was deleted
     * @param user in whose name; null if no name was given
     * @since 0.1.0
     */
    record LimitChanged(
            String workerId,
            String limit,
            @Nullable String allows,
            @Nullable String user) implements WorkerEvent {}

    /**
     * The worker has registered its recurring jobs and starts to schedule them. Published on {@code worker-cron}.
     *
     * @param identifiers the identifiers of its items
     * @since 0.1.0
     */
    record CronStarted(String workerId, Set<String> identifiers) implements OfCron {}

    /**
     * This worker, and no other, has added the job of a recurring item. Published on {@code worker-cron} or {@code worker-cron-late}.
     *
     * @param identifier the identifier of the item
     * @param timestamp the minute for which the job was due
     * @param backfilled whether the job was added to catch up on a time in which no worker ran
     * @since 0.1.0
     */
    record CronJobAdded(String workerId, String identifier, Instant timestamp, long jobId, boolean backfilled)
            implements OfCron {}

    /**
     * A recurring item was due while it was paused, so no job has been or will be added for that minute. Published on
     * {@code worker-cron} or {@code worker-cron-late}, by one worker only.
     *
     * @param identifier the identifier of the item
     * @param timestamp the minute for which it was due
     * @since 0.1.0
     */
    record CronJobSkipped(String workerId, String identifier, Instant timestamp) implements OfCron {}

    /**
     * A minute has begun, and the items due in it have been executed, by this or another worker. Published on {@code
     * worker-cron}, by every worker that has recurring jobs.
     *
     * @param timestamp the minute
     * @param delay the time from the start of the minute until the worker processed it, by the database's clock
     * @since 0.1.0
     */
    record CronTicked(String workerId, Instant timestamp, Duration delay) implements OfCron {}

    /**
     * The worker woke up before the minute had begun by the database's clock, and waits again. Published on {@code
     * worker-cron}.
     *
     * @param timestamp the minute
     * @param early the time that remained until the minute began
     * @since 0.1.0
     */
    record CronWokeEarly(String workerId, Instant timestamp, Duration early) implements OfCron {}

    /**
     * A recurring item starts to catch up on missed minutes, after a time without a worker or because its job could not
     * be added. Published on {@code worker-cron}.
     *
     * @param identifier the identifier of the item
     * @param since the first minute in which the item may have been due
     * @since 0.1.0
     */
    record CronItemBehind(String workerId, String identifier, Instant since) implements OfCron {}

    /**
     * A recurring item that was behind has caught up. Published on {@code worker-cron}.
     *
     * @since 0.1.0
     */
    record CronItemCaughtUp(String workerId, String identifier) implements OfCron {}

    /**
     * The job of a recurring item could not be added. This is retried every minute, and other items are not affected.
     * Published on {@code worker-cron} or {@code worker-cron-late}.
     *
     * @param identifier the identifier of the item
     * @param timestamp the latest minute for which a job is missing
     * @since 0.1.0
     */
    record CronJobFailed(String workerId, String identifier, Instant timestamp, Exception error) implements OfCron {}

    /**
     * This worker, and no other, has added the job of a schedule. Published on {@code worker-schedules} or {@code worker-schedules-late}.
     *
     * @param schedule the name of the schedule
     * @param dueAt when the execution was due
     * @param jobId the id of the job
     * @param backfilled whether the execution was missed, and is caught up on
     * @since 0.1.0
     */
    record ScheduleExecuted(String workerId, String schedule, Instant dueAt, long jobId, boolean backfilled)
            implements OfSchedule {}

    /**
     * Executions of a schedule do not take place. Published on {@code worker-schedules} or {@code worker-schedules-late}, by one worker only.
     *
     * @param schedule the name of the schedule
     * @param dueAt when the first of them was due
     * @param count number of executions, counted up to 100
     * @param reason why they do not take place
     * @since 0.1.0
     */
    record ScheduleSkipped(String workerId, String schedule, Instant dueAt, int count, ScheduleSkipReason reason)
            implements OfSchedule {}

    /**
     * An execution of a schedule failed, and others are not affected. Published on {@code worker-schedules} or {@code worker-schedules-late}.
     *
     * <p>It is retried if the database refused the job or another transaction was in the way; not if an interceptor threw an
     * exception; and if the schedule itself is invalid, not before it is changed.
     *
     * @param schedule the name of the schedule
     * @param dueAt when the execution was due; null if that is unknown
     * @since 0.1.0
     */
    record ScheduleFailed(
            String workerId, String schedule, @Nullable Instant dueAt, Exception error) implements OfSchedule {}
}
