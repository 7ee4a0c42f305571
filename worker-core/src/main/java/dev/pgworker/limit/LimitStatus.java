package dev.pgworker.limit;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

/**
 * A limit as the database has it. All times are by the database's clock.
 *
 * @param name the limit's name
 * @param limit the limit; null if it cannot be read, because somebody has written it by SQL
 * @param phase whether the limit is in effect
 * @param declared whether an application declares it at its start
 * @param createdAt when it was created
 * @param updatedAt when it was last changed
 * @since 0.1.0
 */
public record LimitStatus(
        String name, @Nullable Limit limit, Phase phase, boolean declared, Instant createdAt, Instant updatedAt) {

    /**
     * Whether a limit is in effect.
     *
     * @since 0.1.0
     */
    public enum Phase {

        /** Workers go through the jobs that wait; until that is done, no job of its tasks starts. */
        APPLYING,

        /** The limit is in effect. */
        ACTIVE,

        /** The limit has been deleted, and jobs that waited for it are made available. */
        REMOVING
    }
}
