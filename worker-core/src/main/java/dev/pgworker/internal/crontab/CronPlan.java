package dev.pgworker.internal.crontab;

import java.lang.reflect.Type;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;

import org.jspecify.annotations.Nullable;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

import dev.pgworker.crontab.CronItem;
import dev.pgworker.crontab.Crontab;
import dev.pgworker.internal.store.CrontabStore.Execution;
import dev.pgworker.job.ScheduleInterceptor;
import dev.pgworker.task.PayloadCodec;

/** A crontab ready to be executed: every item with its zone and its written payload. Immutable. */
public final class CronPlan {

    private static final DateTimeFormatter TIMESTAMP =
            DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.SSS'Z'").withZone(ZoneOffset.UTC);

    /** Keeps every digit of a number. */
    private static final JsonMapper exact = JsonMapper.builder()
            .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
            .build();

    private final List<CronItem> items;
    private final Map<String, ObjectNode> payloads;
    private final @Nullable CronInterception interception;

    private CronPlan(List<CronItem> items, Map<String, ObjectNode> payloads, @Nullable CronInterception interception) {
        this.items = items;
        this.payloads = payloads;
        this.interception = interception;
    }

    /** Returns this plan with interceptors that see every job before it is added. */
    public CronPlan with(List<ScheduleInterceptor> interceptors, PayloadCodec codec) {
        return interceptors.isEmpty() ? this : new CronPlan(items, payloads, new CronInterception(interceptors, codec));
    }

    /** Returns what is to be executed in the place of an execution; null for nothing. */
    @Nullable Execution intercepted(Execution execution) {
        return interception == null ? execution : interception.of(execution);
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
        List<CronItem> items =
                crontab.items().stream().map(item -> item.withDefaultZone(zone)).toList();
        return new CronPlan(items, payloads, null);
    }

    private static ObjectNode payload(CronItem item, PayloadCodec codec) {
        String name = "payload of cron item \"" + item.identifier() + "\"";
        Type type = item.payloadType();
        JsonNode payload = exact.readTree(
                type == null || item.payload() == null
                        ? codec.encode(name, item.payload())
                        : codec.encode(name, item.payload(), type));
        if (payload instanceof ObjectNode object) {
            return object;
        }
        throw new IllegalArgumentException(name + " must be written as a JSON object, which _cron is added to, but is "
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

    /** Returns the execution of an item for a minute. */
    Execution execution(CronItem item, Instant tick, boolean backfilled) {
        String payload = payload(item, tick, backfilled).toString();
        return new Execution(item.identifier(), tick, item.task(), payload, item.spec());
    }

    /** Returns the payload of an item's job for the given time. */
    ObjectNode payload(CronItem item, Instant ts, boolean backfilled) {
        ObjectNode payload =
                Objects.requireNonNull(payloads.get(item.identifier())).deepCopy();
        payload.putObject("_cron").put("ts", TIMESTAMP.format(ts)).put("backfilled", backfilled);
        return payload;
    }
}
