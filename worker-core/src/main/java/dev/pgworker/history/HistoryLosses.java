package dev.pgworker.history;

/**
 * Jobs of the last day whose ends the history does not show although it was on. Its table was locked for more than a second,
 * or could not be written, or a trigger is missing.
 *
 * @param jobs number of missing entries, as far as they are known; 0 if nothing is known but that a trigger is missing
 * @param reason the reason of the latest, by the database, with who holds the lock if there is one
 * @since 0.1.0
 */
public record HistoryLosses(long jobs, String reason) {}
