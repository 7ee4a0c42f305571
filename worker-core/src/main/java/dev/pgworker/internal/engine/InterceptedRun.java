package dev.pgworker.internal.engine;

import java.util.List;

import org.jspecify.annotations.Nullable;

import dev.pgworker.task.BatchResult;
import dev.pgworker.task.JobInterceptor;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.task.TaskRegistration;

/** What is left of a run: the interceptors from a place on, and the handler behind them. */
final class InterceptedRun implements JobInterceptor.Execution {

    private final List<JobInterceptor> interceptors;
    private final int place;
    private final TaskRegistration task;
    private final Attempt attempt;
    private final PayloadCodec codec;

    InterceptedRun(
            List<JobInterceptor> interceptors, int place, TaskRegistration task, Attempt attempt, PayloadCodec codec) {
        this.interceptors = interceptors;
        this.place = place;
        this.task = task;
        this.attempt = attempt;
        this.codec = codec;
    }

    @Override
    public @Nullable BatchResult proceed() throws Exception {
        return place == interceptors.size()
                ? task.run(attempt, codec)
                : interceptors
                        .get(place)
                        .intercept(attempt, new InterceptedRun(interceptors, place + 1, task, attempt, codec));
    }

    @Override
    public @Nullable BatchResult proceed(String payload) throws Exception {
        attempt.show(payload);
        return proceed();
    }
}
