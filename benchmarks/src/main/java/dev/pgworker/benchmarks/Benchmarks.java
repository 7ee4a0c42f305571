package dev.pgworker.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeSet;

import tools.jackson.databind.json.JsonMapper;

import static java.util.Map.entry;

/**
 * Runs a scenario: {@code java -jar benchmarks.jar SCENARIO --option value ...}, or writes the results of all into the guide:
 * {@code java -jar benchmarks.jar report}.
 */
public final class Benchmarks {

    private static final Map<String, Scenario> SCENARIOS = Map.ofEntries(
            entry("drain", new Drain()),
            entry("enqueue", new Enqueue()),
            entry("latency", new Latency()),
            entry("growth", new Growth()),
            entry("queues", new Queues()),
            entry("one-queue", new OneQueue()),
            entry("scale-out", new ScaleOut()),
            entry("memory", new Memory()),
            entry("start-up", new StartUp()),
            entry("soak", new Soak(false)),
            entry("held-snapshot", new Soak(true)));

    private Benchmarks() {}

    /** Prints a table of the figures and writes all values to a file. */
    public static void main(String[] arguments) throws Exception {
        try {
            List<String> words = Arrays.asList(arguments);
            if (!words.isEmpty() && words.get(0).equals("report")) {
                report(words.subList(1, words.size()));
                return;
            }
            if (words.isEmpty() || !SCENARIOS.containsKey(words.get(0))) {
                throw new IllegalArgumentException(
                        "the first argument must be report or one of " + new TreeSet<>(SCENARIOS.keySet()));
            }
            Report report = run(words.get(0), Options.parse(words.subList(1, words.size())));
            System.exit(report.failed() ? 1 : 0);
        } catch (IllegalArgumentException e) {
            System.err.println(e.getMessage());
            System.exit(2);
        }
    }

    private static void report(List<String> words) throws IOException {
        Map<String, String> given = new LinkedHashMap<>(
                Map.of("--json-dir", Path.of("benchmarks", "results").toString(), "--docs", "docs"));
        for (int i = 0; i < words.size(); i += 2) {
            if (i + 1 == words.size() || given.put(words.get(i), words.get(i + 1)) == null) {
                throw new IllegalArgumentException("report takes --json-dir DIRECTORY and --docs DIRECTORY");
            }
        }
        Path docs = Path.of(String.valueOf(given.get("--docs")));
        System.out.println("Written to " + docs + ": "
                + String.join(", ", Pages.write(Path.of(String.valueOf(given.get("--json-dir"))), docs)));
    }

    /** Runs the named scenario and returns its figures. */
    static Report run(String name, Options options) throws Exception {
        Scenario scenario = Objects.requireNonNull(SCENARIOS.get(name));
        Report report = new Report(scenario.title(options));
        List<Contender> contenders = contenders(scenario, options, report);
        try (Server server = Server.open(options.jdbcUrl())) {
            report.note(server.description() + "; " + options.runs() + " runs, median (lowest–highest).");
            for (int run = 1; run <= options.runs(); run++) {
                for (Contender contender : contenders) {
                    System.err.println("run " + run + ": " + contender.name());
                    run(scenario, contender, options, server, report);
                }
            }
        }
        scenario.finish(report);
        System.out.println(report.markdown());
        write(report, options.json() == null ? Path.of("target", "benchmarks", name + ".json") : options.json());
        return report;
    }

    /** A run that fails costs its own values, not those of hours before it. */
    private static void run(Scenario scenario, Contender contender, Options options, Server server, Report report)
            throws InterruptedException {
        try {
            scenario.run(contender, options, server, report);
        } catch (InterruptedException e) {
            throw e;
        } catch (Exception e) {
            e.printStackTrace();
            report.fail(contender.name(), e);
        }
    }

    private static List<Contender> contenders(Scenario scenario, Options options, Report report) {
        List<Contender> wanted = options.contenders().isEmpty()
                ? Contenders.ALL.stream()
                        .filter(contender -> scenario.suits(contender)
                                && (scenario instanceof Drain || !Contenders.keepsHistory(contender)))
                        .toList()
                : options.contenders().stream().map(Contenders::named).toList();
        List<Contender> present = new ArrayList<>();
        for (Contender contender : wanted) {
            String missing = scenario.suits(contender) ? contender.missing(options) : "not in this scenario";
            if (missing == null) {
                present.add(contender);
            } else {
                report.note("Skipped " + contender.name() + ": " + missing + ".");
            }
        }
        return present;
    }

    private static void write(Report report, Path file) throws IOException {
        Files.createDirectories(Objects.requireNonNull(file.toAbsolutePath().getParent()));
        Map<String, Object> json = report.json();
        Files.writeString(
                file, new JsonMapper().writerWithDefaultPrettyPrinter().writeValueAsString(json));
        System.err.println("All values: " + file);
    }
}
