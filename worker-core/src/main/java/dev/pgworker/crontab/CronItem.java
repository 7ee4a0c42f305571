package dev.pgworker.crontab;

import java.time.Duration;
import java.time.ZoneId;

import org.jspecify.annotations.Nullable;
import tools.jackson.databind.node.ObjectNode;

import dev.pgworker.job.JobSpec;

/**
 * One recurring job.
 *
 * @param identifier by which all workers know the item; unique in a crontab
 * @param task the identifier of the task to run
 * @param pattern the minutes at which it is due
 * @param zone whose local time the pattern means; null for the crontab's own
 * @param fill how far back missed executions are made up for; zero for none
 * @param spec how each job is scheduled; its {@code runAt} is null
 * @param payload what each job's payload holds besides {@code _cron}; null for nothing
 */
record CronItem(
        String identifier,
        String task,
        CronPattern pattern,
        @Nullable ZoneId zone,
        Duration fill,
        JobSpec spec,
        @Nullable ObjectNode payload) {}
