package dev.pgworker.internal.lifecycle;

/**
 * What a service has failed with since its last success.
 *
 * @param since when that began, by {@link System#nanoTime}
 * @param reason the class and message of the last failure, in one line
 * @param outage whether the database could not be used then
 */
public record Failing(long since, String reason, boolean outage) {}
