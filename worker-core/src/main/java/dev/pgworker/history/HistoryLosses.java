package dev.pgworker.history;

/**
 * Jobs of the last day whose ends the history does not show although it was on: its table was locked for more than a second, or
 * could not be written.
 *
 * @param jobs number of missing entries
 * @param reason the reason of the latest, by the database
 * @since 0.1.0
 */
public record HistoryLosses(long jobs, String reason) {}
