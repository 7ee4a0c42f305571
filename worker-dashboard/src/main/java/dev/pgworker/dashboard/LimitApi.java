package dev.pgworker.dashboard;

import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.jspecify.annotations.Nullable;

import dev.pgworker.limit.JobLimits;
import dev.pgworker.limit.Limit;
import dev.pgworker.limit.LimitAttributes;
import dev.pgworker.limit.LimitStatus;
import dev.pgworker.limit.LimitUsage;

/** What the pages read and change of limits. */
final class LimitApi {

    private static final int MOST_VALUES = 100;

    private LimitApi() {}

    static View list(Source source) {
        JobLimits limits = source.instance().jobLimits();
        return source.readPrimary(() -> new View()
                .put(
                        "limits",
                        limits.list().stream().map(status -> view(status).map()).toList()));
    }

    /**
     * Shows a limit.
     *
     * @param showValues whether the visitor may see the values of its field, which come from payloads
     */
    static View one(Source source, Input input, boolean showValues) {
        String name = input.text("name");
        String after = showValues ? input.text("after") : null;
        JobLimits limits = source.instance().jobLimits();
        LimitStatus status =
                source.readPrimary(() -> name == null ? null : limits.find(name).orElse(null));
        if (status == null) {
            throw noSuch();
        }
        View view = view(status);
        boolean shown = showValues || view.map().get("per") == null;
        Source.Part<List<LimitUsage>> part =
                source.partPrimary("Values are not shown", () -> limits.usage(status.name(), after, MOST_VALUES));
        List<LimitUsage> values = part.value() == null ? List.of() : part.value();
        List<Map<String, @Nullable Object>> rows = new ArrayList<>();
        values.forEach(usage -> rows.add(value(usage, shown ? usage.value() : "#" + (rows.size() + 1))));
        return view.put("values", rows)
                .put("valuesHidden", !shown)
                .put("valuesError", part.error())
                .put(
                        "next",
                        !shown || values.size() < MOST_VALUES
                                ? null
                                : values.get(MOST_VALUES - 1).value());
    }

    private static View view(LimitStatus status) {
        Limit limit = status.limit();
        return new View()
                .put("name", status.name())
                .put("tasks", limit == null ? List.of() : limit.tasks())
                .put("per", limit == null || limit.field().isEmpty() ? null : String.join(".", limit.field()))
                .put("kind", limit == null ? null : kind(limit))
                .put("maxRunning", limit == null ? null : limit.maxRunning())
                .put("maxStarts", limit == null ? null : limit.maxStarts())
                .put("periodMs", limit == null ? null : limit.period())
                .put("burst", limit == null ? null : limit.burst())
                .put("weights", limit == null ? null : limit.weights())
                .put("phase", status.phase())
                .put("declared", status.declared())
                .put("createdAt", status.createdAt())
                .put("updatedAt", status.updatedAt())
                .put("waiting", status.waiting())
                .put("used", status.used());
    }

    private static String kind(Limit limit) {
        return limit.maxRunning() != null ? "running" : limit.weights() != null ? "shares" : "starts";
    }

    private static Map<String, @Nullable Object> value(LimitUsage usage, String value) {
        return new View()
                .put("value", value)
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
        Limit limit = given(input, null);
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

    /**
     * Reads a limit; all mistakes are told at once.
     *
     * @param former the one that is changed, of which names in the path stay as they are, dots included; null for none
     */
    private static Limit given(Input input, @Nullable Limit former) {
        Map<String, @Nullable Object> attributes = new HashMap<>();
        for (String name : List.of("maxRunning", "maxStarts", "period", "burst", "per")) {
            attributes.put(name, input.text(name));
        }
        attributes.put("tasks", input.texts("tasks"));
        attributes.put("weights", input.has("weights") ? input.texts("weights") : null);
        if (former != null && String.join(".", former.field()).equals(attributes.get("per"))) {
            attributes.put("per", former.field());
        }
        String name = input.text("name");
        return LimitAttributes.limit(name == null ? "" : name, attributes);
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
            limits.put(given(input, status.limit()));
            return new View().put("name", name).put("text", name + " was changed.");
        });
    }

    static View delete(Source source, Input input, Visitor visitor) {
        String name = input.given("name");
        boolean existed = acting(source, visitor).delete(name);
        return new View().put("text", name + (existed ? " was deleted." : " no longer existed."));
    }
}
