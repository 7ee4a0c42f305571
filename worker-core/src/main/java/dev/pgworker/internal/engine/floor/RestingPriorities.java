package dev.pgworker.internal.engine.floor;

import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.store.IndexPosition;

/**
 * Which of many priorities claims look at: some at a time, and none at which no job is due. A scan at one costs the server little, at
 * ten thousand more than all else that a claim does. A priority rests until its next job is due, a job is announced, or a while has
 * passed, for what nobody announces.
 *
 * <p>Guarded by the {@link ClaimFloor} that it belongs to.
 */
final class RestingPriorities {

    /** So many priorities are looked at together, then twice as many each time; with no more than that none rests. */
    static final int MOST_AT_ONCE = 256;

    private static final Duration LONGEST_REST = Duration.ofSeconds(10);

    /** How long priorities rest of which it is only known that nothing was due. */
    private static final Duration DOZE = Duration.ofMillis(100);

    /** Until when priorities rest, by {@link System#nanoTime}. */
    private final Map<Integer, Long> until = new HashMap<>();

    /** No rest ends before this {@link System#nanoTime}. */
    private long firstEnd;

    /** When those end together that nothing else ends, by {@link System#nanoTime}. */
    private long roundEnd = System.nanoTime();

    /** How many priorities the next pick has at most. */
    private int most = MOST_AT_ONCE;

    /** The last of those picked, if there are more that do not rest. */
    private @Nullable Integer pickedTo;

    /** After this one the next pick begins; null for the first. */
    private @Nullable Integer after;

    /** Woken since the last pick, each or all. */
    private final Set<Integer> woken = new HashSet<>();

    private boolean allWoken;

    /** Returns those of the floors at which the next claim looks. */
    SortedMap<Integer, IndexPosition> pick(SortedMap<Integer, IndexPosition> floors) {
        woken.clear();
        allWoken = false;
        pickedTo = null;
        endRests();
        if (until.isEmpty() && floors.size() <= MOST_AT_ONCE) {
            after = null;
            return floors;
        }
        SortedMap<Integer, IndexPosition> picked = pickAfter(floors);
        if (picked.isEmpty() && after != null) {
            after = null;
            picked = pickAfter(floors);
        }
        return picked;
    }

    private SortedMap<Integer, IndexPosition> pickAfter(SortedMap<Integer, IndexPosition> floors) {
        SortedMap<Integer, IndexPosition> picked = new TreeMap<>();
        SortedMap<Integer, IndexPosition> rest = after == null ? floors : floors.tailMap(after + 1);
        for (Map.Entry<Integer, IndexPosition> floor : rest.entrySet()) {
            if (!until.containsKey(floor.getKey())) {
                if (picked.size() == most) {
                    pickedTo = picked.lastKey();
                    break;
                }
                picked.put(floor.getKey(), floor.getValue());
            }
        }
        return picked;
    }

    private void endRests() {
        long time = System.nanoTime();
        if (!until.isEmpty() && time - firstEnd >= 0) {
            until.values().removeIf(end -> time - end >= 0);
            firstEnd = time + LONGEST_REST.toNanos();
            until.values().forEach(this::noteEnd);
        }
    }

    private void noteEnd(long end) {
        if (end - firstEnd < 0) {
            firstEnd = end;
        }
    }

    /** Takes note of a claim at what was picked; returns whether there are others to look at because it brought all there was. */
    boolean claimed(boolean full) {
        after = full ? null : pickedTo;
        most = after == null ? MOST_AT_ONCE : Math.min(2 * most, 1 << Short.SIZE);
        return after != null;
    }

    /**
     * Lets priorities rest at which a claim has left nothing that is due, unless they were woken since they were picked.
     *
     * @param due when the next job of each is due; none for those that have none
     */
    void rest(Collection<Integer> levels, Map<Integer, Duration> due) {
        rest(levels, due, LONGEST_REST);
    }

    /** Lets priorities rest for a moment which a claim has read past, because enough was due at later ones. */
    void doze(Collection<Integer> levels) {
        rest(levels, Map.of(), DOZE);
    }

    private void rest(Collection<Integer> levels, Map<Integer, Duration> due, Duration most) {
        long time = System.nanoTime();
        if (until.isEmpty()) {
            firstEnd = time + LONGEST_REST.toNanos();
        }
        if (roundEnd - time < LONGEST_REST.toNanos() / 2) {
            roundEnd = time + LONGEST_REST.toNanos();
        }
        for (int level : levels) {
            Duration wait = due.getOrDefault(level, most);
            if (!allWoken && !woken.contains(level) && !wait.isNegative()) {
                long end = Math.min(wait.toNanos(), roundEnd - time) + time;
                until.put(level, end);
                noteEnd(end);
            }
        }
    }

    /** Forgets priorities that are not among these. */
    void retain(Set<Integer> levels) {
        until.keySet().retainAll(levels);
    }

    boolean isResting(int level) {
        return until.containsKey(level);
    }

    /** Returns how long at least the first of them rests; {@link Long#MAX_VALUE} if none does. */
    long nanosUntilFirstEnd() {
        return until.isEmpty() ? Long.MAX_VALUE : Math.max(0, firstEnd - System.nanoTime());
    }

    void wake(int level) {
        until.remove(level);
        woken.add(level);
    }

    void wakeAll() {
        until.clear();
        woken.clear();
        allWoken = true;
    }
}
