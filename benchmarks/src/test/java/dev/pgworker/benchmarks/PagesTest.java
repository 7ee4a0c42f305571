package dev.pgworker.benchmarks;

import java.io.StringReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import javax.xml.parsers.DocumentBuilderFactory;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.w3c.dom.Document;
import org.xml.sax.InputSource;
import tools.jackson.databind.json.JsonMapper;

import static java.nio.file.StandardCopyOption.REPLACE_EXISTING;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

class PagesTest {

    @TempDir
    Path results;

    @TempDir
    Path docs;

    @BeforeEach
    void page() throws Exception {
        Files.writeString(docs.resolve("performance.md"), """
                # Performance
                <!-- results -->
                old
                <!-- /results -->
                end
                """);
    }

    private void results(String scenario, Report report) throws Exception {
        Files.writeString(results.resolve(scenario + ".json"), new JsonMapper().writeValueAsString(report.json()));
    }

    private static Document svg(Path file) throws Exception {
        return DocumentBuilderFactory.newDefaultInstance()
                .newDocumentBuilder()
                .parse(new InputSource(new StringReader(Files.readString(file))));
    }

    @Test
    void theTableReplacesWhatStandsBetweenTheMarks() throws Exception {
        Report drain = new Report("drain: 5 jobs & more");
        List.of(100.0, 300.0, 200.0).forEach(rate -> drain.add("ours", "jobs/s", rate));
        drain.add("river", "jobs/s", 50);
        drain.note("A note.");
        results("drain", drain);

        assertThat(Pages.write(results, docs)).containsExactly("drain");
        String once = Files.readString(docs.resolve("performance.md"));
        Pages.write(results, docs);

        assertThat(Files.readString(docs.resolve("performance.md"))).isEqualTo(once);
        assertThat(once)
                .startsWith(
                        "# Performance\n<!-- results -->\n\n### How fast do ready jobs run?\n\n5 jobs & more.\n\n| Con")
                .contains("| ours | 200 (100–300) |", "| river | 50.0 |", "A note.", "](plots/drain.svg)")
                .endsWith("<!-- /results -->\nend\n")
                .doesNotContain("old", "latency");
        Document plot = svg(docs.resolve("plots/drain.svg"));
        assertThat(plot.getElementsByTagName("rect").getLength()).isEqualTo(2);
        double own = width(plot, 0);
        assertThat(width(plot, 1)).isCloseTo(own / 4, within(0.1));
        assertThat(plot.getDocumentElement().getTextContent()).contains("prefers-color-scheme: dark");
    }

    private static double width(Document plot, int bar) {
        return Double.parseDouble(plot.getElementsByTagName("rect")
                .item(bar)
                .getAttributes()
                .getNamedItem("width")
                .getNodeValue());
    }

    @Test
    void phasesOfAHeldSnapshotAreRowsAndOneLine() throws Exception {
        Report held = new Report("held-snapshot");
        for (String phase : List.of("before", "held", "held", "after")) {
            held.add("ours", phase + " jobs/s", 3_000);
            held.add("ours", phase + " wait p50 ms", 2);
            held.add("ours", phase + " wait p99 ms", 20);
        }
        results("held-snapshot", held);

        Pages.write(results, docs);

        assertThat(Files.readString(docs.resolve("performance.md")))
                .contains("| Contender | jobs/s | wait p50 ms | wait p99 ms |", "| ours, held | 3,000 (3,000–3,000) |");
        Document plot = svg(docs.resolve("plots/held-snapshot.svg"));
        // Two in the legend, and two of four points each.
        assertThat(plot.getElementsByTagName("path").getLength()).isEqualTo(4);
        String p50 = plot.getElementsByTagName("path")
                .item(2)
                .getAttributes()
                .getNamedItem("d")
                .getNodeValue();
        assertThat(p50.split("L")).hasSize(4);
        assertThat(plot.getDocumentElement().getTextContent()).contains("snapshot held");
    }

    @Test
    void latenciesAreRangesOfThoseThatWereMeasured() throws Exception {
        Report latency = new Report("latency");
        latency.add("ours", "idle p50", 1.5);
        latency.add("ours", "idle p99", 4);
        results("latency", latency);

        Pages.write(results, docs);

        Document plot = svg(docs.resolve("plots/latency.svg"));
        assertThat(plot.getElementsByTagName("circle").getLength()).isEqualTo(2);
        assertThat(plot.getDocumentElement().getTextContent()).contains("ours, idle", "1.50 – 4.00");
    }

    /** {@code java -jar benchmarks.jar report} writes the page. */
    @Test
    void theGuideShowsTheKeptResultsAndNoOthers() throws Exception {
        Path guide = Path.of("../docs");
        Files.copy(guide.resolve("performance.md"), docs.resolve("performance.md"), REPLACE_EXISTING);

        Pages.write(Path.of("results"), docs);

        assertThat(guide.resolve("performance.md")).hasSameTextualContentAs(docs.resolve("performance.md"));
        for (String plot : List.of("drain.svg", "enqueue.svg", "latency.svg")) {
            assertThat(guide.resolve("plots").resolve(plot))
                    .hasSameTextualContentAs(docs.resolve("plots").resolve(plot));
        }
    }

    @Test
    void whatCannotBeWrittenIsNamed() throws Exception {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Pages.write(results, docs))
                .withMessageContaining("no results in");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Pages.write(results.resolve("none"), docs))
                .withMessageContaining("none");
        results("drain", new Report("drain"));
        Files.writeString(docs.resolve("performance.md"), "<!-- results -->");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Pages.write(results, docs))
                .withMessageContaining("must have <!-- results --> and after it <!-- /results -->");
    }
}
