package dev.pgworker.autoconfigure.observation;

import io.micrometer.observation.transport.ReceiverContext;

import dev.pgworker.job.Job;

/**
 * What is observed of a run of a job.
 *
 * @since 0.1.0
 */
public final class JobProcessContext extends ReceiverContext<Object> {

    private final Job job;

    JobProcessContext(Job job, PayloadTrace trace) {
        super((carrier, name) -> PayloadTrace.header((PayloadTrace) carrier, name));
        setCarrier(trace);
        this.job = job;
    }

    /** Returns the job as it was claimed. */
    public Job job() {
        return job;
    }
}
