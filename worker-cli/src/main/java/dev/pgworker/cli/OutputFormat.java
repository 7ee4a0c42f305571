package dev.pgworker.cli;

/** How results are written. */
enum OutputFormat {

    /** For people: columns, cut to the width of a terminal. */
    TABLE,

    /** For programs: one JSON document. */
    JSON
}
