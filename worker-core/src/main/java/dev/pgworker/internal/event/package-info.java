/** Delivers events to listeners. */
@NullMarked
package dev.pgworker.internal.event;

import org.jspecify.annotations.NullMarked;
