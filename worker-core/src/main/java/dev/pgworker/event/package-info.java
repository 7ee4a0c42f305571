/** Events in a worker, and the listeners that receive them. */
@NullMarked
package dev.pgworker.event;

import org.jspecify.annotations.NullMarked;
