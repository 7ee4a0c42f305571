package dev.pgworker.benchmarks;

import java.io.Serializable;

import com.fasterxml.jackson.annotation.JsonInclude;
import org.jspecify.annotations.Nullable;

/**
 * What a job carries.
 *
 * @param stamp the time from which its latency counts, in microseconds since the epoch; 0 if nobody measures it
 * @param millis how long its handler sleeps
 * @param text what makes it long, without characters that JSON escapes; null for nothing
 */
record Payload(
        long stamp,
        int millis,
        @JsonInclude(JsonInclude.Include.NON_NULL) @Nullable String text) implements Serializable {

    Payload(long stamp, int millis) {
        this(stamp, millis, null);
    }

    static final Payload NOTHING = new Payload(0, 0);

    String json() {
        return "{\"stamp\":" + stamp + ",\"millis\":" + millis + (text == null ? "" : ",\"text\":\"" + text + "\"")
                + "}";
    }
}
