package dev.pgworker.autoconfigure;

import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.RecordComponent;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;

import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.convert.DurationStyle;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.mock.env.MockEnvironment;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.WorkerSettings;
import dev.pgworker.autoconfigure.testing.FailureAnalyses;
import dev.pgworker.autoconfigure.testing.Greetings;
import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.schema.PeerIndexes;
import dev.pgworker.schema.SchemaMode;
import dev.pgworker.schema.WorkerSchema;

import static org.assertj.core.api.Assertions.assertThat;

class WorkerPropertiesTest {

    @RegisterExtension
    final TestDatabase db = new TestDatabase();

    @Test
    void everyPropertyHasADescription() throws IOException {
        for (JsonNode property : metadata()) {
            assertThat(property.path("description").asString())
                    .as("description of " + property.path("name").asString())
                    .endsWith(".");
        }
    }

    private static JsonNode metadata() throws IOException {
        try (InputStream metadata =
                WorkerPropertiesTest.class.getResourceAsStream("/META-INF/spring-configuration-metadata.json")) {
            return new JsonMapper().readTree(metadata).path("properties");
        }
    }

    @Test
    void theHealthCheckAndTheChoicesAreOfferedByEditors() throws IOException {
        try (InputStream metadata =
                WorkerPropertiesTest.class.getResourceAsStream("/META-INF/spring-configuration-metadata.json")) {
            JsonNode all = new JsonMapper().readTree(metadata);
            assertThat(all.path("properties").findValuesAsString("name"))
                    .contains("management.health.pgworker.enabled", "pgworker.listen.enabled");
            Map<String, List<String>> values = new TreeMap<>();
            all.path("hints")
                    .forEach(hint -> values.put(
                            hint.path("name").asString(), hint.path("values").findValuesAsString("value")));
            assertThat(values.get("pgworker.schema.mode"))
                    .isEqualTo(Arrays.stream(SchemaMode.values())
                            .map(mode -> mode.name().toLowerCase(Locale.ROOT))
                            .toList());
            assertThat(values.get("pgworker.schema.peer-indexes"))
                    .containsExactlyInAnyOrderElementsOf(Arrays.stream(PeerIndexes.values())
                            .map(choice -> choice.name().toLowerCase(Locale.ROOT))
                            .toList());
        }
    }

    /** Sets each property to something else than its default and looks what becomes of it. */
    @Test
    void everySettingOfTheEngineHasAProperty() throws IOException {
        Map<String, Object> defaults = settings(new MockEnvironment());
        Set<String> changed = new TreeSet<>();
        for (JsonNode property : metadata()) {
            String name = property.path("name").asString();
            String other = otherThanDefault(property);
            if (name.startsWith("pgworker.") && other != null) {
                Map<String, Object> settings = settings(new MockEnvironment().withProperty(name, other));
                settings.keySet().removeIf(setting -> settings.get(setting).equals(defaults.get(setting)));
                assertThat(settings).as(name).hasSizeLessThanOrEqualTo(1);
                changed.addAll(settings.keySet());
            }
        }
        assertThat(changed).isEqualTo(defaults.keySet());
    }

    private static @Nullable String otherThanDefault(JsonNode property) {
        JsonNode value = property.path("defaultValue");
        return switch (property.path("type").asString()) {
            case "java.lang.Boolean" -> String.valueOf(!value.asBoolean());
            case "java.lang.Integer" -> String.valueOf(value.asInt(9_998) + 1);
            case "java.lang.Long" -> String.valueOf(value.asLong() + 1);
            case "org.springframework.util.unit.DataSize" -> "1KB";
            case "java.time.Duration" ->
                DurationStyle.detectAndParse(value.asString()).plusSeconds(1).toString();
            case "java.util.List<java.lang.String>" -> "other";
            case "java.time.ZoneId" -> "Europe/Berlin";
            case "java.util.Set<dev.pgworker.job.CleanupTask>" -> "gc-task-identifiers";
            case "java.lang.String" ->
                property.path("name").asString().equals("pgworker.cleanup.schedule") ? "@daily" : null;
            default -> null;
        };
    }

    private static Map<String, Object> settings(MockEnvironment environment) {
        WorkerSettings settings = bind(environment).workerSettings("pgworker");
        Map<String, Object> values = new TreeMap<>(components(settings));
        values.remove("recovery");
        values.putAll(components(settings.recovery()));
        values.remove("history");
        components(settings.history()).forEach((name, value) -> values.put("history." + name, value));
        values.remove("cleanup");
        components(settings.cleanup()).forEach((name, value) -> values.put("cleanup." + name, value));
        return values;
    }

    private static Map<String, Object> components(Record values) {
        return Arrays.stream(values.getClass().getRecordComponents())
                .collect(Collectors.toMap(RecordComponent::getName, component -> {
                    try {
                        Object value = component.getAccessor().invoke(values);
                        return value == null ? "unset" : value;
                    } catch (ReflectiveOperationException e) {
                        throw new IllegalStateException(e);
                    }
                }));
    }

