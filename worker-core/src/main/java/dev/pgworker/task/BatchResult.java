package dev.pgworker.task;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;

/**
 * The outcome of each item of a batch job, in the order of its payload. The job is completed if all items succeeded;
 * otherwise it is retried with only the failed items.
 *
 * @since 0.1.0
 */
public final class BatchResult {

    private final List<@Nullable Throwable> errors;

    private BatchResult(List<@Nullable Throwable> errors) {
        this.errors = Collections.unmodifiableList(errors);
    }

    /**
     * Handles one item.
     *
     * @since 0.1.0
     */
    @FunctionalInterface
    public interface ItemHandler<T> {

        /** Handles the item; an exception fails only this item. */
        void handle(T item) throws Exception;
    }

    /**
     * Handles the items one after the other on the calling thread, and records for each whether it failed. After an
     * interrupt, no further item is started: the remaining ones count as failed and are left to the next attempt.
     */
    public static <T> BatchResult forEach(List<T> items, ItemHandler<? super T> handler) {
        List<@Nullable Throwable> errors =
                new ArrayList<>(Arguments.requireNonNull("items", items).size());
        Arguments.requireNonNull("handler", handler);
        InterruptedException interrupt = null;
        for (T item : items) {
            if (interrupt == null && Thread.currentThread().isInterrupted()) {
                interrupt = new InterruptedException("The worker interrupted the batch before this item");
            }
            errors.add(interrupt == null ? handle(item, handler) : interrupt);
        }
        return new BatchResult(errors);
    }

    private static <T> @Nullable Throwable handle(T item, ItemHandler<? super T> handler) {
        try {
            handler.handle(item);
            return null;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return e;
        } catch (Exception e) {
            return e;
        }
    }

    /**
     * Returns a result with one entry for each item: null if it succeeded, otherwise the error. If the number of
     * entries differs from the number of items, the attempt fails for the whole job.
     */
    public static BatchResult of(List<? extends @Nullable Throwable> errors) {
        return new BatchResult(new ArrayList<>(Arguments.requireNonNull("errors", errors)));
    }

    /** Returns one entry for each item: null if it succeeded, otherwise the error. */
    public List<@Nullable Throwable> errors() {
        return errors;
    }
}
