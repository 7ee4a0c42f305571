package dev.pgworker.internal.watch;

import java.util.Collection;
import java.util.Locale;

import org.jspecify.annotations.Nullable;

/** Finds the one of many names that a mistyped name may stand for. */
final class ClosestName {

    /** More are not compared. */
    private static final int MOST_COMPARED = 10_000;

    private ClosestName() {}

    /** Returns the name with the fewest typing mistakes, the first of several; null if none is close. */
    static @Nullable String of(String written, Collection<String> names) {
        String text = written.toLowerCase(Locale.ROOT);
        String closest = null;
        int best = Math.max(1, text.length() / 3) + 1;
        int compared = 0;
        for (String name : names) {
            if (compared++ == MOST_COMPARED) {
                break;
            }
            int distance = distance(text, name.toLowerCase(Locale.ROOT), best);
            if (distance < best) {
                best = distance;
                closest = name;
            }
        }
        return closest;
    }

    /**
     * Returns how many letters have to be put in, left out, replaced or exchanged with the next one to make one text of the other;
     * the limit if that is fewer.
     */
    static int distance(String a, String b, int limit) {
        if (Math.abs(a.length() - b.length()) >= limit) {
            return limit;
        }
        int[] before = new int[b.length() + 1];
        int[] last = new int[b.length() + 1];
        int[] current = new int[b.length() + 1];
        for (int j = 0; j <= b.length(); j++) {
            last[j] = j;
        }
        for (int i = 1; i <= a.length(); i++) {
            current[0] = i;
            int least = i;
            for (int j = 1; j <= b.length(); j++) {
                int replaced = last[j - 1] + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
                current[j] = Math.min(replaced, Math.min(last[j], current[j - 1]) + 1);
                if (i > 1 && j > 1 && a.charAt(i - 1) == b.charAt(j - 2) && a.charAt(i - 2) == b.charAt(j - 1)) {
                    current[j] = Math.min(current[j], before[j - 2] + 1);
                }
                least = Math.min(least, current[j]);
            }
            if (least >= limit) {
                return limit;
            }
            int[] free = before;
            before = last;
            last = current;
            current = free;
        }
        return Math.min(limit, last[b.length()]);
    }
}
