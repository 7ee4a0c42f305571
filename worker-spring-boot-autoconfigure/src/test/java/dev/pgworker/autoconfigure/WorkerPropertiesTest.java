package dev.pgworker.autoconfigure;

import java.io.IOException;
import java.io.InputStream;
import java.util.Map;
import java.util.TreeMap;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.mock.env.MockEnvironment;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.WorkerSettings;
import dev.pgworker.autoconfigure.testing.FailureAnalyses;
import dev.pgworker.autoconfigure.testing.Greetings;
import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.schema.SchemaMode;
import dev.pgworker.schema.WorkerSchema;

import static org.assertj.core.api.Assertions.assertThat;

class WorkerPropertiesTest {

    @RegisterExtension
    final TestDatabase db = new TestDatabase();

    @Test
    void everyPropertyHasADescriptionAndTheseDefaults() throws IOException {
        Map<String, String> defaults = new TreeMap<>();
        try (InputStream metadata = getClass().getResourceAsStream("/META-INF/spring-configuration-metadata.json")) {
            for (JsonNode property : new JsonMapper().readTree(metadata).path("properties")) {
                String name = property.path("name").asString();
                assertThat(property.path("description").asString())
                        .as("description of " + name)
                        .endsWith(".");
                defaults.put(name, property.path("defaultValue").asString("unset"));
            }
        }
        assertThat(defaults)
                .containsExactly(
                        Map.entry("management.endpoint.worker.access", "unrestricted"),
                        Map.entry("management.endpoint.worker.cache.time-to-live", "0ms"),
                        Map.entry("worker.concurrency", "unset"),
                        Map.entry("worker.crontab", "unset"),
                        Map.entry("worker.crontab-file", "unset"),
                        Map.entry("worker.crontab-strict", "false"),
                        Map.entry("worker.crontab-zone", "UTC"),
                        Map.entry("worker.enabled", "true"),
                        Map.entry("worker.endpoint.show-payloads", "false"),
                        Map.entry("worker.forbidden-flags", "unset"),
                        Map.entry("worker.listen.password", "unset"),
                        Map.entry("worker.listen.url", "unset"),
                        Map.entry("worker.listen.user", "unset"),
                        Map.entry("worker.local-queue.size", "1000"),
                        Map.entry("worker.local-queue.ttl", "1s"),
                        Map.entry("worker.metrics.enabled", "true"),
                        Map.entry("worker.metrics.interval", "30s"),
                        Map.entry("worker.metrics.tasks", "unset"),
                        Map.entry("worker.observation.enabled", "true"),
                        Map.entry("worker.observation.propagate", "false"),
                        Map.entry("worker.poll-interval", "2s"),
                        Map.entry("worker.queue-run-limit", "100"),
                        Map.entry("worker.recovery.enabled", "true"),
                        Map.entry("worker.recovery.heartbeat-interval", "30s"),
                        Map.entry("worker.recovery.max-recoveries", "3"),
                        Map.entry("worker.recovery.orphans", "false"),
                        Map.entry("worker.recovery.peer-threshold", "5m"),
                        Map.entry("worker.recovery.recovery-delay", "30s"),
                        Map.entry("worker.recovery.resilient-job-flags", "infrastructure_resilient"),
                        Map.entry("worker.recovery.resilient-sweep-threshold-multiplier", "3"),
                        Map.entry("worker.recovery.sweep-interval", "60s"),
                        Map.entry("worker.recovery.sweep-threshold", "5m"),
                        Map.entry("worker.schema.mode", "migrate"),
                        Map.entry("worker.schema.name", "graphile_worker"),
                        Map.entry("worker.schema.password", "unset"),
                        Map.entry("worker.schema.peer-indexes", "auto"),
                        Map.entry("worker.schema.startup-timeout", "1m"),
                        Map.entry("worker.schema.url", "unset"),
                        Map.entry("worker.schema.user", "unset"),
                        Map.entry("worker.shutdown.grace-period", "5s"),
                        Map.entry("worker.shutdown.interrupted-job-retry-delay", "30s"),
                        Map.entry("worker.vacuum", "true"));
    }

    @Test
    void theDefaultsAreThoseOfTheEngine() {
        WorkerProperties properties = Binder.get(new MockEnvironment()).bindOrCreate("worker", WorkerProperties.class);

        assertThat(properties.workerSettings())
                .isEqualTo(WorkerSettings.builder().build());
        assertThat(properties.workerSchema()).isEqualTo(WorkerSchema.DEFAULT);
        assertThat(properties.schema().mode()).isEqualTo(SchemaMode.MIGRATE);
        assertThat(properties.enabled()).isTrue();
    }

    @Test
    void passwordsAreNotPrinted() {
        WorkerProperties properties = Binder.get(new MockEnvironment()
                        .withProperty("worker.schema.password", "secret")
                        .withProperty("worker.listen.password", "secret"))
                .bindOrCreate("worker", WorkerProperties.class);

        assertThat(properties.toString()).doesNotContain("secret");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
                    worker.concurrency | 0 | between 1 and 10000
                    worker.concurrency | 10001 | between 1 and 10000
                    worker.concurrency | many | java.lang.Integer
                    worker.local-queue.size | -1 | between 0 and 10000
                    worker.local-queue.size | 10001 | between 0 and 10000
                    worker.local-queue.ttl | 0s | at least 1 ms
                    worker.queue-run-limit | 0 | between 1 and 1000
                    worker.queue-run-limit | 1001 | between 1 and 1000
                    worker.crontab | 60 * * * * a | minute must be 0 to 59
                    worker.crontab-file | classpath:none.txt | cannot be read
                    worker.crontab-zone | Berlin | java.time.ZoneId
                    worker.poll-interval | 0s | at least 1 ms
                    worker.poll-interval | often | java.time.Duration
                    worker.shutdown.grace-period | -1s | between 0 and 365 days
                    worker.shutdown.interrupted-job-retry-delay | 400d | between 0 and 365 days
                    worker.recovery.heartbeat-interval | 0s | between 1 ms and 30 minutes
                    worker.recovery.heartbeat-interval | 31m | between 1 ms and 30 minutes
                    worker.recovery.sweep-interval | 25h | between 1 ms and 1 days
                    worker.recovery.sweep-threshold | 59s | at least twice the heartbeatInterval of PT30S
                    worker.recovery.sweep-threshold | 31d | between 1 ms and 30 days
                    worker.recovery.peer-threshold | 0s | between 1 ms and 30 days
                    worker.recovery.peer-threshold | 31d | between 1 ms and 30 days
                    worker.recovery.recovery-delay | -1s | between 0 ms and 365 days
                    worker.recovery.resilient-sweep-threshold-multiplier | 0 | between 1 and 1000
                    worker.recovery.resilient-job-flags | a,,b | must not be empty
                    worker.recovery.max-recoveries | 1001 | between 0 and 1000
                    worker.schema.name | Jobs | only lower-case letters, digits and underscores
                    worker.schema.mode | update | MIGRATE
                    worker.schema.peer-indexes | maybe | NEVER
                    worker.schema.url | postgres://db | jdbc:postgresql://host:5432/database
                    """)
    void aBadValueStopsTheStartWithThePropertyNamed(String property, String value, String allowed) {
        db.runner()
                .withBean(Greetings.class)
                .withPropertyValues(property + "=" + value)
                .run(context -> {
                    assertThat(context).hasFailed();
                    FailureAnalysis analysis = FailureAnalyses.of(context.getStartupFailure());
                    assertThat(analysis.getDescription()).contains(property);
                    assertThat(analysis.getDescription() + analysis.getAction()).contains(allowed);
                });
    }
}
