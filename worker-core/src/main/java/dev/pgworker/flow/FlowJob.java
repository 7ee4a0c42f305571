package dev.pgworker.flow;

import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.job.JobRequest;

/**
 * A job of a {@link JobFlow}, with what it waits for. Not thread-safe.
 *
 * @since 0.1.0
 */
public final class FlowJob {

    /** The same for all jobs of a flow. */
    private final Object flow;

    private final int index;
    private final JobRequest request;
    private final Set<FlowJob> predecessors = new LinkedHashSet<>();
    private final Set<Long> existing = new LinkedHashSet<>();
    private OnFailure onFailure = OnFailure.WAIT;

    FlowJob(Object flow, int index, JobRequest request) {
        this.flow = flow;
        this.index = index;
        this.request = request;
    }

    /**
     * Has this job start when the given ones have succeeded as well. May be called several times.
     *
     * @param predecessors jobs that were added to the same flow before this one
     * @return this job
     * @throws IllegalArgumentException if one of them was not
     */
    public FlowJob after(FlowJob... predecessors) {
        return after(Arrays.asList(Arguments.requireNonNull("predecessors", predecessors)));
    }

    /** Same as {@link #after(FlowJob...)}, for any number of jobs. */
    public FlowJob after(Collection<FlowJob> predecessors) {
        for (FlowJob predecessor : Arguments.requireList("predecessors", predecessors)) {
            if (predecessor.flow != flow || predecessor.index >= index) {
                throw new IllegalArgumentException("predecessors must have been added to the flow before " + this
                        + ", but " + predecessor + " was not");
            }
            this.predecessors.add(predecessor);
        }
        return this;
    }

    /**
     * Has this job start when jobs of the database have succeeded as well. Each must be there when the flow is added, or have
     * ended while a flow or the history knew of it.
     *
     * @param ids their ids
     * @return this job
     */
    public FlowJob afterJobs(long... ids) {
        for (long id : Arguments.requireNonNull("ids", ids)) {
            existing.add(id);
        }
        return this;
    }

    /**
     * Sets what happens if one of the jobs that this one waits for does not succeed; {@link OnFailure#WAIT} by default.
     *
     * @return this job
     */
    public FlowJob onFailure(OnFailure choice) {
        onFailure = Arguments.requireNonNull("choice", choice);
        return this;
    }

    /** Returns what is added for this job. */
    public JobRequest request() {
        return request;
    }

    /** Returns its place among the jobs of the flow, from 0 on. */
    public int index() {
        return index;
    }

    /** Returns the jobs of the flow that it waits for. */
    public List<FlowJob> predecessors() {
        return List.copyOf(predecessors);
    }

    /** Returns the ids of the other jobs that it waits for. */
    public List<Long> existingPredecessors() {
        return List.copyOf(existing);
    }

    /** Returns what happens if one of those does not succeed. */
    public OnFailure onFailure() {
        return onFailure;
    }

    /** Returns a short description suitable for logs, which never has the payload. */
    @Override
    public String toString() {
        return "job " + index + " of the flow (" + request.identifier() + ")";
    }
}
