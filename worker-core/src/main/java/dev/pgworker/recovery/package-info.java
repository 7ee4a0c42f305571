/** Settings of how dead workers are detected and their jobs recovered. */
@NullMarked
package dev.pgworker.recovery;

import org.jspecify.annotations.NullMarked;
