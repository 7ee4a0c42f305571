package dev.pgworker.internal.schedule;

import java.time.Instant;
import java.util.List;
import java.util.Objects;

import org.jspecify.annotations.Nullable;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

import dev.pgworker.internal.client.ScheduleInterceptorChain;
import dev.pgworker.internal.store.ScheduleRow;
import dev.pgworker.internal.store.ScheduleStep.NewJob;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.ScheduleInterceptor;
import dev.pgworker.schedule.Schedule;
import dev.pgworker.task.PayloadCodec;

/** What an application contributes to schedules: those that it declares, and interceptors that see every job. Immutable. */
public final class SchedulePlan {

    /** Keeps every digit of a number. */
    private static final JsonMapper exact = JsonMapper.builder()
            .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
            .build();

    private final List<Schedule> declared;
    private final PayloadCodec codec;
    private final ScheduleInterceptorChain interceptors;

    /** Creates the plan of one worker. */
    public SchedulePlan(List<Schedule> declared, PayloadCodec codec, List<ScheduleInterceptor> interceptors) {
        this.declared = List.copyOf(declared);
        this.codec = codec;
        List<ScheduleInterceptor> some = List.copyOf(interceptors);
        this.interceptors = new ScheduleInterceptorChain(() -> some);
    }

    /** Returns the schedules that the application declares. */
    public List<Schedule> declared() {
        return declared;
    }

    /**
     * Returns the job of an execution, as the interceptors want it; null for none.
     *
     * @param schedule as it was read from the database, so that its payload is a tree
     * @throws RuntimeException as an interceptor throws it, or if what they return cannot be written
     */
    @Nullable NewJob job(Schedule schedule, MisfireRule.Execution execution, JobSpec spec) {
        ObjectNode payload = (ObjectNode) Objects.requireNonNull(schedule.job().payload());
        ObjectNode tree =
                ScheduleRow.stamped(payload.deepCopy(), schedule.name(), execution.dueAt(), execution.missed());
        JobRequest job = interceptors.apply(JobRequest.of(schedule.job().identifier(), tree, spec));
        if (job == null) {
            return null;
        }
        // A tree has been written by the codec's rules before; another writer would not keep its order and its digits.
        String text = job.payload() instanceof ObjectNode object
                ? exact.writeValueAsString(object)
                : codec.encode("payload", job.payload(), job.payloadType());
        Instant runAt = job.spec().runAt();
        JobSpec complete =
                runAt == null ? job.spec().toBuilder().runAt(execution.dueAt()).build() : job.spec();
        return new NewJob(execution.dueAt(), execution.missed(), job.identifier(), text, complete);
    }
}
