package dev.pgworker.dashboard;

import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;

import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobSpec;
import dev.pgworker.schedule.Misfire;
import dev.pgworker.schedule.Overlap;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.Schedule;

/** Reads schedules from requests; a wrong value is refused by its name. */
final class ScheduleForm {

    private static final String PREVIEWED = "preview";

    private final Clock clock;

    ScheduleForm(Clock clock) {
        this.clock = clock;
    }

    /**
     * Reads a schedule.
     *
     * @param payload of its jobs
     */
    Schedule schedule(Input input, Object payload) {
        return times(Schedule.builder(input.given("name"), recurrence(input), input.required("task"), payload), input)
                .spec(spec(input))
                .overlap(constant(input, "overlap", Overlap.class, Overlap.ALLOW))
                .misfire(constant(input, "misfire", Misfire.class, Misfire.SKIP))
                .backfill(input.duration("backfill"))
                .build();
    }

    /** Reads when a schedule is due, and nothing else of it. */
    Schedule preview(Input input) {
        return times(Schedule.builder(PREVIEWED, recurrence(input), PREVIEWED, null), input)
                .build();
    }

    private static Schedule.Builder times(Schedule.Builder builder, Input input) {
        Duration jitter = input.duration("jitter");
        if (jitter != null) {
            builder.jitter(jitter);
        }
        return builder.startsAt(input.instant("startsAt")).endsAt(input.instant("endsAt"));
    }

    private static <E extends Enum<E>> E constant(Input input, String name, Class<E> type, E standard) {
        E value = input.constant(name, type);
        return value == null ? standard : value;
    }

    private Recurrence recurrence(Input input) {
        Recurrence.Kind kind = input.constant("kind", Recurrence.Kind.class);
        if (kind == null) {
            throw new IllegalArgumentException("kind is required");
        }
        return switch (kind) {
            case CRONTAB -> Recurrence.crontab(input.required("expression"), input.requiredZone("zone"));
            case CRON -> Recurrence.cron(input.required("expression"), input.requiredZone("zone"));
            case FIXED_RATE -> Recurrence.fixedRate(input.requiredDuration("every"), origin(input));
            case FIXED_DELAY -> Recurrence.fixedDelay(input.requiredDuration("every"));
        };
    }

    private Instant origin(Input input) {
        Instant origin = input.instant("origin");
        return origin == null ? clock.instant().truncatedTo(ChronoUnit.SECONDS) : origin;
    }

    private static JobSpec spec(Input input) {
        String key = input.text("key");
        return JobSpec.builder()
                .queueName(input.text("queue"))
                .jobKey(key)
                .jobKeyMode(key == null ? null : input.constant("keyMode", JobKeyMode.class))
                .priority(input.integer("priority"))
                .maxAttempts(input.integer("maxAttempts"))
                .flags(input.texts("flags"))
                .build();
    }
}
