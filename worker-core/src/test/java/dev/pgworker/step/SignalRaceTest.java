package dev.pgworker.step;

import java.time.Duration;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.WorkerClient;
import dev.pgworker.WorkerSettings;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.ListenerConnected;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.Task;
import dev.pgworker.testing.OwnThread;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** Signals that are sent while their jobs begin to wait, on two workers. */
@Tag("any-postgres")
class SignalRaceTest {

    private static final int JOBS = 1_000;

    private static final Task<Integer> WORK = Task.of("work", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema(30);

    private final RecordingListener events = new RecordingListener();

    private final BlockingQueue<Integer> waiting = new LinkedBlockingQueue<>();

    private final Set<Integer> seen = new HashSet<>();

    private final Map<Integer, AtomicInteger> received = new ConcurrentHashMap<>();

    private void startTwo(String prefix, boolean shared) {
        for (int i = 0; i < 2; i++) {
            db.start(db.worker()
                    .settings(WorkerSettings.builder().concurrency(4).build())
                    .task(WORK, (n, context) -> {
                        waiting.add(n);
                        int payload =
                                context.steps().await(prefix + (shared ? "" : n), Integer.class, Duration.ofDays(1));
                        received.computeIfAbsent(payload, any -> new AtomicInteger())
                                .incrementAndGet();
                    })
                    .listener(events));
        }
        events.await(ListenerConnected.class, 2);
    }

    @Test
    void eachOfAThousandIsReceivedByItsJobOnce() throws Exception {
        startTwo("go-", false);
        JobSignals signals = WorkerClient.jobSignals(db.dataSource(), db.schema(), db.codec(), StepSettings.DEFAULT);
        db.scheduler()
                .addJobs(IntStream.range(0, JOBS)
                        .mapToObj(n -> JobRequest.of(WORK, n))
                        .toList());

        send(signals, "go-", false);

        events.await(JobCompleted.class, JOBS);
        assertThat(received)
                .hasSize(JOBS)
                .allSatisfy((n, times) -> assertThat(times).hasValue(1));
        assertThat(db.sql("select count(*) from {schema}.pgworker_signals")
                        .query(Long.class)
                        .single())
                .isZero();
    }

    @Test
    void eachOfAThousandOfOneNameIsReceivedByOneJob() throws Exception {
        startTwo("go", true);
        JobSignals signals = WorkerClient.jobSignals(db.dataSource(), db.schema(), db.codec(), StepSettings.DEFAULT);
        db.scheduler()
                .addJobs(IntStream.range(0, JOBS)
                        .mapToObj(n -> JobRequest.of(WORK, n))
                        .toList());

        send(signals, "go", true);

        events.await(JobCompleted.class, JOBS);
        assertThat(received)
                .hasSize(JOBS)
                .allSatisfy((n, times) -> assertThat(times).hasValue(1));
        assertThat(db.sql("select count(*) from {schema}.pgworker_signals")
                        .query(Long.class)
                        .single())
                .isZero();
    }

    /** Sends as many signals as there are jobs, each a moment before or after the time at which a job begins to wait. */
    private void send(JobSignals signals, String prefix, boolean shared) throws InterruptedException {
        for (int i = 0; i < JOBS; i++) {
            Integer n = waiting.poll(120, TimeUnit.SECONDS);
            assertThat(n).as("a job that begins to wait").isNotNull();
            while (!seen.add(n)) {
                n = waiting.poll(120, TimeUnit.SECONDS);
                assertThat(n).as("a job that begins to wait").isNotNull();
            }
            int signal = n;
            OwnThread.EACH.execute(() -> {
                LockSupport.parkNanos(ThreadLocalRandom.current().nextLong(3_000_000));
                signals.send(shared ? prefix : prefix + signal, signal);
            });
        }
    }
}
