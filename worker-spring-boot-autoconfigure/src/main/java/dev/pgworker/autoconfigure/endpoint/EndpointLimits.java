package dev.pgworker.autoconfigure.endpoint;

import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import java.util.stream.Collectors;

import org.jspecify.annotations.Nullable;

import dev.pgworker.limit.JobLimits;
import dev.pgworker.limit.Limit;
import dev.pgworker.limit.LimitStatus;
import dev.pgworker.limit.LimitTotals;
import dev.pgworker.limit.LimitUsage;

/** What the endpoint shows and changes of limits. */
final class EndpointLimits {

    private static final int USUAL_VALUES = 100;

    private final JobLimits limits;

    EndpointLimits(JobLimits limits) {
        this.limits = limits;
    }

    /** The numbers of a limit, as text. */
    record Given(
            @Nullable String tasks,
            @Nullable String maxRunning,
            @Nullable String maxStarts,
            @Nullable String period,
            @Nullable String burst,
            @Nullable String per) {}

    Object list() {
        Map<String, LimitTotals> totals =
                limits.totals().stream().collect(Collectors.toMap(LimitTotals::name, Function.identity()));
        return Map.of(
                "limits",
                limits.list().stream()
                        .map(status -> {
                            Map<String, Object> view = view(status);
                            LimitTotals used = totals.get(status.name());
                            if (used != null) {
                                view.put("waiting", used.waiting());
                                view.put("used", used.used());
                            }
                            return view;
                        })
                        .toList());
    }

    @Nullable Object one(String name, @Nullable String limit, @Nullable String after) {
        Integer most = EndpointParameters.integer("limit", limit);
        EndpointParameters.requireRange("limit", most, 1, 1000);
        int size = most == null ? USUAL_VALUES : most;
        return limits.find(name)
                .map(status -> {
                    Map<String, Object> view = view(status);
                    List<LimitUsage> values = limits.usage(name, after, size);
                    view.put("values", values);
                    if (values.size() == size) {
                        view.put("next", values.get(size - 1).value());
                    }
                    return view;
                })
                .orElse(null);
    }

    private static Map<String, Object> view(LimitStatus status) {
        Map<String, Object> view = new LinkedHashMap<>();
        view.put("name", status.name());
        Limit limit = status.limit();
        if (limit != null) {
            view.put("tasks", limit.tasks());
            put(view, "per", limit.field().isEmpty() ? null : String.join(".", limit.field()));
            put(view, "maxRunning", limit.maxRunning());
            put(view, "maxStarts", limit.maxStarts());
            put(view, "period", limit.period());
            put(view, "burst", limit.burst());
        }
        view.put("phase", status.phase().name().toLowerCase(Locale.ROOT));
        view.put("declared", status.declared());
        view.put("createdAt", status.createdAt());
        view.put("updatedAt", status.updatedAt());
        return view;
    }

    private static void put(Map<String, Object> view, String name, @Nullable Object value) {
        if (value != null) {
            view.put(name, value);
        }
    }

    Object put(@Nullable String name, Given given) {
        String required = EndpointParameters.required("name", name);
        List<String> tasks = Arrays.stream(
                        EndpointParameters.required("tasks", given.tasks).split(","))
                .map(String::strip)
                .toList();
        Integer maxRunning = EndpointParameters.integer("maxRunning", given.maxRunning);
        Integer maxStarts = EndpointParameters.integer("maxStarts", given.maxStarts);
        if ((maxRunning == null) == (maxStarts == null)) {
            throw new IllegalArgumentException("exactly one of maxRunning and maxStarts must be set");
        }
        if (maxRunning != null && (given.period != null || given.burst != null)) {
            throw new IllegalArgumentException(
                    "period and burst belong to maxStarts, and cannot be combined with maxRunning");
        }
        Limit limit = maxRunning != null
                ? Limit.concurrency(required, maxRunning, tasks)
                : rate(required, maxStarts == null ? 0 : maxStarts, given, tasks);
        return view(limits.put(given.per == null || given.per.isBlank() ? limit : limit.per(given.per.strip())));
    }

    private static Limit rate(String name, int maxStarts, Given given, List<String> tasks) {
        Duration period = Objects.requireNonNull(
                EndpointParameters.duration("period", EndpointParameters.required("period", given.period)));
        Integer burst = EndpointParameters.integer("burst", given.burst);
        Limit limit = Limit.rate(name, maxStarts, period, tasks);
        return burst == null ? limit : limit.withBurst(burst);
    }

    Object delete(@Nullable String name) {
        return Map.of("changed", limits.delete(EndpointParameters.required("name", name)));
    }
}
