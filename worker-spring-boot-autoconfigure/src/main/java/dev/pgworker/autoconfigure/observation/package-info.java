/** Observations of jobs that are added and run, and the traces that connect them. */
@NullMarked
package dev.pgworker.autoconfigure.observation;

import org.jspecify.annotations.NullMarked;
