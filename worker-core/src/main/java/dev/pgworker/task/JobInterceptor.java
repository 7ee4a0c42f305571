package dev.pgworker.task;

import org.jspecify.annotations.Nullable;

/**
 * Stands around the run of every job of a worker. Several are called in order, the first one outermost.
 *
 * <p>What it returns or throws takes the place of what the handler would: it may call the handler and return its result;
 * return without calling it, and the job succeeds; throw, and the attempt fails as if the handler had thrown, which
 * includes {@link JobControlException}; or turn the one into the other after the call. It is called on the handler's thread,
 * within the handler's transaction if that is transactional, and before the payload is decoded.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public interface JobInterceptor {

    /**
     * Runs a job, or does not.
     *
     * @param context as the handler will see it
     * @param execution what comes next: another interceptor, or the handler
     * @return how the items of a batch went; null for any other job, and for a batch whose items all succeeded
     */
    @Nullable BatchResult intercept(JobContext context, Execution execution) throws Exception;

    /**
     * The rest of a run. Call at most one of its methods, once, on the calling thread.
     *
     * @since 0.1.0
     */
    interface Execution {

        /** Goes on; throws whatever the handler throws. */
        @Nullable BatchResult proceed() throws Exception;

        /**
         * Goes on with another payload. It is what the handler gets and what the context shows from here on; the row is not
         * changed, so that the next attempt begins with the stored payload again.
         *
         * @param payload JSON; of a batch, with as many items as before
         */
        @Nullable BatchResult proceed(String payload) throws Exception;
    }
}
