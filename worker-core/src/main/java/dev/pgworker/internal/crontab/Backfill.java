package dev.pgworker.internal.crontab;

import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;

import org.jspecify.annotations.Nullable;

import dev.pgworker.crontab.CronItem;
import dev.pgworker.internal.crontab.CronExecutor.Due;
import dev.pgworker.internal.crontab.CronExecutor.Missed;
import dev.pgworker.internal.store.CrontabStore.Known;

/**
 * Items that are behind the schedule, each with the first minute that has not been executed: because no worker ran and
 * they have a fill, because their jobs could not be added, or because adding them took too long for others to wait. They catch up on it minute by minute, a bounded number of
 * executions at a time. One that fails stays where it is, and keeps no other from continuing. Used by one thread.
 */
final class Backfill {

    /** Keeps arithmetic with absurd fills within the range of timestamps. */
    private static final Duration LONGEST = Duration.ofDays(10 * 366);

    /** How many executions are enough for one transaction. */
    static final int CHUNK = 500;

    /** Bounds the search for rare items, so that the caller's other work is not kept waiting. */
    static final int MINUTES = 50_000;

    private final Duration shortestReach;
    private final List<Part> parts = new ArrayList<>();

    /**
     * Creates one without items.
     *
     * @param shortestReach how far back an item may fall that cannot be executed, unless its fill reaches farther
     */
    Backfill(Duration shortestReach) {
        this.shortestReach = shortestReach;
    }

    private static final class Part {

        private final CronItem item;
        private Instant position;

        /** The part is left alone until the schedule has passed this minute. */
        private Instant blockedAt = Instant.MIN;

        /** Blocked by a transaction, which may end at any time. */
        private boolean held;

        Part(CronItem item, Instant position) {
            this.item = item;
            this.position = position;
        }
    }

    /**
     * Some executions to catch up on.
     *
     * @param due in the order of their minutes, perhaps none
     * @param parts those that took part in the search, and until when it went
     */
    record Chunk(List<Due> due, List<Part> parts, Instant end) {}

    /** Returns the first whole minute at or after the instant. */
    static Instant ceil(Instant instant) {
        Instant floor = instant.truncatedTo(ChronoUnit.MINUTES);
        return floor.equals(instant) ? floor : floor.plus(1, ChronoUnit.MINUTES);
    }

    /**
     * Returns the first minute for which an item has to make up after a time without a worker, or null if there is none.
     *
     * @param known what the database knew of the item before this worker; null for nothing, and then nothing is missed
     * @param start the first minute that is not missed
     */
    static @Nullable Instant firstMissed(CronItem item, @Nullable Known known, Instant start) {
        if (known == null || item.fill().isZero()) {
            return null;
        }
        Instant last = known.lastExecution();
        Instant unseen = ceil(last == null ? known.since() : last.plusNanos(1000));
        Instant from = later(unseen, ceil(start.minus(bounded(item.fill()))));
        return from.isBefore(start) ? from : null;
    }

    private static Duration bounded(Duration fill) {
        return fill.compareTo(LONGEST) > 0 ? LONGEST : fill;
    }

    private static Instant later(Instant a, Instant b) {
        return a.isAfter(b) ? a : b;
    }

    /** Forgets everything. */
    void clear() {
        parts.clear();
    }

    /** Takes an item in that is at the given minute. */
    void add(CronItem item, Instant position) {
        parts.add(new Part(item, position));
    }

    /**
     * Takes an item in whose jobs for the given minute could not be added: it is tried again in the next minute.
     *
     * @param held whether it is among those that {@link #releaseHeld} lets continue earlier
     */
    void addFailed(CronItem item, Instant position, boolean held) {
        Part part = new Part(item, position);
        part.held = held;
        part.blockedAt = position.plus(1, ChronoUnit.MINUTES);
        parts.add(part);
    }

    /** Returns true if an item waits for a transaction to end. */
    boolean hasHeld() {
        return parts.stream().anyMatch(part -> part.held);
    }

    /** Lets the items that wait for a transaction be tried again at once. */
    void releaseHeld() {
        for (Part part : parts) {
            if (part.held) {
                part.held = false;
                part.blockedAt = Instant.MIN;
            }
        }
    }

    /** Lets all items be tried again at once, because the minute until which they were to be left alone may be far off. */
    void release() {
        parts.forEach(part -> {
            part.held = false;
            part.blockedAt = Instant.MIN;
        });
    }

    /** Returns true if {@link #take} would look for executions. */
    boolean isWaiting(Instant until) {
        return parts.stream().anyMatch(part -> isFree(part, until));
    }

    private static boolean isFree(Part part, Instant until) {
        return part.blockedAt.isBefore(until);
    }

    /** Returns the next executions before the given minute. Nothing moves on until {@link #settle} receives them. */
    Chunk take(Instant until) {
        List<Part> taken = parts.stream().filter(part -> isFree(part, until)).toList();
        Instant minute = taken.stream()
                .map(part -> part.position)
                .min(Instant::compareTo)
                .orElse(until);
        List<Due> due = new ArrayList<>();
        for (int i = 0; i < MINUTES && due.size() < CHUNK && minute.isBefore(until); i++) {
            for (Part part : taken) {
                if (!minute.isBefore(part.position) && part.item.isDueAt(minute)) {
                    due.add(new Due(part.item, minute));
                }
            }
            minute = minute.plus(1, ChronoUnit.MINUTES);
        }
        return new Chunk(due, taken, minute);
    }

    /**
     * Moves on past a chunk that has been executed.
     *
     * @param missed items that stay where they are and are tried again in the next minute. What lies too far back is given
     *     up: more than the item's fill, and more than the shortest reach.
     * @return the items that have caught up, and leave
     */
    List<CronItem> settle(Chunk chunk, Missed missed, Instant until) {
        List<CronItem> caughtUp = new ArrayList<>();
        for (Part part : chunk.parts()) {
            if (!parts.contains(part)) {
                // All has been forgotten since, and the item may be in step.
                continue;
            }
            if (missed.contains(part.item.identifier())) {
                Duration fill = bounded(part.item.fill());
                Duration reach = fill.compareTo(shortestReach) > 0 ? fill : shortestReach;
                part.position = later(part.position, ceil(until.minus(reach)));
                part.blockedAt = until;
                part.held = missed.held().contains(part.item.identifier());
            } else {
                part.position = later(part.position, chunk.end());
                if (!part.position.isBefore(until)) {
                    caughtUp.add(part.item);
                    parts.remove(part);
                }
            }
        }
        return caughtUp;
    }
}
