package dev.pgworker.autoconfigure.endpoint;

import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;

import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobSpec;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.RecurringJob;
import dev.pgworker.schedule.RecurringJob.Origin;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.schedule.RecurringQuery;
import dev.pgworker.schedule.Schedule;

/** What the endpoint shows and changes of recurring jobs. Payloads are left out. */
final class EndpointRecurring {

    /** Keeps every digit of a number. */
    static final JsonMapper JSON = JsonMapper.builder()
            .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
            .build();

    private static final int USUAL_RUNS = 5;

    private final RecurringJobs recurring;
    private final Supplier<Instant> clock;

    /**
     * Creates the view.
     *
     * @param clock the database's
     */
    EndpointRecurring(RecurringJobs recurring, Supplier<Instant> clock) {
        this.recurring = recurring;
        this.clock = clock;
    }

    /** Which recurring jobs are meant, as text. */
    record Filters(
            @Nullable String prefix,
            @Nullable String task,
            @Nullable String paused,
            @Nullable String problem,
            @Nullable String origin) {}

    Object list(Filters filters, @Nullable String limit, @Nullable String after) {
        Integer most = EndpointParameters.integer("limit", limit);
        EndpointParameters.requireRange("limit", most, 1, 1000);
        int size = most == null ? RecurringQuery.ALL.limit() : most;
        Origin origin = EndpointParameters.constant("origin", given(filters.origin), Origin.class);
        List<RecurringJob> found = recurring.list(new RecurringQuery(
                given(filters.prefix),
                given(filters.task),
                flag("paused", filters.paused),
                flag("problem", filters.problem),
                origin == null ? Set.of() : Set.of(origin),
                given(after),
                size));
        Map<String, Object> view = new LinkedHashMap<>();
        view.put("recurring", found.stream().map(EndpointRecurring::view).toList());
        if (found.size() >= size) {
            view.put("next", found.get(found.size() - 1).id());
        }
        return view;
    }

    private static @Nullable Boolean flag(String name, @Nullable String text) {
        return given(text) == null ? null : EndpointParameters.flag(name, text);
    }

    private static @Nullable String given(@Nullable String text) {
        return text == null || text.isBlank() ? null : text.strip();
    }

    @Nullable Object one(String id, @Nullable String runs) {
        Integer count = EndpointParameters.integer("runs", runs);
        EndpointParameters.requireRange("runs", count, 0, 1000);
        return recurring
                .find(id)
                .map(status -> {
                    Map<String, Object> view = view(status);
                    view.put("nextRuns", nextRuns(status, count == null ? USUAL_RUNS : count));
                    return view;
                })
                .orElse(null);
    }

    /** Begins with the run that the database knows; while it is paused, with the first that would be due. */
    private List<Instant> nextRuns(RecurringJob status, int count) {
        Schedule schedule = status.schedule();
        List<Instant> runs = new ArrayList<>();
        if (schedule != null && count > 0) {
            Instant known = status.nextRun();
            if (known != null) {
                runs.add(known);
            }
            if (runs.size() < count) {
                runs.addAll(schedule.next(known == null ? clock.get() : known, count - runs.size()));
            }
        }
        return runs;
    }

    private static Map<String, Object> view(RecurringJob status) {
        Map<String, Object> view = new LinkedHashMap<>();
        view.put("id", status.id());
        view.put("origin", name(status.origin()));
        Schedule schedule = status.schedule();
        if (schedule != null) {
            describe(schedule, view);
        }
        put(view, "nextRun", status.nextRun());
        put(view, "lastRun", status.lastRun());
        put(view, "lastJobId", status.lastJobId());
        put(view, "pausedSince", status.pausedSince());
        put(view, "pausedBy", status.pausedBy());
        put(view, "problem", status.problem());
        put(view, "createdAt", status.createdAt());
        put(view, "updatedAt", status.updatedAt());
        return view;
    }

    private static void describe(Schedule schedule, Map<String, Object> view) {
        Recurrence recurrence = schedule.recurrence();
        JobSpec spec = schedule.job().spec();
        view.put("task", schedule.job().identifier());
        view.put("kind", name(recurrence.kind()));
        put(view, "expression", recurrence.expression());
        put(view, "zone", recurrence.zone());
        put(view, "every", recurrence.every());
        put(view, "rateOrigin", recurrence.origin());
        view.put("overlap", name(schedule.overlap()));
        view.put("misfire", name(schedule.misfire()));
        put(view, "backfill", schedule.backfill());
        put(view, "jitter", schedule.jitter().isZero() ? null : schedule.jitter());
        put(view, "startsAt", schedule.startsAt());
        put(view, "endsAt", schedule.endsAt());
        put(view, "queue", spec.queueName());
        put(view, "priority", spec.priority());
        put(view, "maxAttempts", spec.maxAttempts());
        put(view, "key", spec.jobKey());
        put(view, "flags", spec.flags().isEmpty() ? null : spec.flags());
    }

    private static String name(Enum<?> constant) {
        return constant.name().toLowerCase(Locale.ROOT);
    }

    private static void put(Map<String, Object> view, String name, @Nullable Object value) {
        if (value != null) {
            view.put(name, value);
        }
    }

    Object trigger(@Nullable String name, @Nullable String payload) {
        String id = EndpointParameters.required("name", name);
        try {
            Job job = given(payload) == null ? recurring.trigger(id) : recurring.trigger(id, object(payload));
            return Map.of("job", job.id());
        } catch (IllegalStateException e) {
            // Somebody has written the schedule by SQL, and it cannot be read.
            throw new IllegalArgumentException(e.getMessage(), e);
        }
    }

    private static JsonNode object(@Nullable String payload) {
        try {
            JsonNode object = JSON.readTree(payload);
            if (object.isObject()) {
                return object;
            }
        } catch (JacksonException e) {
            throw new IllegalArgumentException("payload must be a JSON object: " + e.getOriginalMessage(), e);
        }
        throw new IllegalArgumentException("payload must be a JSON object");
    }

    Object pause(@Nullable String name) {
        return Map.of("changed", recurring.pause(EndpointParameters.required("name", name)));
    }

    Object resume(@Nullable String name) {
        return Map.of("changed", recurring.resume(EndpointParameters.required("name", name)));
    }

    Object delete(@Nullable String name) {
        return Map.of("changed", recurring.delete(EndpointParameters.required("name", name)));
    }
}
