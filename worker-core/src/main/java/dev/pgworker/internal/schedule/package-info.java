/** Executes the schedules of the database. */
@NullMarked
package dev.pgworker.internal.schedule;

import org.jspecify.annotations.NullMarked;
