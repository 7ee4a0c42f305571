package dev.pgworker.flow;

import java.util.List;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.job.Job;

/**
 * The jobs of a flow that has been added.
 *
 * @param flow what was added
 * @param jobs its jobs in the order of {@link JobFlow#jobs}, as they would be if they waited for no others: a job that waits has a later
 *     {@code runAt} in the database
 * @since 0.1.0
 */
public record AddedFlow(JobFlow flow, List<Job> jobs) {

    /** Copies the list. */
    public AddedFlow {
        Arguments.requireNonNull("flow", flow);
        jobs = Arguments.requireList("jobs", jobs);
    }

    /**
     * Returns the job that was added for a part of the flow.
     *
     * @throws IllegalArgumentException if the part is of another flow
     */
    public Job job(FlowJob part) {
        int index = flow.jobs().indexOf(Arguments.requireNonNull("part", part));
        if (index < 0) {
            throw new IllegalArgumentException("part must be a job of this flow, but is " + part);
        }
        return jobs.get(index);
    }
}
