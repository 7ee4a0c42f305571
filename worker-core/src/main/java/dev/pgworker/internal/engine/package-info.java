/** What all parts of a running worker share. */
@NullMarked
package dev.pgworker.internal.engine;

import org.jspecify.annotations.NullMarked;
