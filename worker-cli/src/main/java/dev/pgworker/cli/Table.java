package dev.pgworker.cli;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;

import org.jspecify.annotations.Nullable;

/**
 * Rows below a line of titles. Where somebody looks at it, long texts are cut so that a row fits into a line of the terminal;
 * in a file or pipe everything stands in full.
 */
final class Table {

    private static final String GAP = "  ";

    /** What is left, at least, of a column that is cut. */
    private static final int LEAST = 8;

    private final List<String> titles;
    private final Set<String> numbers;
    private final List<List<String>> rows = new ArrayList<>();

    /** Creates a table; the titles of columns with numbers, which stand at the right, begin with a {@code >}. */
    Table(String... titles) {
        this.titles = List.of(titles).stream()
                .map(title -> title.startsWith(">") ? title.substring(1) : title)
                .toList();
        this.numbers = Set.copyOf(List.of(titles).stream()
                .filter(title -> title.startsWith(">"))
                .map(title -> title.substring(1))
                .toList());
    }

    /** Adds a row; what is null stays empty. */
    Table row(@Nullable Object... cells) {
        List<String> row = new ArrayList<>();
        for (Object cell : cells) {
            row.add(cell == null ? "" : Text.line(cell.toString()));
        }
        rows.add(row);
        return this;
    }

    void print(Terminal terminal) {
        lines(terminal).forEach(line -> {
            terminal.out().println(line);
        });
    }

    /** Returns the lines. */
    List<String> lines(Terminal terminal) {
        int[] widths = widths();
        if (terminal.isInteractive()) {
            shrink(widths, terminal.width());
        }
        List<String> lines = new ArrayList<>();
        lines.add(line(titles, widths));
        rows.forEach(row -> lines.add(line(row, widths)));
        return lines;
    }

    private int[] widths() {
        int[] widths = titles.stream().mapToInt(Text::columns).toArray();
        for (List<String> row : rows) {
            for (int i = 0; i < widths.length; i++) {
                widths[i] = Math.max(widths[i], Text.columns(row.get(i)));
            }
        }
        return widths;
    }

    /** Takes columns from the widest until the row fits, or nothing is left to take. */
    private void shrink(int[] widths, int available) {
        int total = GAP.length() * (widths.length - 1);
        for (int width : widths) {
            total += width;
        }
        while (total > available) {
            int widest = -1;
            for (int i = 0; i < widths.length; i++) {
                boolean mayShrink = !numbers.contains(titles.get(i)) && widths[i] > LEAST;
                if (mayShrink && (widest < 0 || widths[i] > widths[widest])) {
                    widest = i;
                }
            }
            if (widest < 0) {
                return;
            }
            widths[widest]--;
            total--;
        }
    }

    private String line(List<String> cells, int[] widths) {
        StringBuilder line = new StringBuilder();
        for (int i = 0; i < widths.length; i++) {
            String cell = Text.cut(cells.get(i), widths[i]);
            String space = " ".repeat(widths[i] - Text.columns(cell));
            line.append(i == 0 ? "" : GAP);
            line.append(numbers.contains(titles.get(i)) ? space + cell : cell + space);
        }
        return line.toString().stripTrailing();
    }
}
