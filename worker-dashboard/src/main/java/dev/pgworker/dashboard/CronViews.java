package dev.pgworker.dashboard;

import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.jspecify.annotations.Nullable;

import dev.pgworker.autoconfigure.WorkerInstance;
import dev.pgworker.crontab.CronItem;
import dev.pgworker.crontab.CronItemStatus;
import dev.pgworker.history.HistoryEntry;
import dev.pgworker.history.HistoryQuery;

/** Recurring jobs as the pages get them: those of a worker, and those of others that share its schema. */
final class CronViews {

    private static final int MOST_ITEMS_WITH_RUNS = 30;
    private static final int RUNS = 5;

    /**
     * An item and who schedules it.
     *
     * @param worker the worker of this application; null if it is another application
     */
    private record Known(CronItemStatus status, @Nullable String worker) {

        @Nullable CronItem item() {
            return status.item();
        }
    }

    /**
     * The last runs of an item.
     *
     * @param reason why there are none; null if there is no reason but that none is kept
     */
    private record Runs(
            List<HistoryEntry> entries, @Nullable String reason) {

        static Runs none(@Nullable String reason) {
            return new Runs(List.of(), reason);
        }
    }

    View view(Source source, JobViews views, int payloadLimit) {
        List<Known> items = source.readPrimary(() -> items(source));
        Map<String, Runs> runs = runs(source, items, items, payloadLimit);
        return new View()
                .put(
                        "items",
                        items.stream()
                                .map(item -> view(
                                        item, runs.getOrDefault(item.status().identifier(), Runs.none(null)), views))
                                .toList());
    }

    /** Returns one item; null if none has the identifier. */
    @Nullable Map<String, @Nullable Object> one(Source source, String identifier, JobViews views, int payloadLimit) {
        List<Known> items = source.readPrimary(() -> items(source));
        for (Known item : items) {
            if (item.status().identifier().equals(identifier)) {
                Map<String, Runs> runs = runs(source, List.of(item), items, payloadLimit);
                return view(item, runs.getOrDefault(identifier, Runs.none(null)), views);
            }
        }
        return null;
    }

    private static List<Known> items(Source source) {
        WorkerInstance own = source.instance();
        Map<String, Known> ofSiblings = ofSiblings(source);
        List<Known> items = new ArrayList<>();
        for (CronItemStatus status : own.cronAdmin().list()) {
            Known ofSibling = ofSiblings.remove(status.identifier());
            items.add(
                    status.item() != null || ofSibling == null
                            ? new Known(status, status.item() == null ? null : own.name())
                            : ofSibling);
        }
        // Those that no worker has registered yet.
        items.addAll(ofSiblings.values());
        return items;
    }

    private static Map<String, Known> ofSiblings(Source source) {
        Map<String, Known> known = new LinkedHashMap<>();
        for (WorkerInstance sibling : source.siblings()) {
            for (CronItemStatus status : sibling.cronAdmin().list()) {
                if (status.item() != null) {
                    known.putIfAbsent(status.identifier(), new Known(status, sibling.name()));
                }
            }
        }
        return known;
    }

    /**
     * Returns the runs of some items. A run knows its task and its key, but not the item; where several of all items have both
     * in common, none is shown.
     */
    private static Map<String, Runs> runs(Source source, List<Known> some, List<Known> items, int payloadLimit) {
        Map<String, Runs> runs = new LinkedHashMap<>();
        String unread = null;
        int read = 0;
        for (Known known : some) {
            CronItem item = known.item();
            if (item == null) {
                continue;
            }
            if (!isTold(item, items)) {
                runs.put(
                        item.identifier(),
                        Runs.none("Several recurring jobs run the task " + item.task()
                                + ", and its runs do not say which. A job key of its own tells them apart."));
            } else if (unread != null) {
                runs.put(item.identifier(), Runs.none(unread));
            } else if (read++ >= MOST_ITEMS_WITH_RUNS) {
                runs.put(
                        item.identifier(),
                        Runs.none("Only the first " + MOST_ITEMS_WITH_RUNS + " recurring jobs have their runs here."));
            } else {
                Source.Part<List<HistoryEntry>> part =
                        source.partBeside("The history is not shown", () -> runs(source, item, payloadLimit));
                unread = part.error();
                List<HistoryEntry> entries = part.value();
                runs.put(item.identifier(), entries == null ? Runs.none(unread) : new Runs(entries, null));
            }
        }
        return runs;
    }

    private static boolean isTold(CronItem item, List<Known> items) {
        String key = item.spec().jobKey();
        return items.stream()
                        .map(Known::item)
                        .filter(other -> other != null
                                && other.task().equals(item.task())
                                && (key == null || key.equals(other.spec().jobKey())))
                        .count()
                == 1;
    }

    private static List<HistoryEntry> runs(Source source, CronItem item, int payloadLimit) {
        HistoryQuery query = HistoryQuery.builder()
                .taskIdentifier(item.task())
                .key(item.spec().jobKey())
                .payloadLimit(payloadLimit)
                .pageSize(RUNS)
                .build();
        return source.queries().history().list(query).entries();
    }

    private static Map<String, @Nullable Object> view(Known known, Runs runs, JobViews views) {
        CronItemStatus status = known.status();
        CronItem item = status.item();
        View view = new View()
                .put("identifier", status.identifier())
                .put("task", item == null ? null : item.task())
                .put("pattern", item == null ? null : item.schedule())
                .put("words", item == null ? null : CronWords.describe(item.schedule(), item.zone()))
                .put(
                        "timezone",
                        item == null || item.zone() == null ? null : item.zone().getId())
                .put("next", next(status))
                .put("lastExecution", status.lastExecution())
                .put("knownSince", status.knownSince())
                .put("registered", status.isRegistered())
                .put("pausedSince", status.pausedSince())
                .put("own", item != null)
                .put("worker", known.worker());
        if (item != null) {
            Object payload = item.job().payload();
            String json = payload == null ? null : new String(Json.bytes(payload), StandardCharsets.UTF_8);
            views.putJson(view, "payload", item.task(), json, PayloadRule.LONG);
        }
        return view.put(
                        "lastRuns",
                        runs.entries().stream()
                                .map(entry -> views.entry(entry, false))
                                .toList())
                .put("lastRunsReason", runs.reason())
                .map();
    }

    private static List<String> next(CronItemStatus status) {
        List<String> next = new ArrayList<>();
        Instant execution = status.nextExecution();
        while (execution != null && next.size() < RUNS) {
            next.add(execution.toString());
            execution = status.item() == null ? null : status.item().nextDue(execution);
        }
        return next;
    }
}
