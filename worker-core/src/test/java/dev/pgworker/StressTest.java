package dev.pgworker;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.jdbc.core.simple.JdbcClient;

import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** Several workers, several thousand jobs, and a ledger in the database that records every execution. */
@Tag("thorough")
@Tag("any-postgres")
class StressTest {

    private static final int JOBS = 6_000;
    private static final int QUEUES = 40;
    private static final Task<Integer> RECORD = Task.of("record", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema(40);

    @Test
    void everyJobRunsExactlyOnceAndQueuesNeverOverlap() throws Exception {
        db.sql("create table {schema}.ledger (number int not null, worker text not null)")
                .update();
        Map<String, AtomicInteger> running = new ConcurrentHashMap<>();
        Map<String, Integer> last = new ConcurrentHashMap<>();
        List<String> violations = new ArrayList<>();

        List<Worker> workers = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            workers.add(db.start(db.worker()
                    .settings(WorkerSettings.builder()
                            .concurrency(6)
                            .pollInterval(Duration.ofMinutes(5))
                            .build())
                    .task(RECORD, (number, context) -> {
                        String queue = context.job().queueName();
                        AtomicInteger active = running.computeIfAbsent(String.valueOf(queue), q -> new AtomicInteger());
                        int others = active.getAndIncrement();
                        Integer before = last.put(String.valueOf(queue), number);
                        if (queue != null && (others > 0 || (before != null && before > number))) {
                            synchronized (violations) {
                                violations.add(queue + ": " + number + " after " + before + " beside " + others);
                            }
                        }
                        JdbcClient.create(db.dataSource())
                                .sql(db.schema().in("insert into {schema}.ledger values (?, ?)"))
                                .params(number, context.workerId())
                                .update();
                        active.decrementAndGet();
                    })));
        }

        int adders = 3;
        CountDownLatch added = new CountDownLatch(adders);
        for (int a = 0; a < adders; a++) {
            int first = a;
            new Thread(() -> {
                        for (int i = first; i < JOBS; i += adders) {
                            JobSpec.Builder spec = JobSpec.builder();
                            // One adder a queue, so that the order of its jobs is known.
                            if (i % 2 == 0) {
                                spec.queueName("queue-" + first + "-" + (i % QUEUES));
                            } else if (ThreadLocalRandom.current().nextInt(50) == 0) {
                                spec.runIn(Duration.ofMillis(300));
                            }
                            db.scheduler().addJob(RECORD, i, spec.build());
                        }
                        added.countDown();
                    })
                    .start();
        }
        added.await();

        Awaitility.await().until(() -> db.jobs() == 0);
        workers.forEach(Worker::stop);

        assertThat(violations).isEmpty();
        assertThat(db.sql("select count(*) from {schema}.ledger")
                        .query(Integer.class)
                        .single())
                .isEqualTo(JOBS);
        assertThat(db.sql("select count(distinct number) from {schema}.ledger")
                        .query(Integer.class)
                        .single())
                .isEqualTo(JOBS);
        assertThat(db.sql("select count(*) from {schema}._private_job_queues where locked_by is not null")
                        .query(Integer.class)
                        .single())
                .isZero();
    }
}
