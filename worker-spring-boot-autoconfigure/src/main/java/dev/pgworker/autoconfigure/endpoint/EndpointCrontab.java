package dev.pgworker.autoconfigure.endpoint;

import java.util.LinkedHashMap;
import java.util.Map;

import org.jspecify.annotations.Nullable;

import dev.pgworker.crontab.CronAdmin;
import dev.pgworker.crontab.CronItem;
import dev.pgworker.crontab.CronItemStatus;

/** What the endpoint shows and changes of recurring jobs. */
final class EndpointCrontab {

    private final CronAdmin admin;

    EndpointCrontab(CronAdmin admin) {
        this.admin = admin;
    }

    Object list() {
        return Map.of("items", admin.list().stream().map(EndpointCrontab::view).toList());
    }

    @Nullable Object one(String identifier) {
        return admin.find(identifier).map(EndpointCrontab::view).orElse(null);
    }

    /** Leaves the payload out. */
    private static Map<String, Object> view(CronItemStatus status) {
        Map<String, Object> view = new LinkedHashMap<>();
        view.put("identifier", status.identifier());
        view.put("inThisCrontab", status.isInThisCrontab());
        view.put("registered", status.isRegistered());
        CronItem item = status.item();
        if (item != null) {
            view.put("task", item.task());
            view.put("schedule", item.schedule());
            put(view, "zone", item.zone());
            put(view, "fill", item.fill().isZero() ? null : item.fill());
        }
        put(view, "nextExecution", status.nextExecution());
        put(view, "lastExecution", status.lastExecution());
        put(view, "knownSince", status.knownSince());
        put(view, "pausedSince", status.pausedSince());
        return view;
    }

    private static void put(Map<String, Object> view, String name, @Nullable Object value) {
        if (value != null) {
            view.put(name, value);
        }
    }

    Object trigger(@Nullable String item) {
        return Map.of(
                "job", admin.trigger(EndpointParameters.required("item", item)).id());
    }

    Object pause(@Nullable String item) {
        return Map.of("changed", admin.pause(EndpointParameters.required("item", item)));
    }

    Object resume(@Nullable String item) {
        return Map.of("changed", admin.resume(EndpointParameters.required("item", item)));
    }

    Object forget(@Nullable String item) {
        return Map.of("changed", admin.forget(EndpointParameters.required("item", item)));
    }
}
