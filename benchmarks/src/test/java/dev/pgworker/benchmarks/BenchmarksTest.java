package dev.pgworker.benchmarks;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

/** The runner works: it is no judgement of any figure. */
class BenchmarksTest {

    @TempDir
    Path directory;

    @Test
    void aDrainHasAFigureOfEveryContenderRunAndColumn() throws Exception {
        Path json = directory.resolve("drain.json");
        Report report = Benchmarks.run(
                "drain",
                Options.parse(List.of(
                        "--jobs", "500",
                        "--runs", "2",
                        "--warm-up", "0",
                        "--contenders", "ours,bare,node",
                        "--json", json.toString(),
                        "--jdbc-url", TestPostgres.jdbcUrl())));

        assertThat(report.failed()).isFalse();
        assertThat(report.markdown())
                .contains("| ours |", "| bare |", "fsync")
                .contains("Skipped node: no --node-dir.");
        JsonNode figures = new JsonMapper().readTree(Files.readString(json)).get("figures");
        assertThat(figures.propertyNames()).containsExactly("ours", "bare");
        for (JsonNode contender : figures) {
            assertThat(contender.propertyNames()).contains("jobs", "jobs/s", "worker CPU s per 1,000");
            assertThat(contender.get("jobs").get(0).asInt()).isEqualTo(500);
            assertThat(contender.get("jobs/s"))
                    .hasSize(2)
                    .allSatisfy(rate -> assertThat(rate.asDouble()).isPositive());
        }
    }

    @Test
    void wrongArgumentsAreNamed() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Options.parse(List.of("--jobs", "0")))
                .withMessageContaining("--jobs")
                .withMessageContaining("at least 1");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Options.parse(List.of("--jobs")))
                .withMessageContaining("--jobs needs a value");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Options.parse(List.of("--job", "1")))
                .withMessageContaining("--job,")
                .withMessageContaining("--jobs");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Contenders.named("them"))
                .withMessageContaining("them")
                .withMessageContaining("ours-tuned");
    }
}
