/** What happens in a worker, for whoever wants to watch. */
@NullMarked
package dev.pgworker.event;

import org.jspecify.annotations.NullMarked;
