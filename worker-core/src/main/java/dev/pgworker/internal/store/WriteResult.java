package dev.pgworker.internal.store;

import java.util.Locale;

/** What the database has made of an outcome. */
public enum WriteResult {
    /** The job runs again, and the attempt counts. */
    RETRIED,
    /** The job has failed permanently. */
    FAILED,
    /** The job runs again, and the attempt does not count. */
    BACK,
    /** The job was superseded or removed by its key while it ran, and never runs again. */
    SUPERSEDED,
    /** The job was cancelled while it ran, and is deleted. */
    CANCELLED,
    /** The job is this claim's, but another transaction has locked its row: write it again. */
    BUSY,
    /** The job is not this claim's any more. */
    LOST,
    /** There is no such job. */
    GONE;

    static WriteResult of(String name) {
        return valueOf(name.toUpperCase(Locale.ROOT));
    }
}
