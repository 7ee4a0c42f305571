/** Writes outcomes, and puts right where database and worker differ. */
@NullMarked
package dev.pgworker.internal.engine.complete;

import org.jspecify.annotations.NullMarked;
