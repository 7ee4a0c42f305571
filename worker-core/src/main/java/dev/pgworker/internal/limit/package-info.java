/** Lets jobs of limited tasks through, and puts limits into effect. */
@NullMarked
package dev.pgworker.internal.limit;

import org.jspecify.annotations.NullMarked;
