/** What failures mean, how often they are reported, and how long to wait after them. */
@NullMarked
package dev.pgworker.internal.failure;

import org.jspecify.annotations.NullMarked;
