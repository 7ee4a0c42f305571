package dev.pgworker.benchmarks;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;

/** Pictures as SVG, readable on a light and on a dark page. */
final class Plot {

    private static final int WIDTH = 760;
    private static final int LEFT = 170;
    private static final int RIGHT = 90;
    private static final int ROW = 26;
    private static final int TOP = 44;
    private static final int LINES_HEIGHT = 260;
    private static final List<String> COLOURS =
            List.of("#2f81d6", "#d9662b", "#1f9d6f", "#9a63d8", "#b58a1d", "#c8527f");

    private static final String STYLE = """
            <style>
            text { font: 13px system-ui, sans-serif; fill: #1f2328 }
            .title { font-weight: 600 }
            .faint { fill: #59636e; font-size: 12px }
            .axis { stroke: #8c959f; stroke-opacity: 0.35 }
            .range { stroke: #59636e; stroke-width: 1.5 }
            .phase { fill: #8c959f; fill-opacity: 0.12 }
            .other { fill: #8c959f }
            .own { fill: #2f81d6 }
            .line { fill: none; stroke-width: 1.8 }
            @media (prefers-color-scheme: dark) {
              text { fill: #e6edf3 }
              .faint { fill: #9198a1 }
              .range { stroke: #d1d9e0 }
            }
            </style>
            """;

    private Plot() {}

    /**
     * A bar or, in {@link #ranges}, a line between two dots.
     *
     * @param low the least value of all runs; of a range the left dot
     * @param middle the length of the bar; of no use in a range
     * @param high the greatest value of all runs; of a range the right dot
     * @param own whether it is the project's own, which has a colour
     */
    record Row(String label, double low, double middle, double high, boolean own) {}

    /** A line of points, one for each step; a value that is not a number leaves a gap. */
    record Series(String label, List<Double> values, int colour, boolean dashed) {}

    /** Draws horizontal bars from zero, with the range of all runs. */
    static String bars(String title, List<Row> rows) {
        double most = rows.stream().mapToDouble(Row::high).max().orElse(1);
        StringBuilder svg = head(title, TOP + rows.size() * ROW + 12);
        for (int i = 0; i < rows.size(); i++) {
            Row row = rows.get(i);
            double y = TOP + i * ROW;
            label(svg, row, y);
            svg.append(format(
                    "<rect class=\"%s\" x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"2\"/>\n",
                    row.own() ? "own" : "other", LEFT, y, linear(row.middle(), most), ROW - 9));
            double middle = y + (ROW - 9) / 2.0;
            if (row.high() > row.low()) {
                svg.append(stroke(
                        "range", LEFT + linear(row.low(), most), middle, LEFT + linear(row.high(), most), middle));
            }
            svg.append(text("", LEFT + linear(row.high(), most) + 6, y + 13, "start", Report.number(row.middle())));
        }
        return svg.append("</svg>\n").toString();
    }

    /** Draws each row's low and high value as dots with a line between them, on a logarithmic scale. */
    static String ranges(String title, List<Row> rows) {
        Scale scale = Scale.of(
                rows.stream().flatMap(row -> Stream.of(row.low(), row.high())).toList());
        int bottom = TOP + rows.size() * ROW;
        StringBuilder svg = head(title, bottom + 28);
        for (double tick : scale.ticks()) {
            double x = LEFT + scale.at(tick) * (WIDTH - LEFT - RIGHT);
            svg.append(stroke("axis", x, TOP - 4, x, bottom));
            svg.append(text("faint", x, bottom + 16, "middle", Report.tick(tick)));
        }
        for (int i = 0; i < rows.size(); i++) {
            Row row = rows.get(i);
            double y = TOP + i * ROW;
            double low = LEFT + scale.at(row.low()) * (WIDTH - LEFT - RIGHT);
            double high = LEFT + scale.at(row.high()) * (WIDTH - LEFT - RIGHT);
            label(svg, row, y);
            svg.append(stroke("range", low, y + 8, high, y + 8));
            for (double x : new double[] {low, high}) {
                svg.append(format(
                        "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\"/>\n",
                        row.own() ? "own" : "other", x, y + 8));
            }
            svg.append(text(
                    "faint", high + 9, y + 13, "start", Report.number(row.low()) + " – " + Report.number(row.high())));
        }
        return svg.append("</svg>\n").toString();
    }

