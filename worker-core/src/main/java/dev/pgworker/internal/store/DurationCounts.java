package dev.pgworker.internal.store;

import java.time.Duration;

/**
 * How many durations there were of each length, in buckets: each is at most half as long again as the one before, so
 * that the middle of a bucket is never further than a fifth from what is in it. {@code pgworker_task_minutes} describes
 * the buckets. Used by one thread.
 */
public final class DurationCounts {

    /** The number of buckets. */
    public static final int BUCKETS = 101;

    /** What an element of the stored array is made of: the number, and the bucket in the bits below. */
    private static final int SHIFT = 7;

    private static final int FIRST_OCTAVE = 13;

    private final long[] counts = new long[BUCKETS];

    /** Returns the bucket of a duration; one below zero counts as zero. */
    public static int bucket(long nanos) {
        if (nanos < 1L << FIRST_OCTAVE) {
            return 0;
        }
        int octave = Long.SIZE - 1 - Long.numberOfLeadingZeros(nanos);
        return 1 + 2 * (octave - FIRST_OCTAVE) + (int) ((nanos >>> (octave - 1)) & 1);
    }

    /** Returns what stands for the durations of a bucket. */
    static Duration middle(int bucket) {
        if (bucket == 0) {
            return Duration.ofNanos(1L << (FIRST_OCTAVE - 1));
        }
        double least = Math.scalb(1.0, FIRST_OCTAVE + (bucket - 1) / 2);
        // The harmonic means of the ends, which are as far from the one as from the other, in parts of these.
        return Duration.ofNanos((long) (bucket % 2 == 1 ? least * 6 / 5 : least * 12 / 7));
    }

    /** Adds a number of durations of a bucket. */
    public void add(int bucket, long count) {
        counts[bucket] += count;
    }

    /** Adds those of another. */
    public void add(DurationCounts other) {
        for (int bucket = 0; bucket < BUCKETS; bucket++) {
            counts[bucket] += other.counts[bucket];
        }
    }

    /** Returns how many there are. */
    public long total() {
        long total = 0;
        for (long count : counts) {
            total += count;
        }
        return total;
    }

    /** Returns the array as the database reads it. */
    public String stored() {
        StringBuilder text = new StringBuilder("{");
        for (int bucket = 0; bucket < BUCKETS; bucket++) {
            if (counts[bucket] > 0) {
                text.append(text.length() == 1 ? "" : ",").append(counts[bucket] << SHIFT | bucket);
            }
        }
        return text.append('}').toString();
    }

    /** Reads what one or more stored arrays hold, written one after the other. */
    public static DurationCounts of(String stored) {
        DurationCounts result = new DurationCounts();
        long element = 0;
        boolean digits = false;
        for (int i = 0; i < stored.length(); i++) {
            char c = stored.charAt(i);
            if (c >= '0' && c <= '9') {
                element = element * 10 + (c - '0');
                digits = true;
            } else if (digits) {
                result.addElement(element);
                element = 0;
                digits = false;
            }
        }
        return result;
    }

    private void addElement(long element) {
        int bucket = (int) (element & ((1 << SHIFT) - 1));
        counts[Math.min(bucket, BUCKETS - 1)] += element >> SHIFT;
    }

    /**
     * Returns what so many of the durations do not exceed. There must be one.
     *
     * @param share greater than 0, at most 1
     */
    public Duration quantile(double share) {
        long rank = (long) Math.ceil(total() * share);
        long passed = 0;
        for (int bucket = 0; bucket < BUCKETS; bucket++) {
            passed += counts[bucket];
            if (passed >= rank && passed > 0) {
                return middle(bucket);
            }
        }
        throw new IllegalStateException("There is no duration");
    }
}
