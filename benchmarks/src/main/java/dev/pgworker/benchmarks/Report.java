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

/** The figures of a scenario: for each contender and column one value a run, shown as median and range. */
final class Report {

    private final String title;
    private final Map<String, Map<String, List<Double>>> figures = new LinkedHashMap<>();
    private final List<String> notes = new ArrayList<>();
    private boolean failed;

    Report(String title) {
        this.title = title;
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

    private double[] values(String contender, String column) {
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
        Set<String> columns = new LinkedHashSet<>();
        figures.values().forEach(row -> columns.addAll(row.keySet()));
        StringBuilder text = new StringBuilder("### " + title + "\n\n| |");
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

    private static String number(double value) {
        if (value >= 100) {
            return String.format(Locale.ROOT, "%,.0f", value);
        }
        return String.format(Locale.ROOT, value >= 10 ? "%.1f" : value >= 0.1 ? "%.2f" : "%.4f", value);
    }

    /** Returns what goes into the JSON file: the values of all runs. */
    Map<String, Object> json() {
        return Map.of("title", title, "figures", figures, "notes", notes);
    }
}
