package dev.pgworker.task;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

import org.jspecify.annotations.Nullable;

/**
 * How each item of a batch job went, in the order of its payload. The job is completed if all succeeded; otherwise it is
 * retried with the failed items alone.
 *
 * @since 0.1.0
 */
public final class BatchResult {

    private final List<@Nullable Throwable> errors;

    private BatchResult(List<@Nullable Throwable> errors) {
        this.errors = Collections.unmodifiableList(errors);
    }

    /**
     * The work on one item.
     *
     * @since 0.1.0
     */
    @FunctionalInterface
    public interface ItemHandler<T> {

        /** Does the work; an exception fails this item alone. */
        void handle(T item) throws Exception;
    }

    /**
     * Handles the items one after the other on the calling thread, and notes for each whether it failed. After an
     * interrupt no further item is begun: those left count as failed and stay for the next attempt.
     */
    public static <T> BatchResult forEach(List<T> items, ItemHandler<? super T> handler) {
        List<@Nullable Throwable> errors = new ArrayList<>(items.size());
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
     * Returns a result made of one entry for each item: null where it succeeded, otherwise what went wrong. If there are
     * more or fewer entries than items, the whole job fails.
     */
    public static BatchResult of(List<? extends @Nullable Throwable> errors) {
        return new BatchResult(new ArrayList<>(errors));
    }

    /** Returns one entry for each item: null where it succeeded, otherwise what went wrong. */
    public List<@Nullable Throwable> errors() {
        return errors;
    }
}
