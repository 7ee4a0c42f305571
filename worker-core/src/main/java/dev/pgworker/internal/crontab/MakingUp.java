package dev.pgworker.internal.crontab;

import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.lifecycle.PeriodicService;
import dev.pgworker.internal.store.CrontabStore.Adding;

/**
 * Executes on {@code worker-cron-late} what items that are behind have missed, one chunk after the other, so that items in step do not
 * wait for it. {@link CronScheduler} gives it the chunks and owns all that is known of the items. A chunk that meets an outage is
 * executed again after it.
 */
final class MakingUp extends PeriodicService {

    private final CronExecutor executor;
    private final Runnable whenDone;
    private final AtomicReference<Backfill.@Nullable Chunk> chunk = new AtomicReference<>();
    private final AtomicReference<@Nullable Done> done = new AtomicReference<>();

    /** A chunk, and which of its items have to be tried again. */
    record Done(Backfill.Chunk chunk, CronExecutor.Missed missed) {}

    /**
     * Creates one that is idle.
     *
     * @param whenDone called when a chunk has been executed
     */
    MakingUp(CronExecutor executor, Runnable whenDone, Outage outage) {
        super("worker-cron-late", "add recurring jobs that were missed", outage);
        this.executor = executor;
        this.whenDone = whenDone;
    }

    /** Returns whether there is no chunk under way. */
    boolean isIdle() {
        return chunk.get() == null && done.get() == null;
    }

    /** Has a chunk executed. Only for one that is idle. */
    void begin(Backfill.Chunk next) {
        chunk.set(next);
        wake();
    }

    /** Returns the chunk that has been executed, once; null if there is none. */
    @Nullable Done takeDone() {
        return done.getAndSet(null);
    }

    @Override
    protected Duration work() throws SQLException {
        Backfill.Chunk next = chunk.get();
        if (next != null) {
            CronExecutor.Missed missed = executor.execute(next.due(), true, Adding.BEHIND, this::isStopping);
            done.set(new Done(next, missed));
            chunk.set(null);
            whenDone.run();
        }
        return UNTIL_WOKEN;
    }

    @Override
    protected Duration firstPause() {
        return UNTIL_WOKEN;
    }
}
