package dev.pgworker.internal.engine.queue;

import java.util.concurrent.TimeUnit;

/** How long handlers take, as a moving mean, and how many jobs they finish within a time. Not safe for use by several threads. */
final class Pace {

    /** Work that may wait for a handler of this worker while a more urgent job is added. */
    static final long AHEAD_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    /** Work of a queue that is claimed together: its next run is claimed when that is done. */
    static final long RUN_NANOS = TimeUnit.MILLISECONDS.toNanos(200);

    private static final double WEIGHT = 1.0 / 8;

    /** How many runs it takes to trust the mean with one more job. */
    private static final int MEASURED_PER_JOB = 4;

    private double meanNanos;
    private int measured;

    /** Takes the time of one run in. */
    void ran(long nanos) {
        meanNanos = measured == 0 ? nanos : meanNanos + WEIGHT * (nanos - meanNanos);
        measured = Math.min(measured + 1, Integer.MAX_VALUE - 1);
    }

    /** Forgets how much has been measured, so that the answers begin small again. */
    void doubt() {
        measured = 0;
    }

    /** Returns how many jobs so many handlers finish within that time, at most the limit; few while few are measured. */
    int jobs(int handlers, long nanos, int limit) {
        double estimate = handlers * (double) nanos / Math.max(meanNanos, 1);
        return Math.min((int) Math.min(estimate, limit), measured / MEASURED_PER_JOB);
    }
}
