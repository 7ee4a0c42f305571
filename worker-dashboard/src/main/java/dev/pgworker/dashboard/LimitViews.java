package dev.pgworker.dashboard;

import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;

import org.jspecify.annotations.Nullable;

import dev.pgworker.limit.JobLimits;
import dev.pgworker.limit.Limit;
import dev.pgworker.limit.LimitStatus;
import dev.pgworker.limit.LimitTotals;
import dev.pgworker.limit.LimitUsage;

/** How pages show limits and how much of them is used. */
final class LimitViews {

    private static final int MOST_VALUES = 100;

    private LimitViews() {}

    static View list(Source source) {
        JobLimits limits = source.instance().jobLimits();
        return source.read(() -> {
            Map<String, LimitTotals> totals =
                    limits.totals().stream().collect(Collectors.toMap(LimitTotals::name, Function.identity()));
            return new View()
                    .put(
                            "limits",
                            limits.list().stream()
                                    .map(status -> view(status, totals.get(status.name()))
                                            .map())
                                    .toList());
        });
    }

    static View one(Source source, Input input) {
        String name = input.text("name");
        JobLimits limits = source.instance().jobLimits();
        return source.read(() -> {
            LimitStatus status = name == null ? null : limits.find(name).orElse(null);
            if (status == null) {
                throw new Refusal(404, "There is no such limit.");
            }
            List<LimitUsage> values = limits.usage(status.name(), input.text("after"), MOST_VALUES);
            return view(status, null)
                    .put("values", values.stream().map(LimitViews::value).toList())
                    .put(
                            "next",
                            values.size() < MOST_VALUES
                                    ? null
                                    : values.get(MOST_VALUES - 1).value());
        });
    }

    private static View view(LimitStatus status, @Nullable LimitTotals totals) {
        Limit limit = status.limit();
        return new View()
                .put("name", status.name())
                .put("tasks", limit == null ? List.of() : limit.tasks())
                .put("per", limit == null || limit.field().isEmpty() ? null : String.join(".", limit.field()))
                .put("maxRunning", limit == null ? null : limit.maxRunning())
                .put("maxStarts", limit == null ? null : limit.maxStarts())
                .put("periodMs", limit == null ? null : limit.period())
                .put("burst", limit == null ? null : limit.burst())
                .put("phase", status.phase())
                .put("declared", status.declared())
                .put("updatedAt", status.updatedAt())
                .put("waiting", totals == null ? null : totals.waiting())
                .put("used", totals == null ? null : totals.used());
    }

    private static Map<String, @Nullable Object> value(LimitUsage usage) {
        return new View()
                .put("value", usage.value())
                .put("used", usage.used())
                .put("waiting", usage.waiting())
                .put("tokens", usage.tokens())
                .put("nextStart", usage.nextStart())
                .map();
    }
}
