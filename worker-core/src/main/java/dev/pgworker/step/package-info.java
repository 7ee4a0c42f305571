/** Jobs of several steps, what has become of each, and the signals that they wait for. */
@NullMarked
package dev.pgworker.step;

import org.jspecify.annotations.NullMarked;
