package dev.pgworker.task;

import org.jspecify.annotations.Nullable;

/**
 * Wraps each run of a job of a worker. Several interceptors are called in order, the first one outermost.
 *
 * <p>What an interceptor returns or throws replaces the handler's outcome. It may call the handler and return its
 * result; return without calling the handler, in which case the job succeeds; throw an exception, including {@link
 * JobControlException}, in which case the attempt fails as if the handler had thrown it; or turn one outcome into
 * another after the call. It is called on the handler's thread, within the handler's transaction if the handler is
 * transactional, and before the payload is decoded.
 *
 * @since 0.1.0
 */
@FunctionalInterface
public interface JobInterceptor {

    /**
     * Runs a job, or skips it.
     *
     * @param context the context that the handler will receive
     * @param execution calls the next interceptor, or the handler
     * @return the outcomes of the items of a batch job; null for any other job, and for a batch job whose items all
     *     succeeded
     */
    @Nullable BatchResult intercept(JobContext context, Execution execution) throws Exception;

    /**
     * The remainder of a run. Call at most one of its methods, at most once, on the calling thread.
     *
     * @since 0.1.0
     */
    interface Execution {

        /** Proceeds with the run; throws whatever the handler throws. */
        @Nullable BatchResult proceed() throws Exception;

        /**
         * Proceeds with another payload. The handler receives it, and the context returns it from then on. The row is
         * not changed, so the next attempt starts with the stored payload again.
         *
         * @param payload the payload as JSON text; for a batch job, with the same number of items as before
         */
        @Nullable BatchResult proceed(String payload) throws Exception;
    }
}
