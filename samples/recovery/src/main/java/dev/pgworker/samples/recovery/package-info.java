/** A long job that goes on in another process when its own is killed. */
@NullMarked
package dev.pgworker.samples.recovery;

import org.jspecify.annotations.NullMarked;
