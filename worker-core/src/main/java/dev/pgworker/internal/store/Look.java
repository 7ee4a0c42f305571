package dev.pgworker.internal.store;

import java.time.Duration;
import java.time.Instant;
import java.util.Map;

import org.jspecify.annotations.Nullable;

/**
 * Where due jobs begin.
 *
 * @param first the first due job of each kind that was looked at; the time and 0 where there is none
 * @param anyDue whether there is one at all
 * @param untilNext how long, from the answer on, until the next job is due; null if there is none
 * @param at as of when this holds, by the database's clock
 * @param took how long the database needed
 */
public record Look(
        Map<Floor.Kind, Floor> first,
        boolean anyDue,
        @Nullable Duration untilNext,
        Instant at,
        Duration took) {}
