/** Locks, runs and deletes jobs of direct tasks in one transaction. */
@NullMarked
package dev.pgworker.internal.engine.direct;

import org.jspecify.annotations.NullMarked;
