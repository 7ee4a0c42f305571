package dev.pgworker.dashboard;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.job.Job;
import dev.pgworker.job.RunningJob;

/**
 * Tells open tabs what has changed. One thread reads for all of them: every two seconds once for each worker that somebody looks
 * at, however many tabs there are. The thread ends with the last tab.
 */
final class LiveHub {

    private static final Logger log = WorkerLog.of(LiveHub.class);

    static final int MOST_CLIENTS = 100;

    /** As many as one user may open. */
    static final int MOST_OF_ONE = 20;

    /** As many jobs as all tabs together may show. */
    private static final int MOST_IDS = 2_000;

    private static final Duration INTERVAL = Duration.ofSeconds(2);

    /** Then a tab asks again, and shows that it still may. */
    private static final Duration LONGEST_STREAM = Duration.ofSeconds(50);

    private static final int ROUNDS_BETWEEN_COMMENTS = 7;

    private static final byte[] BEGIN = "retry: 1000\n\n".getBytes(StandardCharsets.UTF_8);
    private static final byte[] COMMENT = ":\n\n".getBytes(StandardCharsets.UTF_8);

    private final Sources sources;
    private final Overviews overviews;
    private final DatabaseWork work;
    private final PayloadRule payloads;
    private final Clock clock;
    private final LongSupplier nanos;

    private final List<LiveClient> clients = new CopyOnWriteArrayList<>();

    @GuardedBy("this") private @Nullable Thread thread;

    @GuardedBy("this") private boolean stopped;

    @GuardedBy("this") private boolean asked;

    LiveHub(Sources sources, Overviews overviews, DatabaseWork work, PayloadRule payloads, Clock clock) {
        this.sources = sources;
        this.overviews = overviews;
        this.work = work;
        this.payloads = payloads;
        this.clock = clock;
        this.nanos = System::nanoTime;
    }

    /** Keeps the request open, and sends it events from now on. */
    void subscribe(Source source, Set<Long> ids, HttpServletRequest request, HttpServletResponse response)
            throws IOException {
        if (!request.isAsyncSupported()) {
            throw new Refusal(503, "A filter or servlet of the application does not support asynchronous requests.");
        }
        String user = Visitor.of(request).name();
        String full = full(user);
        if (full != null) {
            throw new Refusal(503, full);
        }
        response.setContentType("text/event-stream;charset=UTF-8");
        response.setHeader("X-Accel-Buffering", "no");
        AsyncContext context = request.startAsync();
        context.setTimeout(LONGEST_STREAM.multipliedBy(2).toMillis());
        LiveClient client = new LiveClient(
                source.instance().name(),
                user,
                ids,
                nanos.getAsLong(),
                context,
                response.getOutputStream(),
                clients::remove);
        context.addListener(client);
        client.send(BEGIN);
        if (!add(client)) {
            // The browser asks again, and is refused with the reason.
            client.end();
            return;
        }
        try {
            response.getOutputStream().setWriteListener(client);
        } catch (IllegalStateException | UnsupportedOperationException e) {
            // Servers say the first where a filter has made the request synchronous or has set a listener of its own,
            // and the streams of filters that keep answers back say the second.
            client.end();
            throw new Refusal(503, "A filter of the application does not let answers be written bit by bit.");
        }
    }

    /** Returns why this user may not open another stream; null if he may. */
    private @Nullable String full(@Nullable String user) {
        if (clients.size() >= MOST_CLIENTS) {
            return "More than " + MOST_CLIENTS + " tabs are open. Reload this one later.";
        } else if (user != null
                && clients.stream().filter(client -> user.equals(client.user())).count() >= MOST_OF_ONE) {
            return "You have opened more than " + MOST_OF_ONE + " tabs. Close some of them.";
        }
        return null;
    }

    /** Returns false if there is no room any more: others may have come since that was asked. */
    private synchronized boolean add(LiveClient client) {
        if (stopped || full(client.user()) != null) {
            return false;
        }
        clients.add(client);
        asked = true;
        if (thread == null) {
            thread = new Thread(this::run, "worker-dashboard-live");
            thread.setDaemon(true);
            thread.start();
        } else {
            notifyAll();
        }
        return true;
    }

    /** Tells the tabs of a worker something, at once. */
    void publish(String instance, String event, Object data) {
        byte[] bytes = LiveClient.event(event, Json.bytes(data));
        for (LiveClient client : clients) {
            if (client.instance().equals(instance)) {
                client.send(bytes);
            }
        }
    }

    int clients() {
        return clients.size();
    }

    synchronized void start() {
        stopped = false;
    }

