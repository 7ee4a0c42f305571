/**
 * Comparisons with other job queues and with plain SQL.
 *
 * <p>{@link dev.pgworker.benchmarks.Benchmarks} is the runner. It never runs a job itself: each contender lives in
 * processes of its own, which do what the runner says ({@link dev.pgworker.benchmarks.ContenderProcess}).
 */
@NullMarked
package dev.pgworker.benchmarks;

import org.jspecify.annotations.NullMarked;