    /**
     * Draws lines over time on a logarithmic scale.
     *
     * @param stepSeconds the time from one value to the next
     * @param phaseFrom the step with which the shaded part begins
     * @param phaseTo the step before which it ends; the same for none
     * @param phase what the shaded part is
     */
    static String lines(String title, List<Series> series, int stepSeconds, int phaseFrom, int phaseTo, String phase) {
        int steps = series.stream().mapToInt(line -> line.values().size()).max().orElse(1);
        Scale scale =
                Scale.of(series.stream().flatMap(line -> line.values().stream()).toList());
        int top = TOP + (series.size() + 2) / 3 * 18;
        int bottom = top + LINES_HEIGHT;
        double width = WIDTH - 70.0 - 20;
        StringBuilder svg = head(title, bottom + 40);
        for (int i = 0; i < series.size(); i++) {
            Series line = series.get(i);
            double x = 70 + i % 3 * 225;
            double y = TOP + i / 3 * 18;
            svg.append(path(line, format("M%.1f %.1fh26", x, y - 4)));
            svg.append(text("", x + 32, y, "start", line.label()));
        }
        if (phaseTo > phaseFrom) {
            double from = 70 + width * phaseFrom / Math.max(1, steps - 1);
            double to = 70 + width * Math.min(phaseTo, steps - 1) / Math.max(1, steps - 1);
            svg.append(format(
                    "<rect class=\"phase\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>\n",
                    from, top, to - from, LINES_HEIGHT));
            svg.append(text("faint", (from + to) / 2, top + 14, "middle", phase));
        }
        for (double tick : scale.ticks()) {
            double y = bottom - scale.at(tick) * LINES_HEIGHT;
            svg.append(stroke("axis", 70, y, 70 + width, y));
            svg.append(text("faint", 62, y + 4, "end", Report.tick(tick)));
        }
        double minutes = steps * stepSeconds / 60.0;
        double every = minutes > 30 ? 10 : minutes > 12 ? 5 : minutes > 3 ? 2 : 0.5;
        for (double minute = 0; minute * 60 / stepSeconds <= steps - 1; minute += every) {
            double x = 70 + width * minute * 60 / stepSeconds / Math.max(1, steps - 1);
            svg.append(text("faint", x, bottom + 18, "middle", Report.tick(minute) + " min"));
        }
        for (Series line : series) {
            StringBuilder points = new StringBuilder();
            boolean gap = true;
            for (int i = 0; i < line.values().size(); i++) {
                double value = line.values().get(i);
                if (!Double.isNaN(value)) {
                    points.append(format(
                            "%s%.1f %.1f",
                            gap ? "M" : "L",
                            70 + width * i / Math.max(1, steps - 1),
                            bottom - scale.at(value) * LINES_HEIGHT));
                }
                gap = Double.isNaN(value);
            }
            svg.append(path(line, points.toString()));
        }
        return svg.append("</svg>\n").toString();
    }

    /** A logarithmic scale between two powers of ten. */
    private record Scale(int from, int to) {

        private static final double LEAST = 0.01;

        static Scale of(List<Double> values) {
            double low = values.stream()
                    .filter(v -> !v.isNaN())
                    .mapToDouble(v -> Math.max(v, LEAST))
                    .min()
                    .orElse(1);
            double high = values.stream()
                    .filter(v -> !v.isNaN())
                    .mapToDouble(v -> Math.max(v, LEAST))
                    .max()
                    .orElse(1);
            int from = (int) Math.floor(Math.log10(low));
            return new Scale(from, Math.max(from + 1, (int) Math.ceil(Math.log10(high))));
        }

        double at(double value) {
            return (Math.log10(Math.max(value, LEAST)) - from) / (to - from);
        }

        List<Double> ticks() {
            List<Double> ticks = new ArrayList<>();
            for (int power = from; power <= to; power++) {
                ticks.add(Math.pow(10, power));
            }
            return ticks;
        }
    }

    private static StringBuilder head(String title, int height) {
        return new StringBuilder(format(
                        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n",
                        WIDTH, height, WIDTH, height))
                .append("<title>")
                .append(escape(title))
                .append("</title>\n")
                .append(STYLE)
                .append(text("title", 12, 20, "start", title));
    }

    private static void label(StringBuilder svg, Row row, double y) {
        svg.append(text(row.own() ? "title" : "", LEFT - 10, y + 13, "end", row.label()));
    }

    private static double linear(double value, double most) {
        return most <= 0 ? 0 : value / most * (WIDTH - LEFT - RIGHT);
    }

    private static String path(Series line, String points) {
        return format(
                "<path class=\"line\" stroke=\"%s\"%s d=\"%s\"/>\n",
                COLOURS.get(line.colour() % COLOURS.size()), line.dashed() ? " stroke-dasharray=\"5 4\"" : "", points);
    }

    private static String stroke(String style, double x1, double y1, double x2, double y2) {
        return format("<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", style, x1, y1, x2, y2);
    }

    private static String text(String style, double x, double y, String anchor, String words) {
        return format(
                "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n",
                style, x, y, anchor, escape(words));
    }

    private static String escape(String words) {
        return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
    }

    private static String format(String pattern, Object... values) {
        return String.format(Locale.ROOT, pattern, values);
    }
}
