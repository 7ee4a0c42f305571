/** Figures of the last 24 hours. */
@NullMarked
package dev.pgworker.statistics;

import org.jspecify.annotations.NullMarked;
