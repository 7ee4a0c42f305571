/** How background threads start, stop, wait and survive failures, and how long a worker may take itself for alive. */
@NullMarked
package dev.pgworker.internal.lifecycle;

import org.jspecify.annotations.NullMarked;
