package dev.pgworker.internal.record;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.store.DurationCounts;
import dev.pgworker.internal.store.StatisticsStore.Row;

/** Counts what becomes of the jobs of one task. Any number of threads count, without a lock, while one takes out what has been counted. */
final class TaskCounter {

    final AtomicLong succeeded = new AtomicLong();
    final AtomicLong retried = new AtomicLong();
    final AtomicLong failed = new AtomicLong();
    private final AtomicLongArray run = new AtomicLongArray(DurationCounts.BUCKETS);
    private final AtomicLongArray waited = new AtomicLongArray(DurationCounts.BUCKETS);

    /** Counts a run of a handler. */
    void ran(long nanos) {
        run.getAndIncrement(DurationCounts.bucket(nanos));
    }

    /** Counts a start. */
    void started(long nanosWaited) {
        waited.getAndIncrement(DurationCounts.bucket(nanosWaited));
    }

    /** Takes out what has been counted; null if nothing has. */
    @Nullable Row take(String task) {
        DurationCounts runs = take(run);
        DurationCounts waits = take(waited);
        Row row = new Row(task, succeeded.getAndSet(0), retried.getAndSet(0), failed.getAndSet(0), runs, waits);
        boolean none = row.succeeded() + row.retried() + row.failed() + runs.total() + waits.total() == 0;
        return none ? null : row;
    }

    private static DurationCounts take(AtomicLongArray counted) {
        DurationCounts result = new DurationCounts();
        for (int bucket = 0; bucket < DurationCounts.BUCKETS; bucket++) {
            if (counted.get(bucket) != 0) {
                result.add(bucket, counted.getAndSet(bucket, 0));
            }
        }
        return result;
    }
}
