package dev.pgworker.internal.limit;

import java.util.HashSet;
import java.util.Set;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;

/**
 * What notifications say of lanes and buckets until somebody asks. Anybody may send such notifications: what they name wrongly is
 * looked for in vain, and however many come, this remembers a bounded number. Thread-safe.
 */
final class LimitSignals {

    /** With more, everything is looked at. */
    static final int MOST = 2_000;

    /** Longer names are none. */
    private static final int LONGEST = 1_000;

    @GuardedBy("this") private Told told = new Told(new HashSet<>(), new HashSet<>(), false);

    @GuardedBy("this") private long since;

    /**
     * What has been told.
     *
     * @param lanes where jobs may have come, each alone or with a space and the place in it
     * @param buckets where permits may have been given back
     * @param everything whether there is something to do that is not named
     */
    record Told(Set<String> lanes, Set<Long> buckets, boolean everything) {

        boolean isEmpty() {
            return lanes.isEmpty() && buckets.isEmpty() && !everything;
        }
    }

    /** Returns the lane of what has been told of one. */
    static String lane(String told) {
        int end = told.indexOf(' ');
        return end < 0 ? told : told.substring(0, end);
    }

    /**
     * Takes in a notification.
     *
     * @param text null where notifications may have been missed
     * @return whether it says something
     */
    synchronized boolean tell(@Nullable String text) {
        if (told.isEmpty()) {
            since = System.nanoTime();
        }
        if (text == null || text.equals("e")) {
            told = new Told(told.lanes, told.buckets, true);
            return true;
        }
        if (text.length() < 2 || text.length() > LONGEST) {
            return false;
        }
        if (told.lanes.size() + told.buckets.size() >= MOST) {
            told = new Told(new HashSet<>(), new HashSet<>(), true);
            return true;
        }
        return switch (text.charAt(0)) {
            case 'l' -> told.everything || told.lanes.add(text.substring(1));
            case 'b' -> addBucket(text.substring(1));
            default -> false;
        };
    }

    @GuardedBy("this") private boolean addBucket(String id) {
        try {
            return told.everything || told.buckets.add(Long.valueOf(id));
        } catch (NumberFormatException e) {
            return false;
        }
    }

    /** Returns what has been told since the last call. */
    synchronized Told take() {
        Told taken = told;
        told = new Told(new HashSet<>(), new HashSet<>(), false);
        return taken;
    }

    /** Gives back what could not be dealt with. */
    synchronized void putBack(Told taken) {
        if (told.isEmpty()) {
            since = System.nanoTime();
        }
        told.lanes.addAll(taken.lanes);
        told.buckets.addAll(taken.buckets);
        told = new Told(told.lanes, told.buckets, told.everything || taken.everything);
    }

    /** Returns for how many nanoseconds something has been told; -1 if nothing is. */
    synchronized long age() {
        return told.isEmpty() ? -1 : System.nanoTime() - since;
    }
}
