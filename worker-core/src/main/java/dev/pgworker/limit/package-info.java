/** How many jobs run at once, start in a period, or in which shares, across all workers of a schema. */
@NullMarked
package dev.pgworker.limit;

import org.jspecify.annotations.NullMarked;
