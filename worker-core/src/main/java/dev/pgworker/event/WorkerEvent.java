package dev.pgworker.event;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Set;

import dev.pgworker.job.DeadWorker;
import dev.pgworker.job.Job;

/**
 * Something that happened in a worker. Each event says on which thread it happened, and in which order those of a thread
 * follow each other; listeners receive it on another one unless they are direct.
 *
 * @since 0.1.0
 */
public sealed interface WorkerEvent {

    /** Returns the id of the worker in which it happened, as {@code locked_by} has it. */
    String workerId();

    /**
     * Something that happened to one job.
     *
     * @since 0.1.0
     */
    sealed interface OfJob extends WorkerEvent {

        /** Returns the job as it was claimed, with its payload. */
        Job job();
    }

    /**
     * Something that happened while recurring jobs were scheduled.
     *
     * @since 0.1.0
     */
    sealed interface OfCron extends WorkerEvent {}

    /**
     * The worker knows its tasks' ids and looks for jobs. Published on {@code worker-fetch}.
     *
     * @param tasks the identifiers it serves
     * @since 0.1.0
     */
    record WorkerStarted(String workerId, Set<String> tasks) implements WorkerEvent {}

    /**
     * The worker begins to stop: nothing is claimed any more. Published on the thread that stops it.
     *
     * @since 0.1.0
     */
    record WorkerStopping(String workerId) implements WorkerEvent {}

    /**
     * Everything has ended and the worker is deregistered. Published on the thread that stopped it.
     *
     * @since 0.1.0
     */
    record WorkerStopped(String workerId) implements WorkerEvent {}

    /**
     * Listeners were too slow, and events were thrown away before this one. Published on {@code worker-events}.
     *
     * @param count how many
     * @since 0.1.0
     */
    record EventsDropped(String workerId, long count) implements WorkerEvent {}

    /**
     * Another program has migrated the schema. Published on {@code worker-migrations}.
     *
     * @param migration the newest id of the ledger
     * @param breaking whether this worker cannot go on, and therefore stops
     * @since 0.1.0
     */
    record SchemaMigrated(String workerId, int migration, boolean breaking) implements WorkerEvent {}

    /**
     * The listener is about to ask for its connection. Published on {@code worker-listen}, at each attempt.
     *
     * @since 0.1.0
     */
    record ListenerConnecting(String workerId) implements WorkerEvent {}

    /**
     * Notifications arrive from here on. Published on {@code worker-listen}.
     *
     * @since 0.1.0
     */
    record ListenerConnected(String workerId) implements WorkerEvent {}

    /**
     * The listener lost its connection or got none. Published on {@code worker-listen}, once an outage.
     *
     * @since 0.1.0
     */
    record ListenerDisconnected(String workerId, Exception error) implements WorkerEvent {}

    /**
     * The worker is about to claim jobs. Published on {@code worker-fetch} or {@code worker-fetch-2}.
     *
     * @param wanted how many at most
     * @since 0.1.0
     */
    record FetchStarted(String workerId, int wanted) implements WorkerEvent {}

    /**
     * Jobs have been claimed; the next of a named queue, which the completion of the one before claims, are not among
     * them. Published on {@code worker-fetch} or {@code worker-fetch-2}.
     *
     * @param count how many, at least one
     * @since 0.1.0
     */
    record JobsFetched(String workerId, int count) implements WorkerEvent {}

    /**
     * No job could be claimed. Published on {@code worker-fetch} or {@code worker-fetch-2}.
     *
     * @since 0.1.0
     */
    record FetchEmpty(String workerId) implements WorkerEvent {}

    /**
     * Claiming failed and is tried again. Published on {@code worker-fetch} or {@code worker-fetch-2}, at each attempt.
     *
     * @since 0.1.0
     */
    record FetchFailed(String workerId, Exception error) implements WorkerEvent {}

    /**
     * A handler is about to be called. Published on the handler's thread.
     *
     * @param waited the time since the job was due, by this JVM's clock; not negative
     * @since 0.1.0
     */
    record JobStarted(String workerId, Job job, Duration waited) implements OfJob {}

    /**
     * The handler returned, or its transaction has been committed; the row is still to be deleted, or is already. Published
     * on the handler's thread.
     *
     * @param took how long the attempt took
     * @since 0.1.0
     */
    record JobSucceeded(String workerId, Job job, Duration took) implements OfJob {}

