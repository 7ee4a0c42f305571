/** A busy shop to look at in the dashboard. */
@NullMarked
package dev.pgworker.samples.dashboard;

import org.jspecify.annotations.NullMarked;
