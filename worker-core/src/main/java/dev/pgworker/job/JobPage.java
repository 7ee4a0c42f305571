package dev.pgworker.job;

import java.util.List;

import org.jspecify.annotations.Nullable;

/**
 * A page of a list of jobs.
 *
 * @param jobs the jobs with their payloads, newest (highest id) first
 * @param next the value to pass as {@link JobQuery#after()} for the next page; null if this is the last page
 * @param limited whether reading ended before the page was full, because a query with a {@link JobQuery#scanLimit()} had
 *     read as many jobs as it may; if sorted otherwise than by id, the order is that of the jobs that were read
 * @since 0.1.0
 */
public record JobPage(List<Job> jobs, @Nullable Long next, boolean limited) {

    /** Makes a defensive copy of the list. */
    public JobPage {
        jobs = List.copyOf(jobs);
    }
}
