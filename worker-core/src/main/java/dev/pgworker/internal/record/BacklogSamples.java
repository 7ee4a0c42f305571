package dev.pgworker.internal.record;

import java.sql.SQLException;
import java.time.Duration;

import dev.pgworker.internal.store.StatisticsStore;

/** Has the backlog recorded, by one of the workers that do this, and what is older than a day deleted. */
final class BacklogSamples extends Recording {

    private static final Duration INTERVAL = Duration.ofSeconds(10);

    /** So that the worker that took the last one is not kept from the next by its own. */
    private static final Duration YOUNGEST = Duration.ofSeconds(9);

    private static final Duration KEPT = Duration.ofHours(24).plusMinutes(5);

    /**
     * A sample takes one part of so many of the time: while a snapshot is held, each reads past what finished jobs
     * left.
     */
    private static final int SHARE = 20;

    private final StatisticsStore store;

    BacklogSamples(StatisticsStore store) {
        super("Samples of the backlog", "pgworker_samples and pgworker_task_minutes");
        this.store = store;
    }

    @Override
    long write() throws SQLException {
        long begin = System.nanoTime();
        boolean unused = store.sample(YOUNGEST, KEPT);
        return Math.max(INTERVAL.toNanos(), SHARE * (System.nanoTime() - begin));
    }
}
