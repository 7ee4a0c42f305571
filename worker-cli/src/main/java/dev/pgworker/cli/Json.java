package dev.pgworker.cli;

import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;

import org.jspecify.annotations.Nullable;
import tools.jackson.databind.SerializationFeature;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.util.RawValue;

import dev.pgworker.job.Job;

/** Results as JSON. Names are those of the actuator endpoint; what is null is left out. */
final class Json {

    private static final JsonMapper INDENTED =
            JsonMapper.builder().enable(SerializationFeature.INDENT_OUTPUT).build();

    private static final JsonMapper ONE_LINE = new JsonMapper();

    private Json() {}

    static String write(Object value) {
        return INDENTED.writeValueAsString(value);
    }

    static String writeLine(Object value) {
        return ONE_LINE.writeValueAsString(value);
    }

    /** Returns an object with these names and values, without those that are null. */
    static Map<String, Object> object(@Nullable Object... namesAndValues) {
        Map<String, Object> object = new LinkedHashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            Object value = namesAndValues[i + 1];
            if (value != null) {
                object.put(String.valueOf(namesAndValues[i]), value instanceof Instant time ? Text.time(time) : value);
            }
        }
        return object;
    }

    /** Returns a job, with its payload as it is stored. */
    static Map<String, Object> job(Job job, String state) {
        return object(
                "id", job.id(),
                "task", job.taskIdentifier(),
                "state", state,
                "payload", new RawValue(job.payload()),
                "queue", job.queueName(),
                "priority", job.priority(),
                "runAt", job.runAt(),
                "attempts", job.attempts(),
                "maxAttempts", job.maxAttempts(),
                "lastError", job.lastError(),
                "createdAt", job.createdAt(),
                "updatedAt", job.updatedAt(),
                "key", job.key(),
                "lockedAt", job.lockedAt(),
                "lockedBy", job.lockedBy(),
                "revision", job.revision(),
                "recoveries", job.recoveries() == 0 ? null : job.recoveries(),
                "flags", job.flags());
    }
}
