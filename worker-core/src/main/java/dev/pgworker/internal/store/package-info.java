/**
 * The statements of a running worker.
 *
 * <p>They are plain JDBC, not Spring's {@code JdbcClient}: claims, outcomes and recurring jobs are what a worker does all the
 * time, and each statement, sweeps and heartbeats included, limits how long its very connection waits and is judged by the
 * {@code SQLException} that the server sent.
 */
@NullMarked
package dev.pgworker.internal.store;

import org.jspecify.annotations.NullMarked;
