package dev.pgworker.autoconfigure.observation;

import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * Traces of jobs.
 *
 * @param enabled Whether to observe adding and running jobs, if the application has a tracer.
 * @param propagate Whether to propagate the trace context to the worker in the payload of jobs.
 */
@ConfigurationProperties("pgworker.observation")
record WorkerObservationProperties(
        @DefaultValue("true") boolean enabled,
        @DefaultValue("false") boolean propagate) {}
