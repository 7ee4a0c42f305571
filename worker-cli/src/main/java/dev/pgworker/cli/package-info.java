/** The command line: what an operator does with a schema and its jobs from a shell. */
@NullMarked
package dev.pgworker.cli;

import org.jspecify.annotations.NullMarked;
