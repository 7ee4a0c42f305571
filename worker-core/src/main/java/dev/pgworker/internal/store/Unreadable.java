package dev.pgworker.internal.store;

import dev.pgworker.job.Job;

/**
 * A job whose row could not be read.
 *
 * @param job what could be read of it
 * @param error why
 */
public record Unreadable(Job job, Throwable error) {}