    private static WorkerProperties bind(MockEnvironment environment) {
        return Binder.get(environment).bindOrCreate("pgworker", WorkerProperties.class);
    }

    @Test
    void theDefaultsAreThoseOfTheEngine() {
        WorkerProperties properties = bind(new MockEnvironment());

        assertThat(properties.workerSettings("pgworker"))
                .isEqualTo(WorkerSettings.builder().build());
        assertThat(properties.workerSchema("pgworker")).isEqualTo(WorkerSchema.DEFAULT);
        assertThat(properties.schema().mode()).isEqualTo(SchemaMode.MIGRATE);
        assertThat(properties.enabled()).isTrue();
    }

    @Test
    void passwordsAreNotPrinted() {
        WorkerProperties properties = bind(new MockEnvironment()
                .withProperty("pgworker.schema.password", "secret")
                .withProperty("pgworker.listen.password", "secret"));

        assertThat(properties.toString()).doesNotContain("secret");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
                    pgworker.concurrency | 0 | between 1 and 10000
                    pgworker.concurrency | 10001 | between 1 and 10000
                    pgworker.concurrency | many | java.lang.Integer
                    pgworker.local-queue.size | -1 | between 0 and 10000
                    pgworker.local-queue.size | 10001 | between 0 and 10000
                    pgworker.local-queue.ttl | 0s | at least 1 ms
                    pgworker.queue-run-limit | 0 | between 1 and 1000
                    pgworker.queue-run-limit | 1001 | between 1 and 1000
                    pgworker.crontab | 60 * * * * a | minute must be 0 to 59
                    pgworker.crontab-file | classpath:none.txt | cannot be read
                    pgworker.crontab-zone | Berlin | java.time.ZoneId
                    pgworker.poll-interval | 0s | at least 1 ms
                    pgworker.poll-interval | often | java.time.Duration
                    pgworker.shutdown.grace-period | -1s | between 0 and 365 days
                    pgworker.shutdown.interrupted-job-retry-delay | 400d | between 0 and 365 days
                    pgworker.recovery.heartbeat-interval | 0s | between 1 ms and 30 minutes
                    pgworker.recovery.heartbeat-interval | 31m | between 1 ms and 30 minutes
                    pgworker.recovery.sweep-interval | 25h | between 1 ms and 1 days
                    pgworker.recovery.sweep-threshold | 59s | at least twice the heartbeatInterval of PT30S
                    pgworker.recovery.sweep-threshold | 31d | between 1 ms and 30 days
                    pgworker.recovery.peer-threshold | 0s | between 1 ms and 30 days
                    pgworker.recovery.peer-threshold | 31d | between 1 ms and 30 days
                    pgworker.recovery.recovery-delay | -1s | between 0 ms and 365 days
                    pgworker.recovery.resilient-sweep-threshold-multiplier | 0 | between 1 and 1000
                    pgworker.recovery.resilient-job-flags | a,,b | must not be empty
                    pgworker.recovery.max-recoveries | 1001 | between 0 and 1000
                    pgworker.history.keep-for | 59s | between 1 minute and 3650 days
                    pgworker.history.keep-for | 3651d | between 1 minute and 3650 days
                    pgworker.history.keep-most | 999 | between 1000 and 10000000000
                    pgworker.history.keep-most | 10000000001 | between 1000 and 10000000000
                    pgworker.history.max-result-size | -1B | between 0 and 16777216
                    pgworker.history.max-result-size | 17MB | between 0 and 16777216
                    pgworker.history.enabled | maybe | java.lang.Boolean
                    pgworker.cleanup.schedule | 0 3 * * * | six fields
                    pgworker.cleanup.schedule | 0 0 3 31 2 * | due sometimes
                    pgworker.cleanup.schedule | never | six fields
                    pgworker.cleanup.failed-jobs-older-than | 3651d | between 0 and 3650 days
                    pgworker.cleanup.failed-jobs-older-than | -1s | between 0 and 3650 days
                    pgworker.cleanup.tasks | everything | CleanupTask
                    pgworker.cancel.interrupt-after | -1s | between 0 and 365 days
                    pgworker.cancel.abandon-after | 366d | between 0 and 365 days
                    pgworker.steps.max-result-size | 65MB | between 1 and 67108864
                    pgworker.steps.keep-signals | 0s | between 1 second and 3650 days
                    pgworker.schema.name | Jobs | only lower-case letters, digits and underscores
                    pgworker.schema.mode | update | MIGRATE
                    pgworker.schema.peer-indexes | maybe | NEVER
                    pgworker.schema.url | postgres://db | jdbc:postgresql://host:5432/database
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
