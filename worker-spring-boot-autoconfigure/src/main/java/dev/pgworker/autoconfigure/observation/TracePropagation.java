package dev.pgworker.autoconfigure.observation;

import java.util.function.Supplier;

import io.micrometer.tracing.Span;
import io.micrometer.tracing.Tracer;
import org.springframework.beans.factory.ObjectProvider;
import tools.jackson.databind.JsonNode;

import dev.pgworker.job.JobRequest;
import dev.pgworker.job.ScheduleInterceptor;
import dev.pgworker.task.PayloadCodec;

/** Writes the current trace into the payloads of jobs that are added. */
final class TracePropagation implements ScheduleInterceptor {

    private final ObjectProvider<Tracer> tracer;
    private final Supplier<Boolean> enabled;
    private final PayloadCodec codec;

    /**
     * Creates an interceptor.
     *
     * @param enabled whether whoever runs the jobs goes on with the trace; asked when jobs are added
     */
    TracePropagation(ObjectProvider<Tracer> tracer, Supplier<Boolean> enabled, PayloadCodec codec) {
        this.tracer = tracer;
        this.enabled = enabled;
        this.codec = codec;
    }

    @Override
    public JobRequest beforeSchedule(JobRequest request) {
        if (!enabled.get()) {
            return request;
        }
        Span span = tracer.getObject().currentSpan();
        if (span == null || span.isNoop()) {
            return request;
        }
        String json = codec.encode("payload", request.payload(), request.payloadType());
        JsonNode payload = PayloadTrace.of(span.context()).writtenInto(json);
        return JobRequest.of(request.identifier(), payload, request.spec());
    }
}
