package dev.pgworker.autoconfigure.endpoint;

import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Supplier;

import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobSpec;
import dev.pgworker.schedule.JobSchedules;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.Schedule;
import dev.pgworker.schedule.ScheduleQuery;
import dev.pgworker.schedule.ScheduleStatus;

/** What the endpoint shows and changes of schedules. Payloads are left out. */
final class EndpointSchedules {

    private static final JsonMapper JSON = new JsonMapper();

    private static final int USUAL_RUNS = 5;

    private final JobSchedules schedules;
    private final Supplier<Instant> clock;

    /**
     * Creates the view.
     *
     * @param clock the database's
     */
    EndpointSchedules(JobSchedules schedules, Supplier<Instant> clock) {
        this.schedules = schedules;
        this.clock = clock;
    }

    /** Which schedules are meant, as text. */
    record Filters(
            @Nullable String prefix,
            @Nullable String task,
            @Nullable String paused,
            @Nullable String problem) {}

    Object list(Filters filters, @Nullable String limit, @Nullable String after) {
        Integer most = EndpointParameters.integer("limit", limit);
        EndpointParameters.requireRange("limit", most, 1, 1000);
        int size = most == null ? ScheduleQuery.ALL.limit() : most;
        List<ScheduleStatus> found = schedules.list(new ScheduleQuery(
                given(filters.prefix),
                given(filters.task),
                flag("paused", filters.paused),
                flag("problem", filters.problem),
                given(after),
                size));
        Map<String, Object> view = new LinkedHashMap<>();
        view.put("schedules", found.stream().map(EndpointSchedules::view).toList());
        if (found.size() == size) {
            view.put("next", found.get(size - 1).name());
        }
        return view;
    }

    private static @Nullable Boolean flag(String name, @Nullable String text) {
        return given(text) == null ? null : EndpointParameters.flag(name, text);
    }

    private static @Nullable String given(@Nullable String text) {
        return text == null || text.isBlank() ? null : text.strip();
    }

    @Nullable Object one(String name, @Nullable String runs) {
        Integer count = EndpointParameters.integer("runs", runs);
        EndpointParameters.requireRange("runs", count, 0, 1000);
        return schedules
                .find(name)
                .map(status -> {
                    Map<String, Object> view = view(status);
                    view.put("nextRuns", nextRuns(status, count == null ? USUAL_RUNS : count));
                    return view;
                })
                .orElse(null);
    }

    /** Begins with the run that the database knows; while it is paused, with the first that would be due. */
    private List<Instant> nextRuns(ScheduleStatus status, int count) {
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

    private static Map<String, Object> view(ScheduleStatus status) {
        Map<String, Object> view = new LinkedHashMap<>();
        view.put("name", status.name());
        Schedule schedule = status.schedule();
        if (schedule != null) {
            describe(schedule, view);
        }
        view.put("declared", status.declared());
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
        put(view, "origin", recurrence.origin());
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

    Object trigger(@Nullable String schedule, @Nullable String payload) {
        String name = EndpointParameters.required("schedule", schedule);
        try {
            Job job = given(payload) == null ? schedules.trigger(name) : schedules.trigger(name, object(payload));
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

    Object pause(@Nullable String schedule) {
        return Map.of("changed", schedules.pause(EndpointParameters.required("schedule", schedule)));
    }

    Object resume(@Nullable String schedule) {
        return Map.of("changed", schedules.resume(EndpointParameters.required("schedule", schedule)));
    }

    Object delete(@Nullable String schedule) {
        return Map.of("changed", schedules.delete(EndpointParameters.required("schedule", schedule)));
    }
}
