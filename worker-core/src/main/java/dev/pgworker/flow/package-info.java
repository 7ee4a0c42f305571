/** Flows: jobs that start when other jobs have ended. */
@NullMarked
package dev.pgworker.flow;

import org.jspecify.annotations.NullMarked;