    /**
     * The handler failed; what becomes of the job is still to be written. Published on the handler's thread, or on
     * {@code worker-timeout} if the handler goes on although its time is over.
     *
     * @param took how long the attempt took
     * @since 0.1.0
     */
    record JobErrored(String workerId, Job job, Throwable error, Duration took) implements OfJob {}

    /**
     * The handler ended in another way than by success or failure: it put the job off, the worker stops, or the job turned
     * out to be another worker's. {@link JobSnoozed}, {@link JobReturned}, {@link JobSuperseded} or {@link JobLost} follows.
     * Published on the handler's thread, or on the thread that stops the worker if the handler goes on.
     *
     * @param took how long the attempt took
     * @since 0.1.0
     */
    record JobEnded(String workerId, Job job, Duration took) implements OfJob {}

    /**
     * A running handler is being interrupted. Published on the thread that stops the worker, or on {@code worker-timeout}.
     *
     * @param timedOut whether that is because its time is over, and not because the worker stops
     * @since 0.1.0
     */
    record JobInterrupted(String workerId, Job job, boolean timedOut) implements OfJob {}

    /**
     * The job succeeded and its row has been deleted. Published on {@code worker-complete}, or on the thread of a direct batch
     * when that is committed.
     *
     * @since 0.1.0
     */
    record JobCompleted(String workerId, Job job) implements OfJob {}

    /**
     * The attempt failed and that has been written. Published on {@code worker-complete}.
     *
     * @param permanently whether there are no attempts left, by what the database has made of the job, not by the job as it was
     *     claimed
     * @since 0.1.0
     */
    record JobFailed(String workerId, Job job, Throwable error, boolean permanently) implements OfJob {}

    /**
     * The handler put the job off, without its attempt being counted. Published on {@code worker-complete}.
     *
     * @since 0.1.0
     */
    record JobSnoozed(String workerId, Job job) implements OfJob {}

    /**
     * The job was given back without its attempt being counted, because the worker is stopping. Published on
     * {@code worker-complete}.
     *
     * @param started whether its handler had been called
     * @since 0.1.0
     */
    record JobReturned(String workerId, Job job, boolean started) implements OfJob {}

    /**
     * The attempt ended, but the job was not this worker's any more, so that nothing has been written. Published on
     * {@code worker-complete}.
     *
     * @since 0.1.0
     */
    record JobLost(String workerId, Job job) implements OfJob {}

    /**
     * The attempt ended without success, but the job had been superseded or removed by its key meanwhile: it does not run
     * again. Published on {@code worker-complete} instead of {@link JobFailed}, {@link JobSnoozed} or {@link JobReturned}.
     *
     * @since 0.1.0
     */
    record JobSuperseded(String workerId, Job job) implements OfJob {}

    /**
     * The database said that this worker held jobs, or had locked queues, that it did not know of, or it knew of jobs that
     * none of its threads was running: an answer was lost, for instance. They have been given back, the attempt not counted.
     * Published on {@code worker-reconcile}.
     *
     * @param jobs how many jobs
     * @param queues how many queues without a job
     * @since 0.1.0
     */
    record ClaimsReconciled(String workerId, int jobs, int queues) implements WorkerEvent {}

    /**
     * This worker, and no other, has taken a job from a worker that died. Published on {@code worker-sweep}; for a sweep by
     * hand, where the worker's id is {@value DeadWorker#BY_HAND}, by the thread that asked for it, after its commit.
     *
     * @param job as the dead worker had it locked, the interrupted attempt counted
     * @param deadWorker the worker that held it, and why it is taken for dead
     * @param outcome what has become of it; not {@code SUPERSEDED}
     * @since 0.1.0
     */
    record JobRecovered(String workerId, Job job, DeadWorker deadWorker, RecoveryOutcome outcome) implements OfJob {

        /** Returns the id of the worker that died. */
        public String deadWorkerId() {
            return deadWorker.id();
        }
    }

    /**
     * A job that was superseded under its key, or removed, while it ran has lost its worker. It stays as failed
     * permanently, with a text that says so. Published as {@link JobRecovered}.
     *
     * @param deadWorker the worker that held it, and why it is taken for dead
     * @since 0.1.0
     */
    record SupersededJobEnded(String workerId, Job job, DeadWorker deadWorker) implements OfJob {

