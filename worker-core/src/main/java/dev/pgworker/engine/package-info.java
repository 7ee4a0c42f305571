/** Fetches, runs and completes jobs. Internal: only the root wires it. */
@NullMarked
package dev.pgworker.engine;

import org.jspecify.annotations.NullMarked;
