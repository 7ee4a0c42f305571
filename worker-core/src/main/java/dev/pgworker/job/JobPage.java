package dev.pgworker.job;

import java.util.List;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * A page of a list of jobs.
 *
 * <p>Jobs that are sorted by id can be paged through whatever happens meanwhile: the next page continues from where reading has
 * ended. If they are sorted otherwise, every page reads the same number of jobs and passes over those of the pages before,
 * so that a job that changes meanwhile may come twice or not at all.
 *
 * @param jobs the jobs with their payloads, in the order that was asked for
 * @param next the value to pass as {@link JobQuery#after()} for the next page; null if this is the last page. If the jobs
 *     are sorted by id, that of the last job that was read; otherwise the number of jobs on all pages up to this one
 * @param limited whether jobs that match may be missing, because a query with a {@link JobQuery#scanLimit()} had read as
 *     many jobs as it may. If there is a next page, it continues from where reading has ended, even if this one is empty;
 *     but jobs of a queue that has more of them, and those of another order than by id, are on no page then. Such an order is
 *     that of the jobs that were read: the first ones that wait if a state in which jobs wait is sorted by priority or run time,
 *     otherwise the newest
 * @since 0.1.0
 */
public record JobPage(List<Job> jobs, @Nullable Long next, boolean limited) {

    /** Makes a defensive copy of the list. */
    public JobPage {
        jobs = Arguments.requireList("jobs", jobs);
    }
}
