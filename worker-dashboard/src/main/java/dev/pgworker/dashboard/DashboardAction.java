package dev.pgworker.dashboard;

import java.util.Locale;

/**
 * What a user of the dashboard can do.
 *
 * @since 0.1.0
 */
public enum DashboardAction {

    /** Run jobs now. */
    RUN_NOW,

    /** Change the run time, the priority or the attempts of jobs. */
    RESCHEDULE,

    /** Delete jobs as if they had succeeded. */
    COMPLETE,

    /** Mark jobs as permanently failed. */
    FAIL,

    /** Delete jobs. */
    REMOVE,

    /** Cancel jobs, running ones included. */
    CANCEL,

    /** Add a job. */
    ADD,

    /** Remove data that is no longer used, and permanently failed jobs. */
    CLEANUP,

    /** Release the jobs and queues of workers that are known to be dead. */
    FORCE_UNLOCK,

    /** Look for dead workers and recover their jobs. */
    SWEEP,

    /** Trigger, pause and resume recurring jobs. */
    CRON,

    /** Pause and resume tasks, named queues and everything. */
    PAUSE,

    /** Create, change and delete schedules, and forget recurring jobs that have left every crontab. */
    SCHEDULE,

    /** Create, change and delete limits of the jobs that run at once or start in a period. */
    LIMIT,

    /** Send signals to jobs that wait for them. */
    SIGNAL;

    /** Returns the name of the action in the dashboard's addresses, such as {@code run-now}. */
    String id() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /** Returns the action with the given {@link #id}. */
    static DashboardAction of(String id) {
        return valueOf(id.toUpperCase(Locale.ROOT).replace('-', '_'));
    }
}
