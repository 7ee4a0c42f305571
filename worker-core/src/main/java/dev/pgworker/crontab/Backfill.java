package dev.pgworker.crontab;

import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import dev.pgworker.store.CrontabStore.Known;

/**
 * The executions that items with a fill missed while no worker ran, minute by minute, a bounded number at a time. An
 * item misses nothing before it was known or up to its last execution.
 */
final class Backfill {

    /** Keeps arithmetic with absurd fills within the range of timestamps. */
    private static final Duration LONGEST = Duration.ofDays(10 * 366);

    private static final int CHUNK = 500;

    /** Bounds the search for rare items, so that the caller's other work is not kept waiting. */
    private static final int MINUTES = 50_000;

    private final List<Part> parts;
    private Instant next;

    private record Part(CronItem item, Instant from) {}

    private Backfill(List<Part> parts) {
        this.parts = parts;
        this.next = parts.stream().map(Part::from).min(Instant::compareTo).orElse(Instant.MAX);
    }

    /**
     * Returns what the items missed, without looking for it yet.
     *
     * @param known what the database knew of each item before this worker; unknown ones missed nothing
     * @param start the first minute that is not missed
     */
    static Backfill of(List<CronItem> items, Map<String, Known> known, Instant start) {
        List<Part> parts = new ArrayList<>();
        for (CronItem item : items) {
            Known entry = known.get(item.identifier());
            if (entry != null && !item.fill().isZero()) {
                Instant from = from(item.fill(), entry, start);
                if (from.isBefore(start)) {
                    parts.add(new Part(item, from));
                }
            }
        }
        return new Backfill(parts);
    }

    private static Instant from(Duration fill, Known known, Instant start) {
        Instant earliest = ceil(start.minus(fill.compareTo(LONGEST) > 0 ? LONGEST : fill));
        Instant last = known.lastExecution();
        Instant unseen = ceil(last == null ? known.since() : last.plusNanos(1000));
        return unseen.isAfter(earliest) ? unseen : earliest;
    }

    /** Returns the first whole minute at or after the instant. */
    static Instant ceil(Instant instant) {
        Instant floor = instant.truncatedTo(ChronoUnit.MINUTES);
        return floor.equals(instant) ? floor : floor.plus(1, ChronoUnit.MINUTES);
    }

    /** Returns the items that missed anything. */
    List<CronItem> items() {
        return parts.stream().map(Part::item).toList();
    }

    /** Returns the first minute that has not been taken. */
    Instant position() {
        return next;
    }

    /** Goes back to a position, because what was taken since could not be added. */
    void moveTo(Instant position) {
        next = position;
    }

    /** Tells whether everything before the given minute has been taken. */
    boolean isDone(Instant until) {
        return !next.isBefore(until);
    }

    /** Returns the next missed executions before the given minute, in order, and moves on past them. */
    List<CronJobs.Due> take(Instant until) {
        List<CronJobs.Due> missed = new ArrayList<>();
        for (int i = 0; i < MINUTES && missed.size() < CHUNK && next.isBefore(until); i++) {
            for (Part part : parts) {
                if (!next.isBefore(part.from()) && part.item().isDueAt(next)) {
                    missed.add(new CronJobs.Due(part.item(), next));
                }
            }
            next = next.plus(1, ChronoUnit.MINUTES);
        }
        return missed;
    }
}
