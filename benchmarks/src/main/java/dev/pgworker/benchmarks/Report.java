package dev.pgworker.benchmarks;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/** The figures of a scenario: for each contender and column one value a run, shown as median and range. */
final class Report {

    private final String title;
    private final Map<String, Map<String, List<Double>>> figures = new LinkedHashMap<>();
    private final List<String> notes = new ArrayList<>();
    private boolean failed;

    Report(String title) {
        this.title = title;
    }

    /** Reads what {@link #json} has written. */
    static Report read(JsonNode json) {
        Report report = new Report(json.path("title").asString());
        json.path("figures")
                .forEachEntry((contender, row) -> row.forEachEntry(
                        (column, values) -> values.forEach(value -> report.add(contender, column, value.asDouble()))));
        json.path("notes").forEach(note -> report.note(note.asString()));
        return report;
    }

    String title() {
        return title;
    }

    List<String> contenders() {
        return List.copyOf(figures.keySet());
    }

    /** Returns the names of all columns, in the order in which they came. */
    List<String> columns() {
        Set<String> columns = new LinkedHashSet<>();
        figures.values().forEach(row -> columns.addAll(row.keySet()));
        return List.copyOf(columns);
    }

    List<String> notes() {
        return List.copyOf(notes);
    }

    /** Notes the value of a run; one that is not a number is left out. */
    void add(String contender, String column, double value) {
        List<Double> values = figures.computeIfAbsent(contender, name -> new LinkedHashMap<>())
                .computeIfAbsent(column, name -> new ArrayList<>());
        if (!Double.isNaN(value)) {
            values.add(value);
        }
    }

    /** Adds a line below the table. */
    void note(String line) {
        if (!notes.contains(line)) {
            notes.add(line);
        }
    }

    /** Notes that a run has no values. */
    void fail(String contender, Exception reason) {
        failed = true;
        note("A run of " + contender + " failed: " + reason);
    }

    boolean failed() {
        return failed;
    }

    /** Adds a column that holds the median of another one as a multiple of a contender's. */
    void compare(String column, String contender) {
        double reference = median(values(contender, column));
        if (!Double.isNaN(reference)) {
            figures.keySet().forEach(name -> add(name, "of " + contender, median(values(name, column)) / reference));
        }
    }

    /** Returns the values of all runs; none if there is no such contender or column. */
    double[] values(String contender, String column) {
        @Nullable Map<String, List<Double>> row = figures.get(contender);
        return row == null
                ? new double[0]
                : row.getOrDefault(column, List.of()).stream()
                        .mapToDouble(Double::doubleValue)
                        .toArray();
    }

    /** Returns the middle of some values, the upper one of two, or NaN if there are none. */
    static double median(double... values) {
        return percentile(values, 50);
    }

    /** Returns the value that so many percent do not exceed, or NaN if there are none. */
    static double percentile(double[] values, int percent) {
        if (values.length == 0) {
            return Double.NaN;
        }
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        return sorted[Math.min(sorted.length - 1, sorted.length * percent / 100)];
    }

    String markdown() {
        return "### " + title + "\n\n" + table();
    }

    /** Returns the table and the notes below it. */
    String table() {
        List<String> columns = columns();
        StringBuilder text = new StringBuilder("| Contender |");
        columns.forEach(column -> text.append(" ").append(column).append(" |"));
        text.append("\n|---|").append("---:|".repeat(columns.size()));
        figures.keySet().forEach(contender -> {
            text.append("\n| ").append(contender).append(" |");
            columns.forEach(column ->
                    text.append(" ").append(cell(values(contender, column))).append(" |"));
        });
        text.append("\n");
        notes.forEach(note -> text.append("\n").append(note).append("\n"));
        return text.toString();
    }

    private static String cell(double[] values) {
        if (values.length == 0) {
            return "-";
        }
        String median = number(median(values));
        if (values.length == 1) {
            return median;
        }
        return median + " (" + number(Arrays.stream(values).min().orElseThrow()) + "–"
                + number(Arrays.stream(values).max().orElseThrow()) + ")";
    }

    /** Returns a figure with as many digits as say something. */
    static String number(double value) {
        if (value >= 100) {
            return String.format(Locale.ROOT, "%,.0f", value);
        }
        return String.format(Locale.ROOT, value >= 10 ? "%.1f" : value >= 0.1 ? "%.2f" : "%.4f", value);
    }

    /** Returns a number as it stands at an axis. */
    static String tick(double value) {
        return value >= 1 && value == Math.rint(value)
                ? String.format(Locale.ROOT, "%,.0f", value)
                : String.valueOf(Math.round(value * 100) / 100.0).replaceFirst("\\.0$", "");
    }

    /** Returns what goes into the JSON file: the values of all runs. */
    Map<String, Object> json() {
        return Map.of("title", title, "figures", figures, "notes", notes);
    }
}
