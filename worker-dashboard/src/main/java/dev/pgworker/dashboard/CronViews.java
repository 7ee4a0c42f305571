package dev.pgworker.dashboard;

import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.jspecify.annotations.Nullable;

import dev.pgworker.autoconfigure.WorkerInstance;
import dev.pgworker.history.HistoryEntry;
import dev.pgworker.history.HistoryQuery;
import dev.pgworker.schedule.RecurringJob;
import dev.pgworker.schedule.RecurringQuery;
import dev.pgworker.schedule.Schedule;

/** Recurring jobs as the pages get them: those of a worker, and those of others that share its schema. */
final class CronViews {

    private static final int MOST_ITEMS_WITH_RUNS = 30;
    private static final int RUNS = 5;

    /**
     * An item and who schedules it.
     *
     * @param worker the worker of this application; null if it is another application
     */
    private record Known(RecurringJob status, @Nullable String worker) {

        @Nullable Schedule item() {
            return status.schedule();
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
                                        item, runs.getOrDefault(item.status().id(), Runs.none(null)), views))
                                .toList());
    }

    /** Returns one item; null if none has the identifier. */
    @Nullable Map<String, @Nullable Object> one(Source source, String identifier, JobViews views, int payloadLimit) {
        List<Known> items = source.readPrimary(() -> items(source));
        for (Known item : items) {
            if (item.status().id().equals(identifier)) {
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
        for (RecurringJob status : items(own)) {
            Known ofSibling = ofSiblings.remove(status.id());
            items.add(
                    status.schedule() != null || ofSibling == null
                            ? new Known(status, status.schedule() == null ? null : own.name())
                            : ofSibling);
        }
        // Those that no worker has registered yet.
        items.addAll(ofSiblings.values());
        return items;
    }

    private static List<RecurringJob> items(WorkerInstance instance) {
        return instance.recurringJobs()
                .list(new RecurringQuery(null, null, null, null, Set.of(RecurringJob.Origin.CRONTAB), null, 1000));
    }

    private static Map<String, Known> ofSiblings(Source source) {
        Map<String, Known> known = new LinkedHashMap<>();
        for (WorkerInstance sibling : source.siblings()) {
            for (RecurringJob status : items(sibling)) {
                if (status.schedule() != null) {
                    known.putIfAbsent(status.id(), new Known(status, sibling.name()));
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
            Schedule item = known.item();
            if (item == null) {
                continue;
            }
            if (!isTold(item, items)) {
                runs.put(
                        item.name(),
                        Runs.none("Several recurring jobs run the task "
                                + item.job().identifier()
                                + ", and its runs do not say which. A job key of its own tells them apart."));
            } else if (unread != null) {
                runs.put(item.name(), Runs.none(unread));
            } else if (read++ >= MOST_ITEMS_WITH_RUNS) {
                runs.put(
                        item.name(),
                        Runs.none("Only the first " + MOST_ITEMS_WITH_RUNS + " recurring jobs have their runs here."));
            } else {
                Source.Part<List<HistoryEntry>> part =
                        source.partBeside("The history is not shown", () -> runs(source, item, payloadLimit));
                unread = part.error();
                List<HistoryEntry> entries = part.value();
                runs.put(item.name(), entries == null ? Runs.none(unread) : new Runs(entries, null));
            }
        }
        return runs;
    }

    private static boolean isTold(Schedule item, List<Known> items) {
        String key = item.job().spec().jobKey();
        return items.stream()
                        .map(Known::item)
                        .filter(other -> other != null
                                && other.job().identifier().equals(item.job().identifier())
                                && (key == null || key.equals(other.job().spec().jobKey())))
                        .count()
                == 1;
    }

    private static List<HistoryEntry> runs(Source source, Schedule item, int payloadLimit) {
        HistoryQuery query = HistoryQuery.builder()
                .taskIdentifier(item.job().identifier())
                .key(item.job().spec().jobKey())
                .payloadLimit(payloadLimit)
                .pageSize(RUNS)
                .build();
        return source.queries().history().list(query).entries();
    }

    private static Map<String, @Nullable Object> view(Known known, Runs runs, JobViews views) {
        RecurringJob status = known.status();
        Schedule item = status.schedule();
        View view = new View()
                .put("identifier", status.id())
                .put("task", item == null ? null : item.job().identifier())
                .put("pattern", item == null ? null : item.recurrence().expression())
                .put("words", item == null ? null : RecurrenceWords.describe(item.recurrence()))
                .put(
                        "timezone",
                        item == null || item.recurrence().zone() == null
                                ? null
                                : item.recurrence().zone().getId())
                .put("next", next(status))
                .put("lastExecution", status.lastRun())
                .put("knownSince", status.createdAt())
                .put("registered", status.createdAt() != null)
                .put("pausedSince", status.pausedSince())
                .put("own", item != null)
                .put("worker", known.worker());
        if (item != null) {
            Object payload = item.job().payload();
            String json = payload == null ? null : new String(Json.bytes(payload), StandardCharsets.UTF_8);
            views.putJson(view, "payload", item.job().identifier(), json, PayloadRule.LONG);
        }
        return view.put(
                        "lastRuns",
                        runs.entries().stream()
                                .map(entry -> views.entry(entry, false))
                                .toList())
                .put("lastRunsReason", runs.reason())
                .map();
    }

    private static List<String> next(RecurringJob status) {
        List<String> next = new ArrayList<>();
        Instant execution = status.nextRun();
        while (execution != null && next.size() < RUNS) {
            next.add(execution.toString());
            execution = status.schedule() == null ? null : status.schedule().nextDue(execution);
        }
        return next;
    }
}
