/** What a worker records for those who look at it: running jobs, and the figures of the last 24 hours. */
@NullMarked
package dev.pgworker.internal.record;

import org.jspecify.annotations.NullMarked;
