package dev.pgworker.test;

import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.JobHandle;

/**
 * A job in memory whose end the test decides.
 *
 * @param <R> the type of the result
 */
@SuppressWarnings("unchecked") // the test gives the result, as what it is
record TestJobHandle<R>(long jobId, CompletableFuture<Optional<Object>> end) implements JobHandle<R> {

    @Override
    public @Nullable R await(Duration limit) throws InterruptedException, TimeoutException {
        try {
            return (R) end.get(limit.toNanos(), TimeUnit.NANOSECONDS).orElse(null);
        } catch (ExecutionException e) {
            throw (RuntimeException) e.getCause();
        }
    }

    @SuppressWarnings("NullAway") // it does not see the annotation in the compiled interface
    @Override
    public CompletableFuture<@Nullable R> future() {
        return end.thenApplyAsync(result -> (R) result.orElse(null));
    }
}
