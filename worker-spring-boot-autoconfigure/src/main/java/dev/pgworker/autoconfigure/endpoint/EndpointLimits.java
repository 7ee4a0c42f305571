package dev.pgworker.autoconfigure.endpoint;

import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

import org.jspecify.annotations.Nullable;

import dev.pgworker.limit.JobLimits;
import dev.pgworker.limit.LimitAttributes;
import dev.pgworker.limit.LimitStatus;
import dev.pgworker.limit.LimitUsage;

/** What the endpoint shows and changes of limits. */
final class EndpointLimits {

    private static final int USUAL_VALUES = 100;

    private final JobLimits limits;
    private final boolean showPayloads;

    EndpointLimits(JobLimits limits, boolean showPayloads) {
        this.limits = limits;
        this.showPayloads = showPayloads;
    }

    Object list() {
        return Map.of(
                "limits", limits.list().stream().map(LimitStatus::attributes).toList());
    }

    @Nullable Object one(String name, @Nullable String limit, @Nullable String after) {
        Integer most = EndpointParameters.integer("limit", limit);
        EndpointParameters.requireRange("limit", most, 1, 1000);
        int size = most == null ? USUAL_VALUES : most;
        if (after != null && !showPayloads) {
            throw new IllegalArgumentException(
                    "after is a value of payloads, which are hidden unless pgworker.endpoint.show-payloads is true");
        }
        return limits.find(name)
                .map(status -> {
                    Map<String, Object> view = status.attributes();
                    List<LimitUsage> values = limits.usage(name, after, size);
                    view.put("values", showPayloads || !view.containsKey("per") ? values : hidden(values));
                    if (showPayloads && values.size() == size) {
                        view.put("next", values.get(size - 1).value());
                    }
                    return view;
                })
                .orElse(null);
    }

    /** Values come from payloads. */
    private static List<LimitUsage> hidden(List<LimitUsage> values) {
        return IntStream.range(0, values.size())
                .mapToObj(n -> {
                    LimitUsage one = values.get(n);
                    return new LimitUsage("#" + (n + 1), one.used(), one.waiting(), one.tokens(), one.nextStart());
                })
                .toList();
    }

    Object put(@Nullable String name, Map<String, @Nullable String> attributes) {
        return limits.put(LimitAttributes.limit(EndpointParameters.required("name", name), attributes))
                .attributes();
    }

    Object delete(@Nullable String name) {
        return Map.of("changed", limits.delete(EndpointParameters.required("name", name)));
    }
}
