/** How the worker's background threads start, stop, wait and survive failures. Internal. */
@NullMarked
package dev.pgworker.lifecycle;

import org.jspecify.annotations.NullMarked;
