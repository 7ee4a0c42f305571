package dev.pgworker.autoconfigure.metrics;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

import io.micrometer.core.instrument.Meter;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.MetricsAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.export.prometheus.PrometheusMetricsExportAutoConfiguration;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.autoconfigure.testing.Greetings;
import dev.pgworker.autoconfigure.testing.RecordedEvents;
import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.Task;
import dev.pgworker.limit.Limit;

import static org.assertj.core.api.Assertions.assertThat;

/** Dashboard and guide name exactly the metrics that a scrape has. */
class DashboardTest {

    private static final Pattern METRIC = Pattern.compile("\\bpgworker_[a-z_]+");
    private static final Pattern SAMPLE = Pattern.compile("^(pgworker_[a-z_]+)", Pattern.MULTILINE);
    private static final Pattern METER =
            Pattern.compile("^\\| `(pgworker\\.[a-z.]+)`, (timer|counter|gauge)", Pattern.MULTILINE);

    @RegisterExtension
    final TestDatabase db = new TestDatabase().installed();

    @Test
    void nameMetricsThatExist() {
        RecordedEvents events = new RecordedEvents();
        db.runner()
                .withConfiguration(AutoConfigurations.of(
                        WorkerMetricsAutoConfiguration.class,
                        MetricsAutoConfiguration.class,
                        PrometheusMetricsExportAutoConfiguration.class,
                        CompositeMeterRegistryAutoConfiguration.class))
                .withBean(Greetings.class)
                .withPropertyValues("pgworker.metrics.interval=1s")
                .withBean(RecordedEvents.class, () -> events)
                .withBean(Limit.class, () -> Limit.concurrency("greetings", 2, "hello"))
                .run(context -> {
                    context.getBean(JobScheduler.class)
                            .addJob(Task.of("hello", Greetings.Greeting.class), new Greetings.Greeting("Ada"));
                    events.await(JobCompleted.class);
                    PrometheusMeterRegistry registry = context.getBean(PrometheusMeterRegistry.class);
                    Awaitility.await().until(() -> !registry.scrape().contains("pgworker_backlog_age_seconds NaN"));
                    Awaitility.await().until(() -> registry.scrape().contains("pgworker_limit_used"));

                    Set<String> scraped = names(SAMPLE, registry.scrape());
                    assertThat(names(METRIC, dashboardQueries())).isNotEmpty().isSubsetOf(scraped);
                    String guide = read("docs/metrics.md");
                    assertThat(names(METRIC, guide)).isNotEmpty().isSubsetOf(scraped);
                    assertThat(METER.matcher(guide)
                                    .results()
                                    .map(match -> match.group(1) + " " + match.group(2))
                                    .collect(Collectors.toSet()))
                            .isEqualTo(registry.getMeters().stream()
                                    .map(Meter::getId)
                                    .filter(id -> id.getName().startsWith("pgworker."))
                                    .map(id -> id.getName() + " "
                                            + id.getType().name().toLowerCase(java.util.Locale.ROOT))
                                    .collect(Collectors.toSet()));
                });
    }

    private static String dashboardQueries() {
        JsonNode dashboard = new JsonMapper().readTree(read("docs/grafana-dashboard.json"));
        StringBuilder queries = new StringBuilder();
        for (JsonNode panel : dashboard.path("panels")) {
            assertThat(panel.path("targets")).as(panel.path("title").asString()).isNotEmpty();
            for (JsonNode target : panel.path("targets")) {
                queries.append(target.path("expr").asString()).append('\n');
            }
        }
        for (JsonNode variable : dashboard.path("templating").path("list")) {
            queries.append(variable.path("query").asString()).append('\n');
        }
        return queries.toString();
    }

    private static Set<String> names(Pattern pattern, String text) {
        return pattern.matcher(text).results().map(MatchResult::group).collect(Collectors.toCollection(TreeSet::new));
    }

    private static String read(String file) {
        Path directory = Path.of("").toAbsolutePath();
        while (!Files.exists(directory.resolve("CONTRIBUTING.md"))) {
            directory = Objects.requireNonNull(directory.getParent());
        }
        try {
            return Files.readString(directory.resolve(file));
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }
}