        /** Returns the id of the worker that died. */
        public String deadWorkerId() {
            return deadWorker.id();
        }
    }

    /**
     * This worker has found others dead and deleted their registrations, except of those that keep a job for now.
     * Published as {@link JobRecovered}, after the events of the jobs.
     *
     * @param deadWorkers the others, and why each is taken for dead
     * @param jobs how many jobs it has taken from them
     * @since 0.1.0
     */
    record WorkersRecovered(String workerId, List<DeadWorker> deadWorkers, int jobs) implements WorkerEvent {

        /** Copies the list. */
        public WorkersRecovered {
            deadWorkers = List.copyOf(deadWorkers);
        }

        /** Returns the ids of the workers that died. */
        public List<String> deadWorkerIds() {
            return deadWorkers.stream().map(DeadWorker::id).toList();
        }
    }

    /**
     * The worker could not prove its life for as long as it takes others to declare it dead, or they have done so. Its
     * handlers are interrupted, and it claims nothing more under this id. Published on {@code worker-restart}.
     *
     * @since 0.1.0
     */
    record WorkerLost(String workerId, String reason) implements WorkerEvent {}

    /**
     * The worker starts over under an id of its own after it was lost. Published on {@code worker-restart}.
     *
     * @param lostWorkerId the id that it had before
     * @since 0.1.0
     */
    record WorkerReplaced(String workerId, String lostWorkerId) implements WorkerEvent {}

    /**
     * The worker has registered its recurring jobs and begins to schedule them. Published on {@code worker-cron}.
     *
     * @param identifiers of its items
     * @since 0.1.0
     */
    record CronStarted(String workerId, Set<String> identifiers) implements OfCron {}

    /**
     * This worker, and no other, has added the job of a recurring item. Published on {@code worker-cron}.
     *
     * @param identifier of the item
     * @param timestamp the minute for which the job was due
     * @param backfilled whether it was added to make up for a time in which no worker ran
     * @since 0.1.0
     */
    record CronJobAdded(String workerId, String identifier, Instant timestamp, long jobId, boolean backfilled)
            implements OfCron {}

    /**
     * A recurring item was due while it was paused, so that no job has been added and none will be for that minute.
     * Published on {@code worker-cron}, by one worker only.
     *
     * @param identifier of the item
     * @param timestamp the minute for which it was due
     * @since 0.1.0
     */
    record CronJobSkipped(String workerId, String identifier, Instant timestamp) implements OfCron {}

    /**
     * A minute has come and the items due in it have been executed, by this or another worker. Published on
     * {@code worker-cron}, by every worker that has recurring jobs.
     *
     * @param timestamp the minute
     * @param delay how long after its beginning the worker turned to it, by the database's clock
     * @since 0.1.0
     */
    record CronTicked(String workerId, Instant timestamp, Duration delay) implements OfCron {}

    /**
     * The wait for a minute ended before it began by the database's clock, and is repeated. Published on
     * {@code worker-cron}.
     *
     * @param timestamp the minute
     * @param early how long before its beginning
     * @since 0.1.0
     */
    record CronWokeEarly(String workerId, Instant timestamp, Duration early) implements OfCron {}

    /**
     * A recurring item begins to make up for missed minutes, after a time without a worker or because its job could not
     * be added. Published on {@code worker-cron}.
     *
     * @param identifier of the item
     * @param since the first of the minutes in which it may have been due
     * @since 0.1.0
     */
    record CronItemBehind(String workerId, String identifier, Instant since) implements OfCron {}

    /**
     * A recurring item that was behind has made up for it. Published on {@code worker-cron}.
     *
     * @since 0.1.0
     */
    record CronItemCaughtUp(String workerId, String identifier) implements OfCron {}

    /**
     * A recurring item's job could not be added; it is tried again every minute, and other items are not affected.
     * Published on {@code worker-cron}.
     *
     * @param identifier of the item
     * @param timestamp the latest minute for which a job is missing
     * @since 0.1.0
     */
    record CronJobFailed(String workerId, String identifier, Instant timestamp, Exception error) implements OfCron {}
}
