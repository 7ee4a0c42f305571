package dev.pgworker.internal.client;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

import org.jspecify.annotations.Nullable;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.store.EndStore.End;
import dev.pgworker.job.JobHandle;
import dev.pgworker.job.JobResultException;
import dev.pgworker.job.JobResultException.Reason;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.task.PayloadException;

/** Waits for the end of one job. Thread-safe. */
final class JdbcJobHandle<R> implements JobHandle<R> {

    private static final Duration LONGEST = Duration.ofDays(36_500);

    private final long jobId;
    private final Class<R> resultType;
    private final ResultWaits waits;
    private final PayloadCodec codec;
    private final Addition addition;

    /**
     * The transaction that has added the job.
     *
     * @param by the thread that is in it; null if it is over, or another process's
     * @param over completes with whether it may have been committed
     */
    record Addition(@Nullable Thread by, CompletableFuture<Boolean> over) {

        /** A transaction that is over. */
        static Addition past() {
            return new Addition(null, CompletableFuture.completedFuture(true));
        }

        /** The Spring transaction in which the calling thread is. */
        static Addition current() {
            CompletableFuture<Boolean> over = new CompletableFuture<>();
            TransactionSynchronizationManager.registerSynchronization(new TransactionSynchronization() {
                @Override
                public void afterCompletion(int status) {
                    over.complete(status != STATUS_ROLLED_BACK);
                }
            });
            return new Addition(Thread.currentThread(), over);
        }

        boolean isOpenHere() {
            return !over.isDone() && Thread.currentThread().equals(by);
        }
    }

    /**
     * Creates the handle of a job.
     *
     * @param resultType what to read the result as
     * @param codec reads it
     */
    JdbcJobHandle(long jobId, Class<R> resultType, ResultWaits waits, PayloadCodec codec, Addition addition) {
        this.jobId = jobId;
        this.resultType = resultType;
        this.waits = waits;
        this.codec = codec;
        this.addition = addition;
    }

    @Override
    public long jobId() {
        return jobId;
    }

    @Override
    public @Nullable R await(Duration limit) throws InterruptedException, TimeoutException {
        Arguments.requireNonNull("limit", limit);
        if (addition.isOpenHere()) {
            throw new IllegalStateException(
                    "Job " + jobId + " has been added by the transaction in which this thread still is, and no"
                            + " worker sees it before the commit: wait for its result after that");
        }
        CompletableFuture<End> end = new CompletableFuture<>();
        begin(end);
        try {
            Duration most = limit.compareTo(LONGEST) < 0 ? limit : LONGEST;
            return read(end.get(most.toNanos(), TimeUnit.NANOSECONDS));
        } catch (TimeoutException e) {
            throw (TimeoutException)
                    new TimeoutException("Job " + jobId + " has not ended within " + limit).initCause(e);
        } catch (ExecutionException e) {
            throw e.getCause() instanceof RuntimeException refused ? refused : new IllegalStateException(e.getCause());
        } finally {
            end(end);
        }
    }

    @Override
    public CompletableFuture<@Nullable R> future() {
        CompletableFuture<End> end = new CompletableFuture<>();
        CompletableFuture<@Nullable R> result = end.thenApplyAsync(this::read);
        CompletableFuture<@Nullable R> unused = result.whenComplete((value, error) -> end(end));
        begin(end);
        return result;
    }

    private void begin(CompletableFuture<End> end) {
        CompletableFuture<Void> unused = addition.over().thenAccept(committed -> {
            if (jobId == 0 || !committed) {
                end.complete(new End(jobId, null, "absent", null, committed ? "it was skipped" : "it was rolled back"));
            } else if (!end.isDone()) {
                waits.add(jobId, end);
            }
        });
    }

    private void end(CompletableFuture<End> end) {
        if (end.cancel(false)) {
            waits.forget(jobId, end);
        }
    }

    @SuppressWarnings({"unchecked", "TypeParameterUnusedInFormals"}) // who makes a handle ties R to the type
    private @Nullable R read(End end) {
        if (!end.outcome().equals("succeeded")) {
            throw failure(end, reason(end.outcome()), end.error(), null);
        }
        if (end.result() == null) {
            if (end.error() != null) {
                throw failure(end, Reason.UNREADABLE, end.error(), null);
            }
            return null;
        }
        try {
            return (R) codec.decodeResult(
                    "The result of task \"" + end.task() + "\"",
                    end.result(),
                    resultType,
                    "Wait for it with a type that fits what the handler returns");
        } catch (PayloadException e) {
            throw failure(end, Reason.UNREADABLE, e.getMessage(), e);
        }
    }

    private static Reason reason(String outcome) {
        return List.of(Reason.values()).stream()
                .filter(each -> each.name().equalsIgnoreCase(outcome))
                .findFirst()
                .orElse(Reason.UNKNOWN);
    }

    private static JobResultException failure(
            End end, Reason reason, @Nullable String error, @Nullable Throwable cause) {
        return new JobResultException(end.jobId(), end.task(), reason, error, cause);
    }
}
