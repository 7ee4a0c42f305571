/** An application whose worker is administered over HTTP by operators only. */
@NullMarked
package dev.pgworker.samples.secured;

import org.jspecify.annotations.NullMarked;
