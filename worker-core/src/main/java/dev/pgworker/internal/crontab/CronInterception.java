package dev.pgworker.internal.crontab;

import java.util.List;

import org.jspecify.annotations.Nullable;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.internal.store.CrontabStore.Execution;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.ScheduleInterceptor;
import dev.pgworker.task.PayloadCodec;

/** Asks interceptors about the jobs of recurring items. */
final class CronInterception {

    /** Keeps every digit of a number. */
    private static final JsonMapper exact = JsonMapper.builder()
            .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
            .build();

    private final List<ScheduleInterceptor> interceptors;
    private final PayloadCodec codec;

    CronInterception(List<ScheduleInterceptor> interceptors, PayloadCodec codec) {
        this.interceptors = interceptors;
        this.codec = codec;
    }

    /** Returns the execution as the interceptors want it; null for none. Its minute stays. */
    @Nullable Execution of(Execution execution) {
        JobRequest request = JobRequest.of(execution.task(), exact.readTree(execution.payload()), execution.spec());
        for (ScheduleInterceptor interceptor : interceptors) {
            request = interceptor.beforeSchedule(request);
            if (request == null) {
                return null;
            }
        }
        String payload = request.payloadType() == null
                ? codec.encode("payload", request.payload())
                : codec.encode("payload", request.payload(), request.payloadType());
        return new Execution(execution.identifier(), execution.tick(), request.identifier(), payload, request.spec());
    }
}
