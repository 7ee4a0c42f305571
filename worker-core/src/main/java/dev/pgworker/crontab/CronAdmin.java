package dev.pgworker.crontab;

import java.util.List;
import java.util.Optional;

import dev.pgworker.job.Job;

/**
 * Inspects recurring jobs, triggers one outside its schedule, and pauses them in all PgWorker workers of the schema.
 * Thread-safe.
 *
 * <p>Items are those of this application's crontab and those that other applications have registered, of which only the
 * identifiers are known here. An unknown identifier is rejected with an {@code IllegalArgumentException} that lists the
 * known ones. If the database cannot be used, each method throws a Spring {@code DataAccessException}.
 *
 * @since 0.1.0
 */
public interface CronAdmin {

    /**
     * Returns all items: this application's in the order of its crontab, then the others by name. Joins the caller's
     * Spring transaction.
     */
    List<CronItemStatus> list();

    /** Returns one item, or an empty {@code Optional} if it is unknown. Joins the caller's Spring transaction. */
    Optional<CronItemStatus> find(String identifier);

    /**
     * Adds a job of one of this application's items, to run immediately, even if the item is paused. The job is added
     * in the same way as by the schedule, with the item's options and {@code _cron}, whose {@code ts} is the current
     * time to the millisecond. The schedule itself is not affected.
     *
     * <p>Joins the caller's Spring transaction: workers are woken when it commits.
     *
     * @return the job; with a job key, possibly one that existed before
     * @throws IllegalArgumentException if the item is not in this application's crontab, even if another application
     *     has registered it
     */
    Job trigger(String identifier);

    /**
     * Prevents an item from being executed, by the schedule and by backfill, until it is resumed. Runs in a separate
     * transaction: once this method has returned, no PgWorker worker adds a job of the item, whatever the outcome of
     * the caller's transaction. Jobs added before are kept. A Node.js or Rust Graphile Worker with the same item
     * ignores pauses.
     *
     * @return whether the item was not paused before
     */
    boolean pause(String identifier);

    /**
     * Resumes a paused item, in a separate transaction. The next execution is in a later minute than the current one:
     * executions missed during the pause are not backfilled, even if the item has a fill period.
     *
     * @return whether the item was paused
     */
    boolean resume(String identifier);

    /**
     * Forgets an item that no crontab has any longer, with its pause. Runs in a separate
     * transaction, committed on return. Jobs added before are kept.
     *
     * <p>Any running worker whose crontab has the item registers it again with its next execution, as if it were new:
     * what it missed is not backfilled, and the minute in which it was forgotten may be executed twice. The database
     * does not know which workers have it, so this is for items that have left the last crontab.
     *
     * @return whether it was still known
     * @throws IllegalArgumentException if the item is in this application's crontab; or if it is unknown
     */
    boolean forget(String identifier);
}
