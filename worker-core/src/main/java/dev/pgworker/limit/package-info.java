/** How many jobs run at once, or start in a period, across all workers of a schema. */
@NullMarked
package dev.pgworker.limit;

import org.jspecify.annotations.NullMarked;
