/** Connections and the limits of what is done with them. */
@NullMarked
package dev.pgworker.internal.jdbc;

import org.jspecify.annotations.NullMarked;
