/** Claims, runs and completes jobs. */
@NullMarked
package dev.pgworker.internal.engine;

import org.jspecify.annotations.NullMarked;
