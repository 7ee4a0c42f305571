package dev.pgworker.autoconfigure.endpoint;

import java.util.Map;

import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;

import dev.pgworker.step.JobSignals;

/** What the endpoint tells jobs that wait for it. */
record EndpointSignals(JobSignals signals) {

    Object send(@Nullable String name, @Nullable String payload) {
        String given = EndpointParameters.required("name", name);
        try {
            signals.send(given, payload == null || payload.isBlank() ? null : EndpointRecurring.JSON.readTree(payload));
        } catch (JacksonException e) {
            throw new IllegalArgumentException("payload must be JSON: " + e.getOriginalMessage(), e);
        }
        return Map.of("sent", given);
    }
}
