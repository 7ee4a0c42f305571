package dev.pgworker.crontab;

/**
 * Where an item is declared, for messages.
 *
 * @param source the name of a text, or what declares the item in code
 * @param line the line of a text, from 1; 0 for code
 * @param column the column of a text, from 1; 0 for code
 */
record SourceLocation(String source, int line, int column) {

    @Override
    public String toString() {
        return line == 0 ? source : "line " + line + " of " + source;
    }
}
