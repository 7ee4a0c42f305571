package dev.pgworker.dashboard;

import java.security.SecureRandom;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.job.BulkResult;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobChange;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobSelection;

/**
 * Changes of many jobs: first their number is shown, then exactly those are changed that were counted, one bulk after the other on
 * a thread of its own, whether or not the tab stays open. Thread-safe.
 */
final class Bulks {

    private static final Logger log = WorkerLog.of(Bulks.class);

    private static final int MOST_JOBS = 100_000;
    private static final int MOST_SELECTIONS = 20;
    private static final int MOST_KEPT = 100;
    private static final int MOST_WAITING = 10;
    private static final int SAMPLE = 5;
    private static final Duration EXPIRES_AFTER = Duration.ofMinutes(10);
    private static final Duration BETWEEN_EVENTS = Duration.ofMillis(250);

    private static final Set<DashboardAction> OF_JOBS = Set.of(
            DashboardAction.RUN_NOW,
            DashboardAction.COMPLETE,
            DashboardAction.FAIL,
            DashboardAction.REMOVE,
            DashboardAction.CANCEL,
            DashboardAction.RESCHEDULE);

    private final LiveHub hub;
    private final Clock clock;
    private final SecureRandom random = new SecureRandom();
    private final ThreadPoolExecutor thread;

    @GuardedBy("this") private final Map<String, Selected> selections = new LinkedHashMap<>();

    @GuardedBy("this") private final Map<String, Bulk> bulks = new LinkedHashMap<>();

    Bulks(LiveHub hub, Clock clock) {
        this.hub = hub;
        this.clock = clock;
        thread = new ThreadPoolExecutor(1, 1, 10, TimeUnit.SECONDS, new ArrayBlockingQueue<>(MOST_WAITING), task -> {
            Thread made = new Thread(task, "worker-dashboard-bulk");
            made.setDaemon(true);
            return made;
        });
        thread.allowCoreThreadTimeOut(true);
    }

    /**
     * Jobs that a user has selected.
     *
     * @param owner the only one who may change them
     */
    private record Selected(
            String owner, String instance, DashboardAction action, JobSelection jobs, Instant expires) {}

    /** One change of many jobs; fields are written by the thread of the bulk alone. */
    private static final class Bulk {
        private final String id;
        private final Source source;
        private final DashboardAction action;
        private final JobSelection jobs;
        private volatile int done;
        private volatile int changed;
        private volatile String state = "running";
        private volatile @Nullable String error;
        private volatile boolean stop;

        Bulk(String id, Source source, DashboardAction action, JobSelection jobs) {
            this.id = id;
            this.source = source;
            this.action = action;
            this.jobs = jobs;
        }

        Map<String, @Nullable Object> view() {
            return new View()
                    .put("id", id)
                    .put("action", action)
                    .put("selected", jobs.ids().size())
                    .put("done", done)
                    .put("changed", changed)
                    .put("state", state)
                    .put("error", error)
                    .map();
        }
    }

    /** Reads which action is meant. */
    static DashboardAction action(Input input) {
        DashboardAction action = input.constant("action", DashboardAction.class);
        if (action == null || !OF_JOBS.contains(action)) {
            throw new IllegalArgumentException(
                    "action must be one of run-now, complete, fail, remove, cancel, reschedule, but is \""
                            + input.text("action") + "\"");
        }
        return action;
    }

    /** Selects what matches, and shows how many jobs that are. */
    View preview(Source source, DashboardAction action, JobQuery filter, Visitor visitor, JobViews views) {
        record Found(JobSelection selection, List<Job> sample) {}
        Found found = source.readPrimary(() -> {
            JobQueries queries = source.instance().jobQueries();
            JobSelection selection = queries.select(filter, MOST_JOBS);
            return new Found(
                    selection,
                    queries.find(selection.ids().stream().limit(SAMPLE).toList(), 0));
        });
        Instant expires = clock.instant().plus(EXPIRES_AFTER);
        String id =
                keep(new Selected(visitor.actingName(), source.instance().name(), action, found.selection(), expires));
        return new View()
                .put("selection", id)
                .put("selected", found.selection().ids().size())
                .put("complete", found.selection().complete())
                .put("sample", found.sample().stream().map(views::bare).toList())
                .put("expiresMs", EXPIRES_AFTER);
    }

