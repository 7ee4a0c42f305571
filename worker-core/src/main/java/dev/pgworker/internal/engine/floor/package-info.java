/** Where claims begin to look, so that they do not read what finished jobs have left. */
@NullMarked
package dev.pgworker.internal.engine.floor;

import org.jspecify.annotations.NullMarked;
