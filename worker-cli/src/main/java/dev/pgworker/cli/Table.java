package dev.pgworker.cli;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

import org.jspecify.annotations.Nullable;

/**
 * Rows below a line of titles. Where somebody looks at it, long texts are cut so that a row fits into a line of the terminal;
 * in a file or pipe everything stands in full.
 */
final class Table {

    private static final String GAP = "  ";

    /** What is left, at least, of a column that is cut. */
    private static final int LEAST = 8;

    private final List<Column> columns;
    private final List<List<String>> rows = new ArrayList<>();

    /**
     * Creates a table. A title that begins with {@code >} is that of numbers, which stand at the right; one that begins with
     * {@code =} is that of texts that are never cut.
     */
    Table(String... titles) {
        columns = Stream.of(titles).map(Column::of).toList();
    }

    private record Column(String title, boolean number, boolean mayShrink) {
        static Column of(String title) {
            boolean number = title.startsWith(">");
            boolean whole = number || title.startsWith("=");
            return new Column(whole ? title.substring(1) : title, number, !whole);
        }
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
        lines.add(line(columns.stream().map(Column::title).toList(), widths));
        rows.forEach(row -> lines.add(line(row, widths)));
        return lines;
    }

    private int[] widths() {
        int[] widths =
                columns.stream().mapToInt(column -> Text.columns(column.title)).toArray();
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
                boolean mayShrink = columns.get(i).mayShrink && widths[i] > LEAST;
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
            line.append(columns.get(i).number ? space + cell : cell + space);
        }
        return line.toString().stripTrailing();
    }
}
