package dev.pgworker;

import java.sql.Connection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** Several workers on queues while somebody holds a snapshot, and jobs are added with and without a word at earlier places. */
@Tag("thorough")
class HeldSnapshotQueuesTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);
    private static final int ADDERS = 3;
    private static final int JOBS = 1_500;

    @RegisterExtension
    final TestSchema db = new TestSchema(40);

    private final Map<Integer, AtomicInteger> runs = new ConcurrentHashMap<>();
    private final Map<String, AtomicInteger> running = new ConcurrentHashMap<>();
    private final Map<String, Integer> lastInOrder = new ConcurrentHashMap<>();
    private final Queue<String> wrong = new ConcurrentLinkedQueue<>();

    @ParameterizedTest
    @ValueSource(ints = {3, 100})
    void everyJobRunsOnceAloneInItsQueueAndInOrder(int queues) throws Exception {
        for (int w = 0; w < 3; w++) {
            db.start(db.worker()
                    .settings(WorkerSettings.builder()
                            .pollInterval(Duration.ofHours(1))
                            .build())
                    .task(WORK, (n, context) -> run(n, context.job().queueName())));
        }
        ExecutorService threads = Executors.newFixedThreadPool(ADDERS);
        try (Connection holder = db.dataSource().getConnection()) {
            holder.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            holder.setAutoCommit(false);
            holder.createStatement().execute("select 1");
            List<Future<?>> adding = new ArrayList<>();
            for (int a = 0; a < ADDERS; a++) {
                int adder = a;
                adding.add(threads.submit(() -> add(adder, queues)));
            }
            for (Future<?> one : adding) {
                one.get(120, TimeUnit.SECONDS);
            }
            // Nobody looks for what was added last without a word before something is announced.
            db.scheduler()
                    .addJob(
                            WORK,
                            ADDERS * JOBS,
                            JobSpec.builder().queueName("last").build());
            Awaitility.await()
                    .pollInterval(Duration.ofMillis(50))
                    .untilAsserted(() -> assertThat(runs.size()).isEqualTo(ADDERS * JOBS + 1));
            holder.rollback();
            holder.setAutoCommit(true);
            holder.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        } finally {
            threads.shutdownNow();
        }
        Awaitility.await().until(() -> db.jobs() == 0);
        assertThat(wrong).isEmpty();
        assertThat(runs.values()).allSatisfy(times -> assertThat(times).hasValue(1));
    }

    /** Those with a number that 3 divides, of one adder, have the usual place, so that they start in the order in which they are added. */
    private void add(int adder, int queues) {
        for (int i = 0; i < JOBS; i++) {
            int n = i * ADDERS + adder;
            String queue = "q" + ThreadLocalRandom.current().nextInt(queues);
            if (adder == 0) {
                db.scheduler()
                        .addJob(WORK, n, JobSpec.builder().queueName(queue).build());
            } else if (adder == 1) {
                db.scheduler()
                        .addJob(
                                WORK,
                                n,
                                JobSpec.builder()
                                        .queueName(queue)
                                        .priority(-i % 3)
                                        .runAt(java.time.Instant.now().minusSeconds(i % 50))
                                        .build());
            } else {
                db.sql("insert into {schema}._private_jobs (task_id, job_queue_id, payload, priority, run_at) select"
                                + " {schema}.pgworker_task_id('work'), {schema}.pgworker_queue_id(?), ?::text::json, ?,"
                                + " now() - ? * interval '1 second'")
                        .param(queue)
                        .param(String.valueOf(n))
                        .param(i % 4 - 2)
                        .param(i % 600)
                        .update();
            }
        }
    }

    private void run(int n, String queue) {
        if (running.computeIfAbsent(queue, name -> new AtomicInteger()).incrementAndGet() != 1) {
            wrong.add("two jobs of " + queue + " at the same time");
        }
        if (n % ADDERS == 0) {
            Integer before = lastInOrder.put(queue, n);
            if (before != null && before > n) {
                wrong.add(n + " of " + queue + " after " + before);
            }
        }
        int times = runs.computeIfAbsent(n, number -> new AtomicInteger()).incrementAndGet();
        running.get(queue).decrementAndGet();
        if (times > 1) {
            wrong.add(n + " again");
        }
    }
}
