package dev.pgworker.step;

import java.time.Duration;

import org.jspecify.annotations.Nullable;

/**
 * Sends signals to jobs that wait for them in {@link JobSteps#await}. A signal is sent on the connection of the caller's Spring transaction, and is
 * received if that commits; nothing is waited for. Of several jobs that wait for a name, one receives a signal: the one that has waited longest. A signal for
 * which none waits is kept. Thread-safe.
 *
 * @since 0.1.0
 */
public interface JobSignals {

    /**
     * Sends a signal, which is kept for {@code pgworker.steps.keep-signals}.
     *
     * @param name 1 to 128 characters, without {@code #}
     * @param payload what the job receives, of at most 1 MB as JSON; null for nothing
     * @throws IllegalArgumentException if an argument is not allowed; the message names it
     * @throws org.springframework.dao.DataAccessException if the database refuses it
     */
    void send(String name, @Nullable Object payload);

    /**
     * Sends a signal.
     *
     * @param keepFor how long it is kept if no job waits for it; 1 second to 3650 days
     * @throws IllegalArgumentException if an argument is not allowed; the message names it
     * @throws org.springframework.dao.DataAccessException if the database refuses it
     */
    void send(String name, @Nullable Object payload, Duration keepFor);
}
