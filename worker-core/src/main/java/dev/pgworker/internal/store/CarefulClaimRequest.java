package dev.pgworker.internal.store;

import java.util.Collection;

import org.jspecify.annotations.Nullable;

/**
 * What a careful claim looks for.
 *
 * @param wanted how many jobs at most
 * @param mostBytes how many bytes their payloads may have together; a single job may have more
 * @param forbidden flags whose jobs are passed over
 * @param passedOver what else is left alone
 * @param withPayload whether to read the payload; without it the job has the payload {@code null}
 * @param queueStart where to look for jobs of queues; null to look at all
 */
public record CarefulClaimRequest(
        int wanted,
        long mostBytes,
        Collection<String> forbidden,
        PassedOver passedOver,
        boolean withPayload,
        @Nullable QueueStart queueStart) {}
