/** Proves a worker's life, notices the end of the proof, and recovers the jobs of dead workers. */
@NullMarked
package dev.pgworker.internal.recovery;

import org.jspecify.annotations.NullMarked;
