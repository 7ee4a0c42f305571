package dev.pgworker.dashboard;

import java.time.Duration;
import java.util.List;
import java.util.Objects;

import org.jspecify.annotations.Nullable;

import dev.pgworker.limit.Limit;

/** Reads limits from requests; wrong values are refused all together, each by its name. */
final class LimitForm {

    private static final String SOME_NAME = "some";

    private static final Duration SOME_PERIOD = Duration.ofDays(1);

    /** What is limited. */
    private enum Kind {
        RUNNING,
        STARTS
    }

    private LimitForm() {}

    /**
     * Reads a limit.
     *
     * @param former the one that is changed, of which names in the path stay as they are, dots included; null for none
     */
    static Limit limit(Input input, @Nullable Limit former) {
        Mistakes mistakes = new Mistakes();
        String name = mistakes.read(() -> some(input.given("name"), SOME_NAME).name());
        List<String> tasks = mistakes.read(() -> tasks(input));
        Kind kind = mistakes.read(() -> {
            input.required("kind");
            return input.constant("kind", Kind.class);
        });
        Limit numbers = kind == null ? null : kind == Kind.RUNNING ? running(input, mistakes) : starts(input, mistakes);
        List<String> field = mistakes.read(() -> field(input, former));
        mistakes.refuse();
        Limit checked = Objects.requireNonNull(numbers);
        String given = Objects.requireNonNull(name);
        Limit limit = checked.maxRunning() == null
                ? Limit.rate(
                                given,
                                Objects.requireNonNull(checked.maxStarts()),
                                Objects.requireNonNull(checked.period()),
                                Objects.requireNonNull(tasks))
                        .withBurst(Objects.requireNonNull(checked.burst()))
                : Limit.concurrency(given, checked.maxRunning(), Objects.requireNonNull(tasks));
        return limit.per(Objects.requireNonNull(field));
    }

    private static Limit some(String name, String task) {
        return Limit.concurrency(name, 1, task);
    }

    private static List<String> tasks(Input input) {
        List<String> tasks = input.texts("tasks");
        if (tasks.isEmpty()) {
            throw new IllegalArgumentException("tasks is required: the names of 1 to 100 tasks");
        }
        return Limit.concurrency(SOME_NAME, 1, tasks).tasks();
    }

    private static @Nullable Limit running(Input input, Mistakes mistakes) {
        return mistakes.read(() -> Limit.concurrency(SOME_NAME, number(input, "maxRunning"), SOME_NAME));
    }

    private static @Nullable Limit starts(Input input, Mistakes mistakes) {
        Integer starts = mistakes.read(() -> Limit.rate(SOME_NAME, number(input, "maxStarts"), SOME_PERIOD, SOME_NAME)
                .maxStarts());
        Duration period = mistakes.read(() -> Limit.rate(SOME_NAME, 1, input.requiredDuration("period"), SOME_NAME)
                .period());
        return mistakes.read(() -> {
            Integer burst = input.integer("burst");
            if (starts == null || period == null) {
                return null;
            }
            Limit rate = Limit.rate(SOME_NAME, starts, period, SOME_NAME);
            return burst == null ? rate : rate.withBurst(burst);
        });
    }

    private static int number(Input input, String name) {
        input.required(name);
        return Objects.requireNonNull(input.integer(name));
    }

    private static List<String> field(Input input, @Nullable Limit former) {
        String per = input.text("per");
        if (per == null) {
            return List.of();
        }
        return former != null && per.equals(String.join(".", former.field()))
                ? former.field()
                : some(SOME_NAME, SOME_NAME).per(per).field();
    }
}
