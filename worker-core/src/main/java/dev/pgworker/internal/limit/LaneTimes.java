package dev.pgworker.internal.limit;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/** When lanes are to be looked at again, by {@link System#nanoTime}. Used by one thread. */
final class LaneTimes {

    /** What does not fit is found by the looks at everything. */
    static final int MOST = 20_000;

    /** So many at a time. */
    private static final int MOST_TAKEN = 500;

    private static final double LONGEST_SECONDS = 3_600;

    private record Entry(String lane, long at) {}

    private final Map<String, Long> times = new HashMap<>();
    private final PriorityQueue<Entry> queue = new PriorityQueue<>(Comparator.comparingLong(Entry::at));

    /** Notes that a lane is to be looked at in so many seconds; the last word counts. */
    void put(String lane, double seconds, long now) {
        if (times.size() >= MOST && !times.containsKey(lane)) {
            return;
        }
        long nanos = (long) (Math.min(LONGEST_SECONDS, Math.max(0, seconds)) * TimeUnit.SECONDS.toNanos(1));
        times.put(lane, now + nanos);
        queue.add(new Entry(lane, now + nanos));
        if (queue.size() > 2 * MOST) {
            rebuild();
        }
    }

    private void rebuild() {
        queue.clear();
        times.forEach((lane, at) -> queue.add(new Entry(lane, at)));
    }

    /** Forgets what was noted of lanes that are being looked at. */
    void forget(Iterable<String> lanes) {
        lanes.forEach(times::remove);
    }

    /** Returns and forgets lanes whose time has come. */
    Set<String> take(long now) {
        List<String> taken = new ArrayList<>();
        while (!queue.isEmpty() && taken.size() < MOST_TAKEN && queue.peek().at - now <= 0) {
            Entry entry = queue.remove();
            if (Long.valueOf(entry.at).equals(times.get(entry.lane))) {
                times.remove(entry.lane);
                taken.add(entry.lane);
            }
        }
        return new HashSet<>(taken);
    }

    /** Returns in how many nanoseconds the first one is to be looked at, or the given number if that is less. */
    long nanosToNext(long now, long most) {
        return queue.isEmpty() ? most : Math.max(0, Math.min(most, queue.peek().at - now));
    }
}
