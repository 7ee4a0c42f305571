package dev.pgworker.internal.crontab;

import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;

import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

import dev.pgworker.crontab.CronItem;
import dev.pgworker.crontab.Crontab;
import dev.pgworker.internal.client.ScheduleInterceptorChain;
import dev.pgworker.internal.store.CrontabStore.Execution;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.ScheduleInterceptor;
import dev.pgworker.task.PayloadCodec;

/**
 * A crontab ready to be executed: every item with its zone and its payload as a tree, to which each execution adds {@code
 * _cron} before interceptors see it and the codec writes it. A tree that a crontab's parser made is taken as it is; any other
 * payload becomes one here, by the codec's rules. Immutable.
 */
public final class CronPlan {

    private static final DateTimeFormatter TIMESTAMP = DateTimeFormatter.ofPattern(
                    "uuuu-MM-dd'T'HH:mm:ss.SSS'Z'", Locale.ROOT)
            .withZone(ZoneOffset.UTC);

    /** Keeps every digit of a number. */
    private static final JsonMapper exact = JsonMapper.builder()
            .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
            .build();

    private final List<CronItem> items;
    private final Map<String, ObjectNode> payloads;
    private final PayloadCodec codec;
    private final ScheduleInterceptorChain interceptors;

    private CronPlan(
            List<CronItem> items,
            Map<String, ObjectNode> payloads,
            PayloadCodec codec,
            ScheduleInterceptorChain interceptors) {
        this.items = items;
        this.payloads = payloads;
        this.codec = codec;
        this.interceptors = interceptors;
    }

    /**
     * Prepares a crontab.
     *
     * @param zone whose local time the patterns mean that name no zone
     * @throws IllegalArgumentException if a payload is not written as a JSON object
     */
    public static CronPlan of(Crontab crontab, ZoneId zone, PayloadCodec codec) {
        Map<String, ObjectNode> payloads = new HashMap<>();
        crontab.items().forEach(item -> payloads.put(item.identifier(), payload(item, codec)));
        List<CronItem> items = crontab.withDefaultZone(zone).items();
        return new CronPlan(items, payloads, codec, new ScheduleInterceptorChain(List::of));
    }

    /** Returns this plan with interceptors that see every job before it is added. */
    public CronPlan with(List<ScheduleInterceptor> some) {
        return new CronPlan(items, payloads, codec, new ScheduleInterceptorChain(() -> some));
    }

    private static ObjectNode payload(CronItem item, PayloadCodec codec) {
        JobRequest job = item.job();
        if (job.payload() instanceof ObjectNode tree) {
            return tree.deepCopy();
        }
        String name = "payload of cron item \"" + item.identifier() + "\"";
        JsonNode payload = exact.readTree(codec.encode(name, job.payload(), job.payloadType()));
        if (payload instanceof ObjectNode object) {
            return object;
        }
        throw new IllegalArgumentException(
                name + " must be serialized as a JSON object, to which _cron is added, but is "
                        + payload.getNodeType().name().toLowerCase(Locale.ROOT));
    }

    /** Returns true if there is nothing to execute. */
    public boolean isEmpty() {
        return items.isEmpty();
    }

    /** Returns the items, each with the zone that applies to it, in the order of the crontab. */
    public List<CronItem> items() {
        return items;
    }

    /**
     * Returns the execution of an item for a minute, as the interceptors want it: passed over if they want none.
     *
     * @throws RuntimeException as an interceptor throws it, or if what they return cannot be written
     */
    Execution execution(CronItem item, Instant tick, boolean backfilled) {
        JobRequest job = interceptors.apply(job(item, tick, backfilled));
        if (job == null) {
            return Execution.passedOver(item.identifier(), tick);
        }
        // A tree has been written by the codec's rules before; another writer would not keep its order and its digits.
        String payload = job.payload() instanceof ObjectNode tree
                ? exact.writeValueAsString(tree)
                : codec.encode("payload", job.payload(), job.payloadType());
        return new Execution(item.identifier(), tick, job.identifier(), payload, job.spec());
    }

    /** Returns an item's job for the given time, with {@code _cron}, before interceptors have seen it. */
    JobRequest job(CronItem item, Instant ts, boolean backfilled) {
        ObjectNode payload =
                Objects.requireNonNull(payloads.get(item.identifier())).deepCopy();
        payload.putObject("_cron")
                .put("ts", TIMESTAMP.format(ts))
                .put("backfilled", backfilled)
                .put("schedule", item.identifier());
        return JobRequest.of(item.task(), payload, item.spec());
    }
}
