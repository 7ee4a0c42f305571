/** The jobs that a worker holds: which may be claimed, start, wait and are in flight. */
@NullMarked
package dev.pgworker.internal.engine.queue;

import org.jspecify.annotations.NullMarked;
