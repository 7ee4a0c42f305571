/** The statements of a running worker. */
@NullMarked
package dev.pgworker.internal.store;

import org.jspecify.annotations.NullMarked;
