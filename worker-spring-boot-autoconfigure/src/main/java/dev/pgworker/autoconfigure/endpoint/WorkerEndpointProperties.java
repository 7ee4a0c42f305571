package dev.pgworker.autoconfigure.endpoint;

import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * The actuator endpoint {@code worker}.
 *
 * @param showPayloads Whether the endpoint shows payloads of jobs.
 */
@ConfigurationProperties("pgworker.endpoint")
record WorkerEndpointProperties(@DefaultValue("false") boolean showPayloads) {}
