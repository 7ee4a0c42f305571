package dev.pgworker;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** A worker with much to do claims on two connections at the same time. */
@Tag("thorough")
@Tag("any-postgres")
class TwoChainsTest {

    private static final int JOBS = 30_000;
    private static final Task<Integer> COUNT = Task.of("count", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema(30);

    @Test
    void everyJobOfABacklogRunsOnceWhileBothClaim() throws Exception {
        addBacklog();
        Map<Integer, AtomicInteger> ledger = new ConcurrentHashMap<>();
        CountDownLatch done = new CountDownLatch(JOBS);
        Map<String, AtomicInteger> claims = new ConcurrentHashMap<>();
        List<Worker> workers = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            workers.add(db.start(db.worker()
                    .settings(WorkerSettings.builder()
                            .pollInterval(Duration.ofMinutes(5))
                            .build())
                    .directListener(event -> {
                        if (event instanceof WorkerEvent.JobsFetched) {
                            claims.computeIfAbsent(Thread.currentThread().getName(), name -> new AtomicInteger())
                                    .incrementAndGet();
                        }
                    })
                    .task(COUNT, (number, context) -> {
                        ledger.computeIfAbsent(number, n -> new AtomicInteger()).incrementAndGet();
                        done.countDown();
                    })));
        }

        assertThat(done.await(120, TimeUnit.SECONDS)).isTrue();
        Awaitility.await().until(() -> db.jobs() == 0);
        workers.forEach(Worker::stop);

        assertThat(ledger).hasSize(JOBS);
        assertThat(ledger.values()).allMatch(runs -> runs.get() == 1);
        assertThat(claims).containsKeys("worker-fetch", "worker-fetch-2");
    }

    @Test
    void jobsThatAreAddedBeforeOthersMeanwhileAreClaimedWithoutAPoll() throws Exception {
        addBacklog();
        CountDownLatch early = new CountDownLatch(40);
        CountDownLatch begun = new CountDownLatch(1_000);
        db.start(db.worker()
                .settings(WorkerSettings.builder()
                        .pollInterval(Duration.ofMinutes(5))
                        .build())
                .task(COUNT, (number, context) -> (number < 0 ? early : begun).countDown()));
        assertThat(begun.await(120, TimeUnit.SECONDS)).isTrue();

        for (int i = 1; i <= 20; i++) {
            db.scheduler().addJob(COUNT, -2 * i, JobSpec.builder().priority(-i).build());
            Instant runAt = Instant.now().minus(Duration.ofMinutes(i));
            db.scheduler()
                    .addJob(COUNT, -2 * i + 1, JobSpec.builder().runAt(runAt).build());
        }

        assertThat(early.await(120, TimeUnit.SECONDS)).isTrue();
        Awaitility.await().until(() -> db.jobs() == 0);
    }

    @RepeatedTest(3)
    void jobsOfQueuesRunInOrderWhileBothClaim() throws Exception {
        int queues = 300;
        db.sql("""
                        select count(*) from {schema}.add_jobs(array(
                          select ('count', (n::text)::json, 'queue-' || n % ?, null, null, null, null, null)::{schema}.job_spec
                          from generate_series(1, ?) n))
                        """).params(queues, JOBS).query(Long.class).single();
        Map<String, Integer> last = new ConcurrentHashMap<>();
        Map<String, AtomicInteger> running = new ConcurrentHashMap<>();
        AtomicInteger violations = new AtomicInteger();
        AtomicInteger claimsOfSecond = new AtomicInteger();
        CountDownLatch done = new CountDownLatch(JOBS);
        for (int i = 0; i < 2; i++) {
            db.start(db.worker()
                    .settings(WorkerSettings.builder()
                            .pollInterval(Duration.ofMinutes(5))
                            .build())
                    .directListener(event -> {
                        if (event instanceof WorkerEvent.JobsFetched
                                && Thread.currentThread().getName().equals("worker-fetch-2")) {
                            claimsOfSecond.incrementAndGet();
                        }
                    })
                    .task(COUNT, (number, context) -> {
                        String queue = context.job().queueName();
                        AtomicInteger active = running.computeIfAbsent(queue, q -> new AtomicInteger());
                        int others = active.getAndIncrement();
                        Integer before = last.put(queue, number);
                        if (others > 0 || (before != null && before >= number)) {
                            violations.incrementAndGet();
                        }
                        active.decrementAndGet();
                        done.countDown();
                    }));
        }

        assertThat(done.await(120, TimeUnit.SECONDS)).isTrue();
        Awaitility.await().until(() -> db.jobs() == 0);
        assertThat(violations).hasValue(0);
        assertThat(claimsOfSecond.get()).isPositive();
    }

    private void addBacklog() {
        db.scheduler().addJobs(COUNT, IntStream.range(0, JOBS).boxed().toList());
    }
}
