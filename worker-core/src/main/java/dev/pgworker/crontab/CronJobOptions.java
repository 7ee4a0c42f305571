package dev.pgworker.crontab;

import java.time.Duration;
import java.time.ZoneId;
import java.util.List;
import java.util.function.BiConsumer;

import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;

/**
 * The attributes of a {@link CronJob} for what to add, in which zone and under which name; those that are wrong have
 * been noted.
 */
record CronJobOptions(
        String task,
        @Nullable String id,
        @Nullable ZoneId zone,
        @Nullable Duration fill,
        JobSpec spec,
        @Nullable ObjectNode payload) {

    static CronJobOptions read(String task, CronJob given, AttributeReader reader) {
        String unused = reader.read("task", task, Arguments::requireIdentifier);
        String id = reader.read("id", given.id(), Arguments::requireIdentifier);
        ZoneId zone = reader.read("zone", given.zone(), text -> CrontabOptions.zone("zone", text));
        Duration fill = reader.read("fill", given.fill(), CrontabOptions::fill);
        JobSpec spec = new SpecReader(reader).read(given);
        ObjectNode payload = reader.read("payload", given.payload(), CronJobOptions::object);
        return new CronJobOptions(task, id, zone, fill, spec, payload);
    }

    /** Returns the name of the item or schedule. */
    String name() {
        return id == null ? task : id;
    }

    /** Returns what each execution adds; nothing must have been wrong. */
    JobRequest job() {
        return JobRequest.of(task, payload, spec);
    }

    private static ObjectNode object(String payload) {
        try {
            JsonNode value = Json5.parse(payload);
            if (value instanceof ObjectNode object) {
                return object;
            }
            throw new IllegalArgumentException("payload must be a JSON5 object { }");
        } catch (Json5.InvalidJson5Exception e) {
            throw new IllegalArgumentException(
                    "payload " + e.getMessage() + ", at \"" + payload.substring(e.offset()) + "\"", e);
        }
    }

    /** Puts the attributes together that are right. */
    private static final class SpecReader {

        private final AttributeReader reader;
        private final JobSpec.Builder spec = JobSpec.builder();

        SpecReader(AttributeReader reader) {
            this.reader = reader;
        }

        JobSpec read(CronJob given) {
            set("maxAttempts", number(given.maxAttempts()), (its, text) -> its.maxAttempts(Integer.valueOf(text)));
            set("queueName", given.queueName(), JobSpec.Builder::queueName);
            set("priority", number(given.priority()), (its, text) -> its.priority(Integer.valueOf(text)));
            set("jobKey", given.jobKey(), (its, key) -> its.jobKey(key).jobKeyMode(given.jobKeyMode()));
            if (given.jobKey().isEmpty() && given.jobKeyMode() != JobKeyMode.REPLACE) {
                reader.add("jobKeyMode", given.jobKeyMode().name(), "jobKeyMode requires a jobKey");
            }
            if (given.flags().length > 0) {
                List<String> flags = reader.readAll("flags", given.flags());
                set("flags", flags.toString(), (its, text) -> its.flags(flags));
            }
            return spec.build();
        }

        /** Tries an attribute alone before it is taken. */
        private void set(String attribute, String raw, BiConsumer<JobSpec.Builder, String> set) {
            String right = reader.read(attribute, raw, text -> {
                requireRight(set, text);
                return text;
            });
            if (right != null) {
                set.accept(spec, right);
            }
        }

        private static void requireRight(BiConsumer<JobSpec.Builder, String> set, String text) {
            JobSpec.Builder alone = JobSpec.builder();
            set.accept(alone, text);
            JobSpec unused = alone.build();
        }

        private static String number(int value) {
            return value == 0 ? "" : Integer.toString(value);
        }
    }
}
