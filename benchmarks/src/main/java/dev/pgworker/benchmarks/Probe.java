package dev.pgworker.benchmarks;

import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.LongAdder;

/** The handler of all JVM contenders: counts, and notes how long stamped jobs waited. */
final class Probe {

    private final LongAdder ran = new LongAdder();
    private final Queue<Wait> waits = new ConcurrentLinkedQueue<>();

    static long nowMicros() {
        return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
    }

    void run(Payload payload) throws InterruptedException {
        if (payload.stamp() > 0) {
            waits.add(new Wait(payload.stamp(), nowMicros() - payload.stamp()));
        }
        if (payload.millis() > 0) {
            Thread.sleep(payload.millis());
        }
        ran.increment();
    }

    /** Counts jobs that have no handler. */
    void count(int jobs) {
        ran.add(jobs);
    }

    long ran() {
        return ran.sum();
    }

    /** Returns the waits since the last call, in microseconds after the stamps. */
    List<Wait> takeWaits() {
        List<Wait> taken = new ArrayList<>();
        for (Wait wait = waits.poll(); wait != null; wait = waits.poll()) {
            taken.add(wait);
        }
        return taken;
    }

    /** Microseconds from a stamp on, written as a pair in JSON. */
    record Wait(long stamp, long micros) {
        @Override
        public String toString() {
            return "[" + stamp + "," + micros + "]";
        }
    }
}