    /** Ends all streams at once, so that nobody waits for them. */
    void stop() {
        synchronized (this) {
            stopped = true;
            notifyAll();
        }
        clients.forEach(LiveClient::end);
    }

    private void run() {
        int round = 0;
        while (goesOn()) {
            try {
                round(++round % ROUNDS_BETWEEN_COMMENTS == 0);
            } catch (RuntimeException | Error e) {
                log.warn("The open tabs of the dashboard could not be told what has changed", e);
            }
            pause();
        }
    }

    /** Decides under the lock under which tabs are added, so that none is added to a thread that ends. */
    private synchronized boolean goesOn() {
        if (stopped || clients.isEmpty()) {
            thread = null;
            return false;
        }
        asked = false;
        return true;
    }

    private void pause() {
        long end = nanos.getAsLong() + INTERVAL.toNanos();
        synchronized (this) {
            while (!stopped && !asked) {
                long left = (end - nanos.getAsLong()) / 1_000_000;
                if (left <= 0) {
                    return;
                }
                try {
                    wait(left);
                } catch (InterruptedException e) {
                    // Nobody interrupts this thread in order to stop it.
                    log.debug("Interrupted", e);
                }
            }
        }
    }

    private void round(boolean comment) {
        long now = nanos.getAsLong();
        for (LiveClient client : clients) {
            if (now - client.openedAt() > LONGEST_STREAM.toNanos()) {
                client.end();
            } else if (comment) {
                client.send(COMMENT);
            }
        }
        Map<String, List<LiveClient>> byInstance =
                clients.stream().collect(Collectors.groupingBy(LiveClient::instance));
        byInstance.forEach(this::tell);
    }

    private void tell(String instance, List<LiveClient> tabs) {
        Set<Long> ids = tabs.stream()
                .flatMap(tab -> tab.ids().stream())
                .limit(MOST_IDS)
                .collect(Collectors.toCollection(LinkedHashSet::new));
        State state;
        try {
            state = read(sources.get(instance), ids);
        } catch (RuntimeException e) {
            byte[] down = LiveClient.event(
                    "down",
                    Json.bytes(new View()
                            .put("error", Failures.explain(e).sentence())
                            .map()));
            tabs.forEach(tab -> tab.send(down));
            return;
        }
        for (LiveClient tab : tabs) {
            tab.send(state.overview().array());
            tellOfJobs(tab, state);
        }
    }

    /**
     * What was read for all tabs, as it is sent.
     *
     * @param overview the event
     * @param jobs those of the tabs that exist
     * @param running those that run
     */
    private record State(
            ByteBuffer overview,
            Map<Long, Map<String, @Nullable Object>> jobs,
            Map<Long, Map<String, @Nullable Object>> running) {}

    private State read(Source source, Set<Long> ids) {
        record Read(Overviews.Snapshot snapshot, List<Job> jobs) {}
        Read read = work.read(() -> source.read(() -> new Read(
                overviews.read(source),
                ids.isEmpty() ? List.of() : source.queries().find(ids, 0))));
        JobViews views = new JobViews(payloads, new Visitor(null), clock.instant());
        Map<Long, Map<String, @Nullable Object>> jobs = new LinkedHashMap<>();
        read.jobs().forEach(job -> jobs.put(job.id(), views.bare(job)));
        Map<Long, Map<String, @Nullable Object>> running = new LinkedHashMap<>();
        for (RunningJob job : read.snapshot().running()) {
            running.put(job.job().id(), views.running(job));
        }
        byte[] overview = LiveClient.event(
                "overview", Json.bytes(overviews.live(source, read.snapshot()).map()));
        return new State(ByteBuffer.wrap(overview), jobs, running);
    }

    /** Tells a tab of those of its jobs that are other than it knows. */
    private static void tellOfJobs(LiveClient tab, State state) {
        List<Object> changed = new ArrayList<>();
        List<Long> gone = new ArrayList<>();
        for (long id : tab.ids()) {
            Map<String, @Nullable Object> job = state.jobs().get(id);
            if (tab.isNews(id, String.valueOf(job == null ? "gone" : job))) {
                if (job == null) {
                    gone.add(id);
                } else {
                    changed.add(job);
                }
            }
        }
        Collection<Map<String, @Nullable Object>> running = new ArrayList<>();
        tab.ids().stream().map(state.running()::get).filter(job -> job != null).forEach(running::add);
        boolean runningChanged = tab.isNewsOfRunning(String.valueOf(running));
        if (!changed.isEmpty() || !gone.isEmpty() || runningChanged) {
            tab.send(LiveClient.event(
                    "jobs",
                    Json.bytes(new View()
                            .put("jobs", changed)
                            .put("gone", gone)
                            .put("running", running)
                            .map())));
        }
    }
}
