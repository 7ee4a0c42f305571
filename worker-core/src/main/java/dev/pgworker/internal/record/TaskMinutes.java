package dev.pgworker.internal.record;

import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import dev.pgworker.internal.store.DurationCounts;
import dev.pgworker.internal.store.StatisticsStore;
import dev.pgworker.internal.store.StatisticsStore.Row;

/**
 * Adds what has been counted to the figures of the minutes in which it happened. An answer that is lost is no reason to keep the
 * figures back: what it was about may be counted twice then.
 */
final class TaskMinutes extends Recording {

    private static final long INTERVAL_NANOS = Duration.ofSeconds(10).toNanos();

    private static final long MINUTE_NANOS = Duration.ofMinutes(1).toNanos();

    /** So many minutes wait for a database that cannot be used; those before are forgotten. */
    private static final int MOST_WAITING = 60;

    private final TaskCounts counts;
    private final StatisticsStore store;

    /** The oldest first. */
    private final Deque<Minute> waiting = new ArrayDeque<>();

    private long countedSince = System.nanoTime();

    TaskMinutes(TaskCounts counts, StatisticsStore store) {
        super("Statistics", "pgworker_task_minutes");
        this.counts = counts;
        this.store = store;
    }

    /** What has been counted within a minute, more or less. */
    private static final class Minute {

        private final long at;
        private final Map<String, Row> rows = new HashMap<>();

        Minute(long at) {
            this.at = at;
        }

        void add(Collection<Row> more) {
            more.forEach(row -> rows.merge(row.task(), row, Minute::sum));
        }

        private static Row sum(Row one, Row other) {
            return new Row(
                    one.task(),
                    one.succeeded() + other.succeeded(),
                    one.retried() + other.retried(),
                    one.failed() + other.failed(),
                    sum(one.run(), other.run()),
                    sum(one.waited(), other.waited()));
        }

        private static DurationCounts sum(DurationCounts one, DurationCounts other) {
            DurationCounts sum = new DurationCounts();
            sum.add(one);
            sum.add(other);
            return sum;
        }

        List<Row> withTotal() {
            List<Row> result = new ArrayList<>(rows.values());
            rows.values().stream()
                    .map(row -> new Row(
                            StatisticsStore.ALL_TASKS,
                            row.succeeded(),
                            row.retried(),
                            row.failed(),
                            row.run(),
                            row.waited()))
                    .reduce(Minute::sum)
                    .ifPresent(result::add);
            return result;
        }
    }

    @Override
    long write() throws SQLException {
        count();
        while (!waiting.isEmpty()) {
            Minute first = waiting.getFirst();
            store.add(Duration.ofNanos(System.nanoTime() - first.at), first.withTotal());
            waiting.removeFirst();
        }
        return INTERVAL_NANOS;
    }

    private void count() {
        long now = System.nanoTime();
        long middle = countedSince + (now - countedSince) / 2;
        countedSince = now;
        List<Row> rows = counts.take();
        if (rows.isEmpty()) {
            return;
        }
        if (waiting.isEmpty() || middle - waiting.getLast().at > MINUTE_NANOS) {
            waiting.addLast(new Minute(middle));
        }
        waiting.getLast().add(rows);
        if (waiting.size() > MOST_WAITING) {
            waiting.removeFirst();
        }
    }

    @Override
    void finish() throws SQLException {
        write();
    }
}
