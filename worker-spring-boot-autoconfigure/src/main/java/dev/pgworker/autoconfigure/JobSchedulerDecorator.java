package dev.pgworker.autoconfigure;

import dev.pgworker.job.JobScheduler;

/**
 * Puts something around the auto-configured scheduler. The scheduler may exist long before other beans, because
 * migrations add jobs: what a decorator needs besides is to be fetched when the first job is added.
 */
@FunctionalInterface
interface JobSchedulerDecorator {

    JobScheduler decorate(JobScheduler scheduler);
}
