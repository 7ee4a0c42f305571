/** The health of the worker and its schema. */
@NullMarked
package dev.pgworker.autoconfigure.health;

import org.jspecify.annotations.NullMarked;
