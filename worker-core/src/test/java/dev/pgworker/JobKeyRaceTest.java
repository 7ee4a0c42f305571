package dev.pgworker;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.core.ParameterizedTypeReference;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.task.JobControlException;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** Many threads add under few keys while workers run the jobs. */
@Tag("thorough")
@Tag("any-postgres")
class JobKeyRaceTest {

    private static final int THREADS = 4;
    private static final Task<Integer> ONE = Task.of("one", Integer.class);
    private static final Task<List<Integer>> MANY = Task.of("many", new ParameterizedTypeReference<>() {});

    @RegisterExtension
    final TestSchema db = new TestSchema(40);

    /** The revision of a row: what one add under a key has written. */
    private record Version(long id, int revision) {}

    @Test
    void everyAddIsRunOrReplacedByALaterRevisionOfTheSameRow() throws Exception {
        Map<Version, Integer> executed = new ConcurrentHashMap<>();
        Map<Long, Integer> succeeded = new ConcurrentHashMap<>();
        Map<Version, Integer> added = new ConcurrentHashMap<>();
        Queue<String> twice = new ConcurrentLinkedQueue<>();
        workers(builder -> builder.task(ONE, (number, context) -> {
            Job job = context.job();
            executed.put(new Version(job.id(), job.revision()), number);
            if (number % 7 == 0 && job.attempts() == 1) {
                throw JobControlException.retryIn(Duration.ofMillis(20), "on purpose", null);
            }
            if (succeeded.put(job.id(), job.revision()) != null) {
                twice.add(job.toString());
            }
        }));

        int each = 1_000;
        concurrently(IntStream.range(0, THREADS)
                .<Callable<Void>>mapToObj(thread -> () -> {
                    Random random = new Random(thread);
                    for (int number = thread; number < each * THREADS; number += THREADS) {
                        Job job = db.scheduler()
                                .addJob(
                                        ONE,
                                        number,
                                        JobSpec.builder()
                                                .jobKey("key" + random.nextInt(5))
                                                .jobKeyMode(
                                                        random.nextBoolean()
                                                                ? JobKeyMode.REPLACE
                                                                : JobKeyMode.PRESERVE_RUN_AT)
                                                .queueName(random.nextBoolean() ? "queue" : null)
                                                .build());
                        assertThat(added.put(new Version(job.id(), job.revision()), number))
                                .isNull();
                    }
                    return null;
                })
                .toList());
        awaitNothingLeftToRun();

        assertThat(twice).isEmpty();
        assertThat(added).hasSize(each * THREADS);
        Map<Long, Integer> newest = new ConcurrentHashMap<>();
        added.keySet().forEach(v -> newest.merge(v.id(), v.revision(), Math::max));
        int replaced = 0;
        for (var add : added.entrySet()) {
            Version version = add.getKey();
            if (version.revision() == newest.get(version.id())) {
                assertThat(executed).as("run, or lost").containsEntry(version, add.getValue());
            } else {
                assertThat(added).containsKey(new Version(version.id(), version.revision() + 1));
                replaced++;
            }
        }
        assertThat(executed.keySet()).isSubsetOf(added.keySet());
        assertThat(replaced).as("adds that met a waiting job").isPositive();
        assertThat(newest.size()).as("adds that met no or a running job").isGreaterThan(5);
        System.out.println(added.size() + " adds under 5 keys: " + newest.size() + " rows, " + replaced + " replaced, "
                + executed.size() + " revisions run");
    }

