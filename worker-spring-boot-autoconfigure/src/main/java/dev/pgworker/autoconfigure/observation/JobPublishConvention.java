package dev.pgworker.autoconfigure.observation;

import io.micrometer.common.KeyValues;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationConvention;

/**
 * Names the observation of a call that adds jobs, and says what belongs to it: by default, the messaging attributes of OpenTelemetry. A bean of
 * this type replaces the default.
 *
 * @since 0.1.0
 */
public interface JobPublishConvention extends ObservationConvention<JobPublishContext> {

    @Override
    default String getName() {
        return "pgworker.job.publish";
    }

    @Override
    default String getContextualName(JobPublishContext context) {
        return context.task() == null ? "publish jobs" : "publish " + context.task();
    }

    /** Tasks are no tag here: their names may come from anywhere. */
    @Override
    default KeyValues getLowCardinalityKeyValues(JobPublishContext context) {
        return KeyValues.of(
                "messaging.system",
                "pgworker",
                "messaging.operation.name",
                "publish",
                "messaging.operation.type",
                "send");
    }

    @Override
    default KeyValues getHighCardinalityKeyValues(JobPublishContext context) {
        return context.task() == null ? KeyValues.empty() : KeyValues.of("messaging.destination.name", context.task());
    }

    @Override
    default boolean supportsContext(Observation.Context context) {
        return context instanceof JobPublishContext;
    }
}
