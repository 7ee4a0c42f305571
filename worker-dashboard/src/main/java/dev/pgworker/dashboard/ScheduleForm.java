package dev.pgworker.dashboard;

import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.Supplier;

import org.jspecify.annotations.Nullable;

import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobSpec;
import dev.pgworker.schedule.Misfire;
import dev.pgworker.schedule.Overlap;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.Schedule;

/** Reads schedules from requests; wrong values are refused all together, each by its name. */
final class ScheduleForm {

    private static final String SOME_NAME = "preview";

    /** Allows anything else of a schedule that is allowed at all. */
    private static final Recurrence SOME_TIME = Recurrence.fixedDelay(Duration.ofDays(1));

    private final Clock clock;

    ScheduleForm(Clock clock) {
        this.clock = clock;
    }

    /**
     * Reads a schedule.
     *
     * @param payload of its jobs; asked for once
     */
    Schedule schedule(Input input, Supplier<?> payload) {
        Mistakes mistakes = new Mistakes();
        String name = mistakes.read(() -> apart(input.given("name"), SOME_NAME).name());
        String task = mistakes.read(
                () -> apart(SOME_NAME, input.required("task")).job().identifier());
        Recurrence recurrence = recurrence(input, mistakes);
        Object given = mistakes.read(payload);
        List<Consumer<Schedule.Builder>> parts = new ArrayList<>(times(input));
        parts.add(builder -> builder.overlap(constant(input, "overlap", Overlap.class, Overlap.SKIP)));
        parts.add(builder -> builder.misfire(constant(input, "misfire", Misfire.class, Misfire.SKIP)));
        parts.add(builder -> builder.backfill(input.duration("backfill")));
        tryEach(parts, mistakes);
        JobSpec spec = spec(input, mistakes);
        mistakes.refuse();
        Schedule.Builder builder = Schedule.builder(
                        Objects.requireNonNull(name),
                        Objects.requireNonNull(recurrence),
                        Objects.requireNonNull(task),
                        given)
                .spec(spec);
        parts.forEach(part -> part.accept(builder));
        return builder.build();
    }

    /** Reads when a schedule is due, and nothing else of it. */
    Schedule preview(Input input) {
        Mistakes mistakes = new Mistakes();
        Recurrence recurrence = recurrence(input, mistakes);
        List<Consumer<Schedule.Builder>> parts = times(input);
        tryEach(parts, mistakes);
        mistakes.refuse();
        Schedule.Builder builder = Schedule.builder(SOME_NAME, Objects.requireNonNull(recurrence), SOME_NAME, null);
        parts.forEach(part -> part.accept(builder));
        return builder.build();
    }

    private static Schedule apart(String name, String task) {
        return Schedule.builder(name, SOME_TIME, task, null).build();
    }

    private static List<Consumer<Schedule.Builder>> times(Input input) {
        return List.of(
                builder -> {
                    Duration jitter = input.duration("jitter");
                    builder.jitter(jitter == null ? Duration.ZERO : jitter);
                },
                builder -> builder.startsAt(input.instant("startsAt")),
                builder -> builder.endsAt(input.instant("endsAt")));
    }

    private static <E extends Enum<E>> E constant(Input input, String name, Class<E> type, E standard) {
        E value = input.constant(name, type);
        return value == null ? standard : value;
    }

    /** Returns null if there is a mistake. */
    private @Nullable Recurrence recurrence(Input input, Mistakes mistakes) {
        Recurrence.Kind kind = mistakes.read(() -> {
            input.required("kind");
            return input.constant("kind", Recurrence.Kind.class);
        });
        if (kind == null) {
            return null;
        }
        return switch (kind) {
            case CRONTAB, CRON -> pattern(kind, input, mistakes);
            case FIXED_RATE -> rate(input, mistakes);
            case FIXED_DELAY -> mistakes.read(() -> Recurrence.fixedDelay(input.requiredDuration("every")));
        };
    }

    private static @Nullable Recurrence pattern(Recurrence.Kind kind, Input input, Mistakes mistakes) {
        ZoneId zone = mistakes.read(() -> input.requiredZone("zone"));
        ZoneId any = zone == null ? ZoneOffset.UTC : zone;
        return mistakes.read(() -> {
            String expression = input.required("expression");
            return kind == Recurrence.Kind.CRON
                    ? Recurrence.cron(expression, any)
                    : Recurrence.crontab(expression, any);
        });
    }

    private @Nullable Recurrence rate(Input input, Mistakes mistakes) {
        Instant origin = mistakes.read(
                () -> Recurrence.fixedRate(Duration.ofDays(1), origin(input)).origin());
        Instant any = origin == null ? Instant.EPOCH : origin;
        return mistakes.read(() -> Recurrence.fixedRate(input.requiredDuration("every"), any));
    }

    private Instant origin(Input input) {
        Instant origin = input.instant("origin");
        return origin == null ? clock.instant().truncatedTo(ChronoUnit.SECONDS) : origin;
    }

    /** Returns what is right of it if there is a mistake. */
    private static JobSpec spec(Input input, Mistakes mistakes) {
        String key = input.text("key");
        List<Consumer<JobSpec.Builder>> parts = List.of(
                spec -> spec.queueName(input.text("queue")),
                spec -> spec.jobKey(key).jobKeyMode(key == null ? null : input.constant("keyMode", JobKeyMode.class)),
                spec -> spec.priority(input.integer("priority")),
                spec -> spec.maxAttempts(input.integer("maxAttempts")),
                spec -> spec.flags(input.texts("flags")));
        JobSpec.Builder whole = JobSpec.builder();
        for (Consumer<JobSpec.Builder> part : parts) {
            boolean isRight = mistakes.isRight(() -> {
                JobSpec.Builder apart = JobSpec.builder();
                part.accept(apart);
                return apart.build();
            });
            if (isRight) {
                part.accept(whole);
            }
        }
        return whole.build();
    }

    /** Tries each part apart from the others: a schedule would tell the first mistake only. */
    private static void tryEach(List<Consumer<Schedule.Builder>> parts, Mistakes mistakes) {
        for (Consumer<Schedule.Builder> part : parts) {
            boolean unused = mistakes.isRight(() -> {
                Schedule.Builder apart = Schedule.builder(SOME_NAME, SOME_TIME, SOME_NAME, null);
                part.accept(apart);
                return apart.build();
            });
        }
    }
}
