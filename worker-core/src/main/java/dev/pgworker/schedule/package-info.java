/** Recurring jobs that applications make, change and remove at run time. */
@NullMarked
package dev.pgworker.schedule;

import org.jspecify.annotations.NullMarked;
