/** Reports that are written on a schedule, and made up for after a pause. */
@NullMarked
package dev.pgworker.samples.reports;

import org.jspecify.annotations.NullMarked;
