/** Tells the database which workers live. */
@NullMarked
package dev.pgworker.recovery;

import org.jspecify.annotations.NullMarked;
