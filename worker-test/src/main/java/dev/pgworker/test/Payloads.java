package dev.pgworker.test;

import java.util.Objects;
import java.util.Set;

import tools.jackson.core.StreamReadFeature;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

import dev.pgworker.job.Job;
import dev.pgworker.job.Task;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.task.PayloadException;

/** Compares payloads. */
final class Payloads {

    /** What others than the caller put into payloads. */
    private static final Set<String> ADDED = Set.of("_trace", "_cron");

    private static final JsonMapper json = JsonMapper.builder()
            .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
            .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
            .build();

    private final PayloadCodec codec;

    Payloads(PayloadCodec codec) {
        this.codec = codec;
    }

    /** Returns the payload as it is stored when a job with it is added. */
    String json(Object payload, Task<?> task) {
        return task.payloadType() == Object.class
                ? codec.encode("payload", payload)
                : codec.encode("payload", payload, task.payloadType());
    }

    <P> boolean isEqual(Job job, P expected, Task<P> task) {
        return isSameJson(job.payload(), json(expected, task)) || isSameValue(job, expected, task);
    }

    private static boolean isSameJson(String stored, String expected) {
        try {
            JsonNode actual = json.readTree(stored);
            JsonNode wanted = json.readTree(expected);
            if (actual instanceof ObjectNode object) {
                ADDED.stream().filter(name -> !wanted.has(name)).forEach(object::remove);
            }
            return actual.equals(wanted);
        } catch (RuntimeException e) {
            return stored.equals(expected);
        }
    }

    private <P> boolean isSameValue(Job job, P expected, Task<P> task) {
        if (task.payloadType() == Object.class) {
            return false;
        }
        try {
            return Objects.equals(codec.decode(job, task), expected);
        } catch (PayloadException e) {
            return false;
        }
    }
}
