package dev.pgworker.autoconfigure.metrics;

import java.time.Duration;
import java.util.List;

import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;

/**
 * What is measured with Micrometer.
 *
 * @param enabled Whether to record metrics.
 * @param interval Interval at which the backlog of all applications is sampled, at least 1s. Set to 0 to disable.
 * @param tasks Tasks whose added jobs are counted by name although this application has no handler for them.
 */
@ConfigurationProperties("pgworker.metrics")
record WorkerMetricsProperties(
        @DefaultValue("true") boolean enabled,
        @DefaultValue("30s") Duration interval,
        @DefaultValue List<String> tasks) {

    WorkerMetricsProperties {
        if (!interval.isZero() && interval.compareTo(Duration.ofSeconds(1)) < 0) {
            throw new InvalidConfigurationPropertyValueException(
                    "pgworker.metrics.interval", interval, "It must be 0, or at least 1 s.");
        }
    }
}
