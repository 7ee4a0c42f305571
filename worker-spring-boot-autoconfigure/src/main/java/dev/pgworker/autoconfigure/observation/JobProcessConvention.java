package dev.pgworker.autoconfigure.observation;

import io.micrometer.common.KeyValues;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationConvention;

import dev.pgworker.job.Job;

/**
 * Names the observation of a job's run, and says what belongs to it: by default, the messaging attributes of OpenTelemetry. A bean of
 * this type replaces the default.
 *
 * @since 0.1.0
 */
public interface JobProcessConvention extends ObservationConvention<JobProcessContext> {

    @Override
    default String getName() {
        return "pgworker.job.process";
    }

    @Override
    default String getContextualName(JobProcessContext context) {
        return "process " + context.job().taskIdentifier();
    }

    @Override
    default KeyValues getLowCardinalityKeyValues(JobProcessContext context) {
        return KeyValues.of(
                "messaging.system", "pgworker",
                "messaging.operation.name", "process",
                "messaging.operation.type", "process",
                "messaging.destination.name", context.job().taskIdentifier());
    }

    @Override
    default KeyValues getHighCardinalityKeyValues(JobProcessContext context) {
        Job job = context.job();
        KeyValues values = KeyValues.of(
                "messaging.message.id", Long.toString(job.id()), "job.attempt", Integer.toString(job.attempts()));
        return job.queueName() == null ? values : values.and("job.queue", job.queueName());
    }

    @Override
    default boolean supportsContext(Observation.Context context) {
        return context instanceof JobProcessContext;
    }
}
