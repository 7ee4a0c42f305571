package dev.pgworker.internal.crontab;

import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

import org.jspecify.annotations.Nullable;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

import dev.pgworker.crontab.CronItem;
import dev.pgworker.crontab.Crontab;
import dev.pgworker.internal.client.ScheduleInterceptorChain;
import dev.pgworker.internal.store.CrontabStore.Execution;
import dev.pgworker.internal.store.ScheduleRow;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.ScheduleInterceptor;
import dev.pgworker.schedule.Misfire;
import dev.pgworker.schedule.Overlap;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.Schedule;
import dev.pgworker.task.PayloadCodec;

/**
 * A crontab ready to be executed: every item with its zone and its payload as a tree, to which each execution adds {@code
 * _cron} before interceptors see it and the codec writes it. A tree that a crontab's parser made is taken as it is; any other
 * payload becomes one here, by the codec's rules. Immutable.
 */
public final class CronPlan {

    /** Keeps every digit of a number. */
    private static final JsonMapper exact = JsonMapper.builder()
            .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
            .build();

    /** No schedule goes back further. */
    private static final Duration LONGEST_BACKFILL = Duration.ofDays(3_650);

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
        return ScheduleRow.payload(name, codec.encode(name, job.payload(), job.payloadType()));
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
        JobRequest job = interceptors.apply(job(item, null, tick, backfilled));
        if (job == null) {
            return Execution.passedOver(item.identifier(), tick);
        }
        // A tree has been written by the codec's rules before; another writer would not keep its order and its digits.
        String payload = job.payload() instanceof ObjectNode tree
                ? exact.writeValueAsString(tree)
                : codec.encode("payload", job.payload(), job.payloadType());
        return new Execution(item.identifier(), tick, job.identifier(), payload, job.spec());
    }

    /**
     * Returns an item's job for the given time, with {@code _cron}, before interceptors have seen it.
     *
     * @param given a payload to use instead of the item's; null for none
     */
    JobRequest job(CronItem item, @Nullable ObjectNode given, Instant ts, boolean backfilled) {
        ObjectNode payload = given == null ? payload(item) : given;
        return JobRequest.of(item.task(), ScheduleRow.stamped(payload, item.identifier(), ts, backfilled), item.spec());
    }

    private ObjectNode payload(CronItem item) {
        return Objects.requireNonNull(payloads.get(item.identifier())).deepCopy();
    }

    /** Returns what an item does, as a schedule. */
    Schedule schedule(CronItem item) {
        ZoneId zone = Objects.requireNonNull(item.zone());
        Duration fill = item.fill().compareTo(LONGEST_BACKFILL) < 0 ? item.fill() : LONGEST_BACKFILL;
        return Schedule.builder(
                        item.identifier(), Recurrence.crontab(item.schedule(), zone), item.task(), payload(item))
                .spec(item.spec())
                .overlap(Overlap.ALLOW)
                .misfire(fill.isZero() ? Misfire.SKIP : Misfire.RUN_ALL)
                .backfill(fill.isZero() ? null : fill)
                .build();
    }
}
