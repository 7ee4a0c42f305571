/** Runs claimed jobs and reports how they ended. */
@NullMarked
package dev.pgworker.internal.engine.run;

import org.jspecify.annotations.NullMarked;
