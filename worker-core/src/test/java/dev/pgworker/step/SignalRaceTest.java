package dev.pgworker.step;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
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

    @Test
    void manySignalsOfOneNameWhoseJobIsHeldStandBeforeNoOthers() throws SQLException {
        long held = db.scheduler().addJob(WORK, 1).id();
        long other = db.scheduler().addJob(WORK, 2).id();
        for (long job : new long[] {held, other}) {
            db.sql("update {schema}._private_jobs set run_at = now() + interval '1 day' where id = ?")
                    .param(job)
                    .update();
            db.sql("""
                            insert into {schema}.pgworker_steps (job_id, revision, name, kind, signal, claim, attempt, started_at, due_at)
                            select j.id, j.revision, 's' || j.id, 'wait', 's' || j.id, now(), 1, now(), now() + interval '1 day'
                            from {schema}._private_jobs j where j.id = ?
                            """).param(job).update();
        }
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.execute(db.schema().in("select from {schema}._private_jobs where id = " + held + " for update"));
            db.sql("select count({schema}.pgworker_signal(?)) from generate_series(1, 600)")
                    .param("s" + held)
                    .query()
                    .listOfRows();
            db.sql("select {schema}.pgworker_signal(?)")
                    .param("s" + other)
                    .query()
                    .listOfRows();
            db.sql("select {schema}.pgworker_continue()").query().listOfRows();
            assertThat(db.sql("select run_at <= now() from {schema}._private_jobs where id = ?")
                            .param(other)
                            .query(Boolean.class)
                            .single())
                    .isTrue();
            connection.rollback();
        }
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
