package dev.pgworker.benchmarks;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

import org.junit.jupiter.api.Tag;
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
    @Tag("thorough")
    void aDrainHasAFigureOfEveryContenderRunAndColumn() throws Exception {
        Path json = directory.resolve("drain.json");
        Report report = Benchmarks.run(
                "drain",
                Options.parse(List.of(
                        "--jobs", "500",
                        "--runs", "2",
                        "--warm-up", "0",
                        "--contenders", "ours,bare,peer-loop,held-loop,node,rust,river",
                        "--json", json.toString(),
                        "--jdbc-url", TestPostgres.jdbcUrl())));

        assertThat(report.failed()).isFalse();
        assertThat(report.markdown())
                .contains("| ours |", "| bare |", "fsync")
                .contains(
                        "Skipped node: no --node-dir.",
                        "Skipped rust: no --rust-dir.",
                        "Skipped river: no --river-dir.");
        JsonNode figures = new JsonMapper().readTree(Files.readString(json)).get("figures");
        assertThat(figures.propertyNames()).containsExactly("ours", "bare", "peer-loop", "held-loop");
        for (JsonNode contender : figures) {
            assertThat(contender.propertyNames())
                    .contains("jobs", "jobs/s", "worker CPU s per 1,000", "WAL bytes per job");
            assertThat(contender.get("jobs").get(0).asInt()).isEqualTo(500);
            assertThat(contender.get("jobs/s"))
                    .hasSize(2)
                    .allSatisfy(rate -> assertThat(rate.asDouble()).isPositive());
        }
    }

    @Test
    @Tag("thorough")
    void scaleOutMemoryAndStartUpHaveTheirFigures() throws Exception {
        Path json = directory.resolve("results.json");
        List<String> options = List.of(
                "--jobs", "500",
                "--runs", "1",
                "--warm-up", "0",
                "--idle", "1",
                "--contenders", "ours",
                "--json", json.toString(),
                "--jdbc-url", TestPostgres.jdbcUrl());

        Report scaled = Benchmarks.run("scale-out", Options.parse(options));
        Report small = Benchmarks.run("memory", Options.parse(options));
        Report started = Benchmarks.run("start-up", Options.parse(options));

        assertThat(scaled.failed()).isFalse();
        assertThat(scaled.columns()).contains("1, jobs/s", "8 of best");
        assertThat(small.failed()).isFalse();
        assertThat(small.values("ours", "ratio")).hasSize(1);
        assertThat(started.failed()).isFalse();
        assertThat(started.columns())
                .contains(
                        "first job, s",
                        "first drain, jobs/s",
                        "warm, jobs/s",
                        "idle, % of a core",
                        "idle, transactions/s");
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
