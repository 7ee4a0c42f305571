package dev.pgworker.internal.engine.run;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.job.JobProgress;

/**
 * How far a handler has come, as it has reported.
 *
 * @param total 0 if unknown
 * @param text fit for PostgreSQL; null for nothing
 */
public record Progress(long done, long total, @Nullable String text) {

    /** Returns what is recorded of a report. Takes time only for what is kept of the text. */
    static Progress of(long done, long total, @Nullable String text) {
        Arguments.requireNotNegative("done", done);
        Arguments.requireNotNegative("total", total);
        return new Progress(done, total, Arguments.storable(text, JobProgress.LONGEST_TEXT));
    }
}
