/** Every statement the running worker and its clients send. Internal: only the engine and the root use it. */
@NullMarked
package dev.pgworker.store;

import org.jspecify.annotations.NullMarked;
