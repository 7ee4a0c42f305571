package dev.pgworker.crontab;

import java.util.List;
import java.util.Optional;

import dev.pgworker.job.Job;

/**
 * Looks at recurring jobs, runs one out of turn, and pauses them in all PgWorkers of the schema. Safe for use by many
 * threads.
 *
 * <p>Items are those of this application's crontab and those that other applications have registered, of which only
 * the names are known here. An unknown identifier is refused with an {@code IllegalArgumentException} that names those
 * there are. If the database cannot be used, each method throws a Spring {@code DataAccessException}.
 *
 * @since 0.1.0
 */
public interface CronAdmin {

    /**
     * Returns all items: this application's in the order of its crontab, then the others by name. Joins the caller's
     * Spring transaction.
     */
    List<CronItemStatus> list();

    /** Returns one item, or nothing if nobody knows it. Joins the caller's Spring transaction. */
    Optional<CronItemStatus> find(String identifier);

    /**
     * Adds a job of one of this application's items, to run at once, paused or not. It is added as the schedule would
     * add it, with the item's options and {@code _cron}, whose {@code ts} is the present time to the millisecond. The
     * schedule itself is not affected.
     *
     * <p>Joins the caller's Spring transaction: workers are woken when it commits.
     *
     * @return the job; under a job key perhaps one that was there before
     * @throws IllegalArgumentException if the item is not in this application's crontab, even if others know it
     */
    Job trigger(String identifier);

    /**
     * Keeps an item from being executed, by the schedule and by backfill, until it is resumed. In a transaction of its
     * own: once this has returned, no PgWorker adds a job of the item, whatever becomes of the caller's transaction. Jobs
     * added before stay. A Graphile Worker on Node.js or in Rust with the same item does not know of pauses.
     *
     * @return whether the item was not paused before
     */
    boolean pause(String identifier);

    /**
     * Ends a pause, in a transaction of its own. The next execution is in a later minute than the present one: what
     * would have been executed up to here is not made up for, even if the item has a fill.
     *
     * @return whether the item was paused
     */
    boolean resume(String identifier);
}
