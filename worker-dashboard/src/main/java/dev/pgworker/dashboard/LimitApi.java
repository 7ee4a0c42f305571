package dev.pgworker.dashboard;

import java.time.Instant;
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

/** What the pages read and change of limits. */
final class LimitApi {

    private static final int MOST_VALUES = 100;

    private LimitApi() {}

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
                throw noSuch();
            }
            List<LimitUsage> values = limits.usage(status.name(), input.text("after"), MOST_VALUES);
            return view(status, null)
                    .put("values", values.stream().map(LimitApi::value).toList())
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
                .put("kind", limit == null ? null : limit.isRate() ? "starts" : "running")
                .put("maxRunning", limit == null ? null : limit.maxRunning())
                .put("maxStarts", limit == null ? null : limit.maxStarts())
                .put("periodMs", limit == null ? null : limit.period())
                .put("burst", limit == null ? null : limit.burst())
                .put("phase", status.phase())
                .put("declared", status.declared())
                .put("createdAt", status.createdAt())
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

    private static Refusal noSuch() {
        return new Refusal(404, "There is no such limit.");
    }

    private static JobLimits acting(Source source, Visitor visitor) {
        return source.instance().jobLimits().actingAs(visitor.actingName());
    }

    static View create(Source source, Input input, Visitor visitor) {
        Limit limit = LimitForm.limit(input, null);
        return source.change(() -> {
            JobLimits limits = acting(source, visitor);
            LimitStatus former = limits.find(limit.name()).orElse(null);
            if (former != null) {
                throw former.phase() == LimitStatus.Phase.REMOVING
                        ? new Refusal(409, "name must be another one until the limit of this name has been removed.")
                        : taken();
            }
            LimitStatus status = limits.put(limit);
            if (!status.createdAt().equals(status.updatedAt())) {
                // Somebody else has made one in between; the transaction is rolled back.
                throw taken();
            }
            return new View().put("name", limit.name()).put("text", limit.name() + " was created.");
        });
    }

    private static Refusal taken() {
        return new Refusal(409, "name must be another one: there is a limit of this name.");
    }

    /** Changes a limit as it was read: what somebody else has changed since is not overwritten. */
    static View change(Source source, Input input, Visitor visitor) {
        String name = input.given("name");
        Instant readAs = input.instant("updatedAt");
        return source.change(() -> {
            JobLimits limits = acting(source, visitor);
            LimitStatus status = limits.find(name).orElseThrow(LimitApi::noSuch);
            if (status.declared()) {
                throw new Refusal(
                        409,
                        "An application declares this limit at its start, and would change it back. Change it there.");
            }
            if (status.phase() == LimitStatus.Phase.REMOVING) {
                throw new Refusal(409, "The limit has been deleted. Create another one when it has been removed.");
            }
            if (!status.updatedAt().equals(readAs)) {
                throw new Refusal(409, "The limit has been changed meanwhile. Close this, and look at it again.");
            }
            limits.put(LimitForm.limit(input, status.limit()));
            return new View().put("name", name).put("text", name + " was changed.");
        });
    }

    static View delete(Source source, Input input, Visitor visitor) {
        String name = input.given("name");
        boolean existed = acting(source, visitor).delete(name);
        return new View().put("text", name + (existed ? " was deleted." : " did not exist any more."));
    }
}
