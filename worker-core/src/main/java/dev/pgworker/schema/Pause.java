package dev.pgworker.schema;

import java.time.Duration;

/** A wait that fails startup when it is interrupted. */
final class Pause {

    private Pause() {}

    /** Waits for so long. */
    static void of(Duration time) {
        try {
            Thread.sleep(time.toMillis());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new SchemaException("Startup was interrupted while waiting.", "Start the application again.");
        }
    }
}
