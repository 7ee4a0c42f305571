package dev.pgworker.crontab;

import java.sql.SQLException;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.event.WorkerEvents;
import dev.pgworker.store.CrontabStore;
import dev.pgworker.store.CrontabStore.Execution;
import dev.pgworker.task.PayloadCodec;

/** Adds the jobs of due items, each with its {@code _cron}, and tells what became of them. */
final class CronJobs {

    private static final Logger log = LoggerFactory.getLogger(CronJobs.class);

    private static final DateTimeFormatter TIMESTAMP =
            DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.SSS'Z'").withZone(ZoneOffset.UTC);

    private final String workerId;
    private final CrontabStore store;
    private final WorkerEvents events;
    private final Map<String, ObjectNode> payloads = new HashMap<>();

    /**
     * Prepares the payloads.
     *
     * @throws IllegalArgumentException if one is not a JSON object
     */
    CronJobs(String workerId, List<CronItem> items, PayloadCodec codec, CrontabStore store, WorkerEvents events) {
        this.workerId = workerId;
        this.store = store;
        this.events = events;
        items.forEach(item -> payloads.put(item.identifier(), payload(item, codec)));
    }

    /** Returns what each job of the item gets, apart from {@code _cron}. */
    static ObjectNode payload(CronItem item, PayloadCodec codec) {
        String name = "payload of cron item \"" + item.identifier() + "\"";
        JsonMapper exact = JsonMapper.builder()
                .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
                .build();
        JsonNode payload = exact.readTree(codec.encode(name, item.payload()));
        if (payload instanceof ObjectNode object) {
            return object;
        }
        throw new IllegalArgumentException(name + " must be written as a JSON object, which _cron is added to, but is "
                + payload.getNodeType().name().toLowerCase(Locale.ROOT));
    }

    /** Adds the jobs that no worker has added yet. */
    void add(List<Backfill.Missed> due, boolean backfilled) throws SQLException {
        if (due.isEmpty()) {
            return;
        }
        Map<String, Instant> latest = new TreeMap<>();
        List<Execution> executions = new ArrayList<>();
        for (Backfill.Missed one : due) {
            CronItem item = one.item();
            latest.put(item.identifier(), one.tick());
            executions.add(new Execution(
                    item.identifier(), one.tick(), item.task(), payload(item, one.tick(), backfilled), item.spec()));
        }
        CrontabStore.Result result = store.execute(executions);
        result.failed().forEach((identifier, error) -> {
            log.error("Cron item {} could not be executed for {}", identifier, latest.get(identifier), error);
            events.publish(new WorkerEvent.CronJobFailed(
                    workerId, identifier, latest.getOrDefault(identifier, Instant.EPOCH), error));
        });
        result.added()
                .forEach((execution, id) -> events.publish(new WorkerEvent.CronJobAdded(
                        workerId, execution.identifier(), execution.tick(), id, backfilled)));
    }

    private String payload(CronItem item, Instant tick, boolean backfilled) {
        ObjectNode payload =
                Objects.requireNonNull(payloads.get(item.identifier())).deepCopy();
        payload.putObject("_cron").put("ts", TIMESTAMP.format(tick)).put("backfilled", backfilled);
        return payload.toString();
    }
}