    private String newId() {
        byte[] bytes = new byte[18];
        random.nextBytes(bytes);
        return Base64.getUrlEncoder().encodeToString(bytes);
    }

    private synchronized String keep(Selected selected) {
        Instant now = clock.instant();
        selections.values().removeIf(each -> each.expires().isBefore(now));
        if (selections.size() >= MOST_SELECTIONS) {
            selections.remove(selections.keySet().iterator().next());
        }
        String id = newId();
        selections.put(id, selected);
        return id;
    }

    /** Begins to change what was selected, which can be done once. */
    synchronized View start(
            Source source, String selection, DashboardAction action, JobChange change, Visitor visitor) {
        Selected selected = selections.get(selection);
        if (selected == null
                || selected.expires().isBefore(clock.instant())
                || !selected.owner().equals(visitor.actingName())
                || !selected.instance().equals(source.instance().name())) {
            throw new Refusal(404, "The selection has expired, or has been used. Select the jobs again.");
        }
        if (selected.action() != action) {
            throw new Refusal(
                    409,
                    "The jobs have been selected for the action "
                            + selected.action().id() + ".");
        }
        Bulk bulk = new Bulk(newId(), source, action, selected.jobs());
        try {
            thread.execute(() -> run(bulk, change, visitor.actingName()));
        } catch (RejectedExecutionException e) {
            throw new Refusal(503, "Too many changes are waiting. Try again when they are done.");
        }
        selections.remove(selection);
        bulks.put(bulk.id, bulk);
        if (bulks.size() > MOST_KEPT) {
            bulks.remove(bulks.keySet().iterator().next());
        }
        return new View().put("bulk", bulk.id);
    }

    private void run(Bulk bulk, JobChange change, String user) {
        try {
            long[] told = {System.nanoTime()};
            BulkResult result = bulk.source
                    .instance()
                    .jobChanges()
                    .actingAs(user)
                    .change(bulk.jobs, change, (done, changed, total) -> {
                        bulk.done = done;
                        bulk.changed = changed;
                        if (System.nanoTime() - told[0] > BETWEEN_EVENTS.toNanos()) {
                            told[0] = System.nanoTime();
                            tell(bulk);
                        }
                        return !bulk.stop;
                    });
            bulk.done = result.done();
            bulk.changed = result.changed();
            bulk.state = result.done() < result.selected() ? "stopped" : "done";
        } catch (RuntimeException e) {
            bulk.error = Failures.explain(e).sentence();
            bulk.state = "failed";
            log.warn(
                    "A change of {} jobs by {} failed after {}", bulk.jobs.ids().size(), user, bulk.done, e);
        }
        tell(bulk);
    }

    private void tell(Bulk bulk) {
        hub.publish(bulk.source.instance().name(), "bulk", bulk.view());
    }

    private synchronized Bulk find(Source source, String id) {
        Bulk bulk = bulks.get(id);
        if (bulk == null
                || !bulk.source.instance().name().equals(source.instance().name())) {
            throw new Refusal(
                    404, "There is no such change, or it was made through another instance of the application.");
        }
        return bulk;
    }

    Map<String, @Nullable Object> view(Source source, String id) {
        return find(source, id).view();
    }

    DashboardAction actionOf(Source source, String id) {
        return find(source, id).action;
    }

    Map<String, @Nullable Object> stop(Source source, String id) {
        Bulk bulk = find(source, id);
        bulk.stop = true;
        return bulk.view();
    }

    /** Ends what is under way after its current chunk. */
    synchronized void stopAll() {
        bulks.values().forEach(bulk -> bulk.stop = true);
    }

    /** Waits for nothing more than the current chunk. */
    void close() {
        stopAll();
        thread.shutdown();
        try {
            if (!thread.awaitTermination(5, TimeUnit.SECONDS)) {
                log.debug("A change of many jobs is still under way");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
