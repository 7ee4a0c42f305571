/** What failures mean, how often they are told, and how long to wait after them. */
@NullMarked
package dev.pgworker.internal.failure;

import org.jspecify.annotations.NullMarked;
