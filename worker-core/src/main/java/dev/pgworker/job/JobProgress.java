package dev.pgworker.job;

import java.time.Instant;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * How far a running job has come, as its handler has reported it.
 *
 * @param done how much is done, in units of the handler's choice; not negative
 * @param total how much there is to do, in the same units; 0 if unknown
 * @param text what is being done, at most 1,000 characters, of which those that PostgreSQL cannot store are replaced; null
 *     for nothing
 * @param updatedAt when this was recorded, by the database's clock
 * @since 0.1.0
 */
public record JobProgress(long done, long total, @Nullable String text, Instant updatedAt) {

    /** The number of characters after which the text is cut. */
    public static final int LONGEST_TEXT = 1_000;

    /** Cuts the text, and replaces what PostgreSQL cannot store. */
    public JobProgress {
        text = Arguments.storable(text, LONGEST_TEXT);
    }
}
