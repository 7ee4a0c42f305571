package dev.pgworker.flow;

import java.util.ArrayList;
import java.util.List;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;

/**
 * Jobs that are added together, some of which start when others have succeeded:
 *
 * <pre>{@code
 * JobFlow flow = new JobFlow();
 * List<FlowJob> parts = flow.addAll(RENDER, chapters);
 * flow.add(BIND, book).after(parts).onFailure(OnFailure.FAIL);
 * flows.add(flow);
 * }</pre>
 *
 * <p>Only a description, which {@link JobFlows#add} turns into jobs. A job can wait only for jobs that were added before it, so
 * none can wait for itself. Not thread-safe.
 *
 * @since 0.1.0
 */
public final class JobFlow {

    private final Object token = new Object();
    private final List<FlowJob> jobs = new ArrayList<>();

    /** Creates a flow without jobs. */
    public JobFlow() {}

    /** Adds a job that runs as soon as possible: at once, or after the jobs that it is set to wait for. */
    public <P> FlowJob add(Task<P> task, P payload) {
        return add(JobRequest.of(task, payload));
    }

    /**
     * Adds a job.
     *
     * @param spec how to run it; it does not run before its {@code runAt}, nor before the jobs have ended that it waits for
     */
    public <P> FlowJob add(Task<P> task, P payload, JobSpec spec) {
        return add(JobRequest.of(task, payload, spec));
    }

    /**
     * Adds a job of the given task that runs as soon as possible.
     *
     * @param identifier the task's name, 1 to 128 characters
     * @param payload the payload that the handler receives; null for the empty object
     */
    public FlowJob add(String identifier, @Nullable Object payload) {
        return add(JobRequest.of(identifier, payload));
    }

    /** Adds a job. The rules of {@link dev.pgworker.job.JobScheduler#addJobs(List)} for job keys apply to the whole flow. */
    public FlowJob add(JobRequest request) {
        FlowJob job = new FlowJob(token, jobs.size(), Arguments.requireNonNull("request", request));
        jobs.add(job);
        return job;
    }

    /** Adds jobs of one task that run as soon as possible, and returns them in the order of their payloads. */
    public <P> List<FlowJob> addAll(Task<P> task, List<? extends P> payloads) {
        Arguments.requireNonNull("task", task);
        List<FlowJob> added = new ArrayList<>();
        for (P payload : Arguments.requireNonNull("payloads", payloads)) {
            added.add(add(task, payload));
        }
        return List.copyOf(added);
    }

    /** Returns the jobs in the order in which they were added. */
    public List<FlowJob> jobs() {
        return List.copyOf(jobs);
    }
}
