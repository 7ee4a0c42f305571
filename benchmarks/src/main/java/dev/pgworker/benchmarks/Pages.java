package dev.pgworker.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

import org.jspecify.annotations.Nullable;
import tools.jackson.databind.json.JsonMapper;

/**
 * Writes the results into the guide, between {@code <!-- results -->} and {@code <!-- /results -->} in performance.md: for each
 * question of which there is a {@code SCENARIO.json} a table, and a plot in plots/SCENARIO.svg.
 */
final class Pages {

    private static final String PAGE = "performance.md";
    private static final String BEGIN = "<!-- results -->";
    private static final String END = "<!-- /results -->";

    /**
     * One table of the page.
     *
     * @param scenario what has measured it
     * @param heading the question that it answers
     */
    private record Question(String scenario, String heading) {}

    /** In the order of the page. */
    private static final List<Question> QUESTIONS = List.of(
            new Question("drain", "How fast do ready jobs run?"),
            new Question("enqueue", "How fast are jobs added?"),
            new Question("latency", "How soon does a new job start?"),
            new Question("growth", "Does a large table slow workers down?"),
            new Question("queues", "What do named queues cost?"),
            new Question("one-queue", "How fast is one serial queue?"),
            new Question("scale-out", "What do more worker processes bring?"),
            new Question("start-up", "How soon does a new process work, and what does an idle one cost?"),
            new Question("memory", "How much memory does a worker need?"),
            new Question("soak", "Does a constant load stay stable?"),
            new Question("held-snapshot", "What does a long transaction cost?"));

    private static final List<String> PHASES = List.of("before", "held", "after");

    private Pages() {}

    /**
     * Writes what the JSON files hold. A question without a file leaves the page.
     *
     * @param results the directory of the JSON files; other files in it are left out
     * @param docs the directory of performance.md
     * @return the scenarios that were written
     * @throws IllegalArgumentException if there is nothing to write, or the page is damaged; the message says where
     */
    static List<String> write(Path results, Path docs) throws IOException {
        Path page = docs.resolve(PAGE);
        if (!Files.isDirectory(results) || !Files.isRegularFile(page)) {
            throw new IllegalArgumentException(
                    Files.isDirectory(results) ? "no " + PAGE + " in " + docs : "no directory " + results);
        }
        String text = Files.readString(page);
        int from = text.indexOf(BEGIN) + BEGIN.length();
        int to = text.indexOf(END);
        if (from < BEGIN.length() || to < from) {
            throw new IllegalArgumentException(page + " must have " + BEGIN + " and after it " + END);
        }
        StringBuilder sections = new StringBuilder();
        List<String> written = new ArrayList<>();
        for (Question question : QUESTIONS) {
            Path file = results.resolve(question.scenario() + ".json");
            if (Files.isRegularFile(file)) {
                sections.append(
                        section(question, Report.read(new JsonMapper().readTree(Files.readString(file))), docs));
                written.add(question.scenario());
            }
        }
        if (written.isEmpty()) {
            throw new IllegalArgumentException("no results in " + results + ", such as drain.json");
        }
        Files.writeString(page, text.substring(0, from) + "\n\n" + sections + text.substring(to));
        return written;
    }

    private static String section(Question question, Report report, Path docs) throws IOException {
        String scenario = question.scenario();
        Report shown = scenario.equals("held-snapshot") ? byPhase(report) : report;
        String section =
                "### " + question.heading() + "\n\n" + sentence(report.title()) + "\n\n" + shown.table() + "\n";
        String plot = plot(scenario, report);
        if (plot != null) {
            Path file = docs.resolve("plots").resolve(scenario + ".svg");
            Files.createDirectories(docs.resolve("plots"));
            Files.writeString(file, plot);
            section += "![" + report.title() + "](plots/" + scenario + ".svg)\n\n";
        }
        return section;
    }

    /** Returns the title without the scenario's name before it. */
    private static String sentence(String title) {
        String rest = title.replaceFirst("^[a-z -]+: ", "");
        return rest.isEmpty() ? "" : Character.toUpperCase(rest.charAt(0)) + rest.substring(1) + ".";
    }

    /** Makes rows of the phases, which are columns otherwise. */
    private static Report byPhase(Report report) {
        Report rows = new Report(report.title());
        for (String contender : report.contenders()) {
            for (String phase : PHASES) {
                for (String column : report.columns()) {
                    if (column.startsWith(phase + " ")) {
                        for (double value : report.values(contender, column)) {
                            rows.add(contender + ", " + phase, column.substring(phase.length() + 1), value);
                        }
                    }
                }
            }
        }
        report.notes().forEach(rows::note);
        return rows;
    }

    private static @Nullable String plot(String scenario, Report report) {
        return switch (scenario) {
            case "drain" -> Plot.bars("drain, jobs/s", bars(report, "jobs/s"));
            case "enqueue" -> Plot.bars("enqueue in bulk, jobs/s", bars(report, "in bulk, jobs/s"));
            case "latency" -> Plot.ranges("wait from p50 to p99, ms", waits(report));
            case "soak" ->
                Plot.lines(report.title() + ": wait, ms", lines(report, List.of("")), Soak.LINE_SECONDS, 0, 0, "");
            case "held-snapshot" -> {
                List<String> prefixes =
                        PHASES.stream().map(phase -> phase + " ").toList();
                int before = steps(report, "before wait p50 ms");
                yield Plot.lines(
                        "held-snapshot: wait, ms",
                        lines(report, prefixes),
                        Soak.LINE_SECONDS,
                        before,
                        before + steps(report, "held wait p50 ms"),
                        "snapshot held");
            }
            default -> null;
        };
    }

    private static int steps(Report report, String column) {
        return report.contenders().stream()
                .mapToInt(contender -> report.values(contender, column).length)
                .max()
                .orElse(0);
    }

    private static List<Plot.Row> bars(Report report, String column) {
        List<Plot.Row> rows = new ArrayList<>();
        for (String contender : report.contenders()) {
            double[] values = report.values(contender, column);
            if (values.length > 0) {
                rows.add(new Plot.Row(
                        contender,
                        Report.percentile(values, 0),
                        Report.median(values),
                        Report.percentile(values, 100),
                        own(contender)));
            }
        }
        return rows;
    }

    private static List<Plot.Row> waits(Report report) {
        List<Plot.Row> rows = new ArrayList<>();
        for (String load : List.of("idle", "half busy", "3000/s")) {
            for (String contender : report.contenders()) {
                double p50 = Report.median(report.values(contender, load + " p50"));
                double p99 = Report.median(report.values(contender, load + " p99"));
                if (!Double.isNaN(p50)) {
                    rows.add(new Plot.Row(contender + ", " + load, p50, p50, p99, own(contender)));
                }
            }
        }
        return rows;
    }

    private static List<Plot.Series> lines(Report report, List<String> prefixes) {
        List<Plot.Series> lines = new ArrayList<>();
        int colour = 0;
        for (String contender : report.contenders()) {
            for (String percentile : List.of("p50", "p99")) {
                List<Double> values = new ArrayList<>();
                for (String prefix : prefixes) {
                    for (double value : report.values(contender, prefix + "wait " + percentile + " ms")) {
                        values.add(value);
                    }
                }
                lines.add(new Plot.Series(contender + " " + percentile, values, colour, percentile.equals("p99")));
            }
            colour++;
        }
        return lines;
    }

    private static boolean own(String contender) {
        return contender.equals("ours") || contender.startsWith("ours-");
    }
}
