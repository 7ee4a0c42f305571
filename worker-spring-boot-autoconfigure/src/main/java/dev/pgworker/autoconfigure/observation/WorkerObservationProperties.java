package dev.pgworker.autoconfigure.observation;

import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * Traces of jobs.
 *
 * @param enabled Whether adding and running jobs are observed, if the application has a tracer.
 * @param propagate Whether jobs carry the trace in which they are added to the worker that runs them, in their payload.
 */
@ConfigurationProperties("worker.observation")
record WorkerObservationProperties(
        @DefaultValue("true") boolean enabled,
        @DefaultValue("false") boolean propagate) {}
