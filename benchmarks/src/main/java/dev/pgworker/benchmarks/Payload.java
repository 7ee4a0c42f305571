package dev.pgworker.benchmarks;

import java.io.Serializable;

/**
 * What a job carries.
 *
 * @param stamp the time from which its latency counts, in microseconds since the epoch; 0 if nobody measures it
 * @param millis how long its handler sleeps
 */
record Payload(long stamp, int millis) implements Serializable {

    static final Payload NOTHING = new Payload(0, 0);

    String json() {
        return "{\"stamp\":" + stamp + ",\"millis\":" + millis + "}";
    }
}
