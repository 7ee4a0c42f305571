package dev.pgworker.job;

/**
 * The result of a change of many jobs.
 *
 * @param selected number of jobs that were selected
 * @param done number of jobs that were looked at; less than selected if the change was stopped
 * @param changed number of jobs that were changed; the others were running, or gone
 * @since 0.1.0
 */
public record BulkResult(int selected, int done, int changed) {}
