package dev.pgworker.job;

import java.util.List;

import org.jspecify.annotations.Nullable;

/**
 * A part of a list of jobs.
 *
 * @param jobs the jobs with their payloads, newest (highest id) first
 * @param next what to pass as {@link JobQuery#after()} for the following page; null when this page is the last
 * @since 0.1.0
 */
public record JobPage(List<Job> jobs, @Nullable Long next) {

    /** Copies the list. */
    public JobPage {
        jobs = List.copyOf(jobs);
    }
}
