/** Meters of jobs, workers and the backlog. */
@NullMarked
package dev.pgworker.autoconfigure.metrics;

import org.jspecify.annotations.NullMarked;