    @Test
    void everyItemAddedUnderAKeyIsRunExactlyOnce() throws Exception {
        Queue<Integer> seen = new ConcurrentLinkedQueue<>();
        workers(builder -> builder.task(MANY, (items, context) -> seen.addAll(items)));

        int each = 700;
        concurrently(IntStream.range(0, THREADS)
                .<Callable<Void>>mapToObj(thread -> () -> {
                    for (int number = thread; number < each * THREADS; number += THREADS) {
                        JobSpec spec = JobSpec.builder()
                                .jobKey("key" + number % 3)
                                .jobKeyMode(JobKeyMode.PRESERVE_RUN_AT)
                                .build();
                        if (number % 2 == 0) {
                            db.scheduler().addBatchJob(MANY, List.of(number), spec);
                        } else {
                            db.scheduler().addJobs(List.of(JobRequest.of(MANY, List.of(number), spec)));
                        }
                    }
                    return null;
                })
                .toList());
        awaitNothingLeftToRun();

        assertThat(new ArrayList<>(seen))
                .containsExactlyInAnyOrderElementsOf(
                        IntStream.range(0, each * THREADS).boxed().toList());
    }

    @Test
    void keyedBatchesInAnyOrderNeverFail() throws Exception {
        Set<Long> executed = ConcurrentHashMap.newKeySet();
        workers(builder -> builder.task(
                ONE, (number, context) -> executed.add(context.job().id())));

        int threads = 6;
        Set<Long> rows = ConcurrentHashMap.newKeySet();
        Set<Long> removed = ConcurrentHashMap.newKeySet();
        List<Callable<Void>> work = new ArrayList<>();
        for (int t = 0; t < threads; t++) {
            int thread = t;
            work.add(() -> {
                Random random = new Random(thread);
                List<Integer> keys =
                        new ArrayList<>(IntStream.range(0, 12).boxed().toList());
                for (int batch = 0; batch < 60; batch++) {
                    Collections.shuffle(keys, random);
                    List<JobRequest> requests = new ArrayList<>();
                    for (int key : keys.subList(0, 10)) {
                        requests.add(JobRequest.of(
                                ONE,
                                batch,
                                JobSpec.builder()
                                        .jobKey("key" + key)
                                        .queueName(random.nextInt(4) == 0 ? "queue" + random.nextInt(3) : null)
                                        .build()));
                    }
                    List<Job> jobs = db.scheduler().addJobs(requests);
                    for (int i = 0; i < jobs.size(); i++) {
                        assertThat(jobs.get(i).key())
                                .isEqualTo(requests.get(i).spec().jobKey());
                        rows.add(jobs.get(i).id());
                    }
                }
                return null;
            });
        }
        work.add(() -> {
            Random random = new Random(99);
            for (int i = 0; i < 400; i++) {
                db.sql("select coalesce((r).id, 0) from {schema}.remove_job(?) r where (r).locked_at is null")
                        .param("key" + random.nextInt(12))
                        .query(Long.class)
                        .optional()
                        .ifPresent(removed::add);
            }
            return null;
        });
        concurrently(work);
        awaitNothingLeftToRun();

        Set<Long> accounted = new HashSet<>(executed);
        accounted.addAll(removed);
        assertThat(accounted).as("run or removed").containsAll(rows);
        assertThat(executed).isSubsetOf(rows).doesNotContainAnyElementsOf(removed);
    }

    private void workers(java.util.function.UnaryOperator<Worker.Builder> task) {
        for (int i = 0; i < 3; i++) {
            db.start(task.apply(db.worker()
                    .settings(WorkerSettings.builder()
                            .concurrency(4)
                            .pollInterval(Duration.ofHours(1))
                            .build())));
        }
    }

    /** Runs the work on a thread each; the first exception of any of them fails the test. */
    private static void concurrently(List<? extends Callable<?>> work) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(work.size());
        try {
            List<Future<?>> futures = new ArrayList<>();
            for (Callable<?> one : work) {
                futures.add(threads.submit(one));
            }
            for (Future<?> future : futures) {
                future.get(120, TimeUnit.SECONDS);
            }
        } finally {
            threads.shutdownNow();
        }
    }

    private void awaitNothingLeftToRun() {
        Awaitility.await()
                .until(() -> db.sql(
                                "select count(*) from {schema}.jobs where locked_at is not null or attempts < max_attempts")
                        .query(Integer.class)
                        .single()
                        .equals(0));
    }
}
