package dev.pgworker.internal.store;

/**
 * A job whose row could not be read.
 *
 * @param job what could be read of it
 * @param error why
 */
public record Unreadable(ClaimedJob job, Throwable error) {}
