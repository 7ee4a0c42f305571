package dev.pgworker.internal.record;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

import org.jspecify.annotations.Nullable;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.internal.store.StatisticsStore.Row;

/**
 * Counts what happens to the jobs of each task, on the thread on which it happens: successes and failures are those that the database has
 * accepted. Thread-safe.
 */
public final class TaskCounts implements WorkerEventListener {

    /** What the jobs of further tasks are counted under. */
    static final String OTHERS = "(others)";

    static final int MOST_TASKS = 200;

    private final Map<String, TaskCounter> counters = new ConcurrentHashMap<>();
    private final TaskCounter others = new TaskCounter();

    /** Counters that made room for others, and that another thread may still hold. Owned by the thread that takes. */
    private final Map<String, TaskCounter> retired = new HashMap<>();

    @Override
    public void onEvent(WorkerEvent event) {
        if (event instanceof WorkerEvent.JobStarted started) {
            of(started).started(started.waited().toNanos());
        } else if (event instanceof WorkerEvent.JobSucceeded succeeded) {
            of(succeeded).ran(succeeded.took().toNanos());
        } else if (event instanceof WorkerEvent.JobCompleted completed) {
            of(completed).succeeded.getAndIncrement();
        } else if (event instanceof WorkerEvent.JobErrored errored) {
            of(errored).ran(errored.took().toNanos());
        } else if (event instanceof WorkerEvent.JobFailed failed) {
            TaskCounter counter = of(failed);
            (failed.permanently() ? counter.failed : counter.retried).getAndIncrement();
        } else if (event instanceof WorkerEvent.JobEnded ended) {
            of(ended).ran(ended.took().toNanos());
        }
    }

    private TaskCounter of(WorkerEvent.OfJob event) {
        String task = event.job().taskIdentifier();
        TaskCounter counter = counters.get(task);
        return counter == null ? firstOf(task) : counter;
    }

    private TaskCounter firstOf(String task) {
        // Several threads may pass here together: the limit is not exact.
        return counters.size() < MOST_TASKS ? counters.computeIfAbsent(task, any -> new TaskCounter()) : others;
    }

    /** Takes out what has been counted since the last call. Called by one thread. */
    List<Row> take() {
        List<Row> rows = new ArrayList<>();
        retired.forEach((task, counter) -> add(rows, counter.take(task)));
        retired.clear();
        boolean full = counters.size() >= MOST_TASKS;
        for (Iterator<Map.Entry<String, TaskCounter>> left = counters.entrySet().iterator(); left.hasNext(); ) {
            Map.Entry<String, TaskCounter> one = left.next();
            Row row = one.getValue().take(one.getKey());
            add(rows, row);
            if (row == null && full) {
                left.remove();
                retired.put(one.getKey(), one.getValue());
            }
        }
        add(rows, others.take(OTHERS));
        return rows;
    }

    private static void add(List<Row> rows, @Nullable Row row) {
        if (row != null) {
            rows.add(row);
        }
    }
}
