package dev.pgworker.internal.engine.claim;

/**
 * How a claim went.
 *
 * @param count how many jobs it brought
 * @param mayHaveMore whether the database may hold more due jobs
 * @param wantsSecond whether there is enough to do for another chain of claims
 * @param passedOver whether somebody held queues for the moment, so that it is worth looking again soon
 */
public record FetchResult(int count, boolean mayHaveMore, boolean wantsSecond, boolean passedOver) {

    FetchResult(int count, boolean mayHaveMore) {
        this(count, mayHaveMore, false, false);
    }

    /** Returns whether it is worth claiming again at once, or when what has been claimed is done. */
    public boolean mayGoOn() {
        return count > 0 || mayHaveMore;
    }
}
