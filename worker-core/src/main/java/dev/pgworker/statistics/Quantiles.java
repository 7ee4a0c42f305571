package dev.pgworker.statistics;

import java.time.Duration;

/**
 * The distribution of durations, accurate to about a fifth of each value.
 *
 * @param median half of the durations are no longer
 * @param most 95 of 100 durations are no longer
 * @param longest the longest duration
 * @since 0.1.0
 */
public record Quantiles(Duration median, Duration most, Duration longest) {}
