package dev.pgworker.dashboard;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import org.jspecify.annotations.Nullable;

/**
 * One open tab, to which events are written as it takes them: whoever sends never waits, and what a tab does not take is kept up to
 * a limit, beyond which it is given up.
 */
final class LiveClient implements WriteListener, AsyncListener {

    private static final int MOST_PENDING = 4 * 1024 * 1024;

    private final String instance;
    private final @Nullable String user;
    private final Set<Long> ids;
    private final long openedAt;
    private final AsyncContext context;
    private final ServletOutputStream out;
    private final Consumer<LiveClient> onEnd;

    /** What this tab knows of each job; used by the thread of the hub alone. */
    private final Map<Long, String> known = new HashMap<>();

    private String knownRunning = "[]";

    @GuardedBy("this") private final Deque<byte[]> queue = new ArrayDeque<>();

    @GuardedBy("this") private int pending;

    @GuardedBy("this") private boolean open;

    @GuardedBy("this") private boolean unflushed;

    @GuardedBy("this") private boolean ended;

    /**
     * Creates a client.
     *
     * @param user who has opened it; null if nobody has signed in
     * @param ids the jobs that it shows
     * @param openedAt when it was opened, in nanoseconds
     * @param onEnd called once, when nothing more can be sent
     */
    LiveClient(
            String instance,
            @Nullable String user,
            Set<Long> ids,
            long openedAt,
            AsyncContext context,
            ServletOutputStream out,
            Consumer<LiveClient> onEnd) {
        this.instance = instance;
        this.user = user;
        this.ids = new LinkedHashSet<>(ids);
        this.openedAt = openedAt;
        this.context = context;
        this.out = out;
        this.onEnd = onEnd;
    }

    String instance() {
        return instance;
    }

    @Nullable String user() {
        return user;
    }

    Set<Long> ids() {
        return ids;
    }

    long openedAt() {
        return openedAt;
    }

    /** Remembers what the tab shows of a job, and returns whether that is something else. */
    boolean isNews(long id, @Nullable String view) {
        return view == null ? known.remove(id) != null : !view.equals(known.put(id, view));
    }

    /** Remembers which of its jobs run, and returns whether that is something else. */
    boolean isNewsOfRunning(String view) {
        boolean news = !view.equals(knownRunning);
        knownRunning = view;
        return news;
    }

    static byte[] event(String name, byte[] json) {
        byte[] head = ("event: " + name + "\ndata: ").getBytes(StandardCharsets.UTF_8);
        byte[] event = new byte[head.length + json.length + 2];
        System.arraycopy(head, 0, event, 0, head.length);
        // The JSON is on one line.
        System.arraycopy(json, 0, event, head.length, json.length);
        event[event.length - 2] = '\n';
        event[event.length - 1] = '\n';
        return event;
    }

    /** Sends an event, or gives the tab up if it takes too few. */
    void send(byte[] event) {
        boolean tooSlow;
        synchronized (this) {
            if (ended) {
                return;
            }
            tooSlow = pending + event.length > MOST_PENDING;
            if (!tooSlow) {
                queue.add(event);
                pending += event.length;
            }
        }
        if (tooSlow) {
            end();
        } else {
            write();
        }
    }

    @Override
    public void onWritePossible() {
        synchronized (this) {
            open = true;
        }
        write();
    }

    private void write() {
        try {
            synchronized (this) {
                while (open && !ended && !queue.isEmpty() && out.isReady()) {
                    byte[] next = queue.remove();
                    pending -= next.length;
                    out.write(next);
                    unflushed = true;
                }
                if (open && !ended && unflushed && queue.isEmpty() && out.isReady()) {
                    unflushed = false;
                    out.flush();
                }
            }
        } catch (IOException | RuntimeException e) {
            // The tab has been closed, or the container has ended the request.
            end();
        }
    }

    /** Ends the stream; the browser opens another one. Does nothing if it has ended. */
    void end() {
        synchronized (this) {
            if (ended) {
                return;
            }
            ended = true;
            queue.clear();
        }
        onEnd.accept(this);
        try {
            context.complete();
        } catch (IllegalStateException e) {
            // The container has completed it.
        }
    }

    @Override
    public void onError(Throwable failure) {
        end();
    }

    @Override
    public void onComplete(AsyncEvent event) {
        end();
    }

    @Override
    public void onTimeout(AsyncEvent event) {
        end();
    }

    @Override
    public void onError(AsyncEvent event) {
        end();
    }

    @Override
    public void onStartAsync(AsyncEvent event) {
        // Nobody starts it again.
    }
}
