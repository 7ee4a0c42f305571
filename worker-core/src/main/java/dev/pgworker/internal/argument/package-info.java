/** The limits of arguments, checked with the argument named. */
@NullMarked
package dev.pgworker.internal.argument;

import org.jspecify.annotations.NullMarked;
