package dev.pgworker.job;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeoutException;

import org.jspecify.annotations.Nullable;

/**
 * A job whose result you can wait for. It does not matter in which process the job runs, and which kind of worker ends it.
 *
 * <p>The result is what a handler of PgWorker returned, or gave to {@link dev.pgworker.task.JobContext#result}. It is null if the handler returned
 * nothing, and if a worker of another kind or a person ended the job as succeeded. A retry is not an end. A job that has failed for good may be
 * retried by hand; who waits after that waits for the new end.
 *
 * <p>A process has one thread that waits for all, on the notifications of its worker and by a statement for all from time to time.
 * Thread-safe.
 *
 * @param <R> the type of the result
 * @since 0.1.0
 */
public interface JobHandle<R> {

    /** Returns the id of the job; 0 if an interceptor has skipped it. */
    long jobId();

    /**
     * Waits for the end of the job on the calling thread. Holds no connection meanwhile.
     *
     * @param limit how long to wait at most; zero or less to look once
     * @return the result
     * @throws JobResultException if the job ended without success, or if there is no result that fits the type, or if nothing is known
     *     of the job
     * @throws TimeoutException if the job has not ended by then; it continues
     * @throws IllegalStateException if the calling thread is in the transaction that has added the job: no worker sees it before the commit
     */
    @Nullable R await(Duration limit) throws InterruptedException, TimeoutException;

    /**
     * Returns a future of the result. It may be asked for in the transaction that has added the job, and then ends after its commit or
     * rollback. What depends on it runs on the common pool or the executor that it names. To cancel it ends the waiting, not the job.
     *
     * @return a new future, which completes with the result or with a {@link JobResultException}
     */
    CompletableFuture<@Nullable R> future();
}
