package dev.pgworker.internal.record;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

import org.junit.jupiter.api.Test;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.store.StatisticsStore.Row;
import dev.pgworker.job.Job;
import dev.pgworker.testing.TestJob;

import static org.assertj.core.api.Assertions.assertThat;

class TaskCountsTest {

    private final TaskCounts counts = new TaskCounts();

    private static Job job(String task) {
        return TestJob.withId(1).task(task).build();
    }

    private void complete(String task) {
        counts.onEvent(new WorkerEvent.JobCompleted("w", job(task)));
    }

    @Test
    void countsByTaskWhatHasHappenedSinceTheLastTime() {
        Job job = job("a");
        counts.onEvent(new WorkerEvent.JobStarted("w", job, Duration.ofDays(36_500)));
        counts.onEvent(new WorkerEvent.JobErrored("w", job, new IllegalStateException(), Duration.ZERO));
        counts.onEvent(new WorkerEvent.JobFailed("w", job, new IllegalStateException(), false));
        counts.onEvent(new WorkerEvent.JobEnded("w", job, Duration.ofMillis(1)));
        counts.onEvent(new WorkerEvent.JobSucceeded("w", job, Duration.ofMillis(1)));
        counts.onEvent(new WorkerEvent.JobFailed("w", job, new IllegalStateException(), true));
        counts.onEvent(new WorkerEvent.JobLost("w", job));
        counts.onEvent(new WorkerEvent.WorkerStopping("w"));
        complete("b");

        List<Row> rows = counts.take();

        assertThat(rows).hasSize(2);
        Row a = rows.get(rows.get(0).task().equals("a") ? 0 : 1);
        assertThat(List.of(a.succeeded(), a.retried(), a.failed())).containsExactly(0L, 1L, 1L);
        assertThat(a.run().total()).isEqualTo(3);
        assertThat(a.waited().total()).isEqualTo(1);
        assertThat(counts.take()).isEmpty();
    }

    @Test
    void furtherTasksAreCountedTogetherUntilThereIsRoom() {
        IntStream.range(0, 300).forEach(n -> complete("t" + n));

        List<Row> rows = counts.take();

        assertThat(rows).hasSize(TaskCounts.MOST_TASKS + 1);
        assertThat(rows.stream().mapToLong(Row::succeeded).sum()).isEqualTo(300);
        assertThat(rows)
                .filteredOn(row -> row.task().equals(TaskCounts.OTHERS))
                .extracting(Row::succeeded)
                .containsExactly(100L);
        complete("t0");
        assertThat(counts.take()).extracting(Row::task).containsExactly("t0");
        complete("t299");
        assertThat(counts.take()).extracting(Row::task).containsExactly("t299");
    }

    @Test
    void nothingIsLostWhileManyCountAndOneTakes() throws Exception {
        int threads = 4;
        long each = 100_000;
        ExecutorService counting = Executors.newFixedThreadPool(threads);
        CountDownLatch done = new CountDownLatch(threads);
        for (int thread = 0; thread < threads; thread++) {
            counting.execute(() -> {
                Job job = job("a");
                for (int i = 0; i < each; i++) {
                    counts.onEvent(new WorkerEvent.JobSucceeded("w", job, Duration.ofNanos(i)));
                    counts.onEvent(new WorkerEvent.JobCompleted("w", job));
                }
                done.countDown();
            });
        }
        long completed = 0;
        long ran = 0;
        boolean last;
        do {
            last = done.await(1, TimeUnit.MILLISECONDS);
            for (Row row : counts.take()) {
                completed += row.succeeded();
                ran += row.run().total();
            }
        } while (!last);
        counting.shutdown();

        assertThat(completed).isEqualTo(threads * each);
        assertThat(ran).isEqualTo(threads * each);
    }
}
