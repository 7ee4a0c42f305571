package dev.pgworker.autoconfigure.observation;

import java.util.HashMap;
import java.util.Map;

import io.micrometer.observation.transport.SenderContext;
import org.jspecify.annotations.Nullable;

/**
 * What is observed of a call that adds jobs. The trace travels in payloads, if a property says so, and not in the carrier of this context.
 *
 * @since 0.1.0
 */
public final class JobPublishContext extends SenderContext<Map<String, String>> {

    private final @Nullable String task;

    JobPublishContext(@Nullable String task) {
        super((carrier, key, value) -> {
            if (carrier != null) {
                carrier.put(key, value);
            }
        });
        setCarrier(new HashMap<>());
        this.task = task;
    }

    /** Returns the task identifier; null for a call that adds several jobs. */
    public @Nullable String task() {
        return task;
    }
}
