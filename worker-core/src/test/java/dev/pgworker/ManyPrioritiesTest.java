package dev.pgworker;

import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.event.WorkerEvent.FetchEmpty;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** Thousands of priorities, more than a claim looks at. */
@Tag("thorough")
@Tag("any-postgres")
class ManyPrioritiesTest {

    private static final int PRIORITIES = 2_000;
    private static final Task<Integer> COUNT = Task.of("count", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema(20);

    private final RecordingListener events = new RecordingListener();

    @Test
    void everyJobRunsOnceWhetherDueAlreadyOrSoon() throws Exception {
        add("now() - interval '1 second'", 0);
        add("now() + interval '3 seconds'", PRIORITIES);
        Map<Integer, AtomicInteger> ledger = new ConcurrentHashMap<>();
        AtomicInteger runs = new AtomicInteger();
        CountDownLatch done = new CountDownLatch(2 * PRIORITIES);
        start(Duration.ofMinutes(5), number -> {
            ledger.computeIfAbsent(number, n -> new AtomicInteger()).incrementAndGet();
            runs.incrementAndGet();
            done.countDown();
        });

        assertThat(done.await(120, TimeUnit.SECONDS)).as("%s runs", runs).isTrue();
        Awaitility.await().until(() -> db.jobs() == 0);
        assertThat(ledger).hasSize(2 * PRIORITIES);
        assertThat(runs).hasValue(2 * PRIORITIES);
    }

    @Test
    void aJobThatIsAnnouncedRunsAtOnceWhateverItsPriority() throws Exception {
        add("now() + interval '1 hour'", 0);
        start(Duration.ofMinutes(5), number -> {});
        awaitThatItLooksInVain();

        for (int priority : new int[] {1500, 0, -1000, 700, Short.MIN_VALUE, Short.MAX_VALUE}) {
            Job job = db.scheduler()
                    .addJob(COUNT, 1, JobSpec.builder().priority(priority).build());
            events.await(JobCompleted.class, e -> e.job().id() == job.id());
        }
        assertThat(db.jobs()).isEqualTo(PRIORITIES);
    }

    @Test
    void aRowWrittenWithoutAWordRunsAfterAWhile() throws Exception {
        add("now() + interval '1 hour'", 0);
        AtomicReference<Integer> ran = new AtomicReference<>();
        start(Duration.ofMillis(500), ran::set);
        awaitThatItLooksInVain();

        db.sql("""
                        insert into {schema}._private_jobs (task_id, payload, priority)
                        select id, '77', 1234 from {schema}._private_tasks where identifier = 'count'
                        """).update();

        Awaitility.await().untilAsserted(() -> assertThat(ran).hasValue(77));
    }

    private void awaitThatItLooksInVain() {
        // Jobs that are announced one by one need not be looked for.
        events.await(FetchEmpty.class, e -> true);
        // The first claims look at all priorities; then a look has told them apart, and they rest.
        for (int i = 0; i < 3; i++) {
            Job job = db.scheduler().addJob(COUNT, 0);
            events.await(JobCompleted.class, e -> e.job().id() == job.id());
        }
    }

    private interface Handler {
        void handle(int number);
    }

    private void start(Duration pollInterval, Handler handler) {
        db.start(db.worker()
                .settings(WorkerSettings.builder().pollInterval(pollInterval).build())
                .listener(events)
                .task(COUNT, (number, context) -> handler.handle(number)));
    }

    private void add(String runAt, int first) {
        db.scheduler()
                .addJob(COUNT, 0, JobSpec.builder().runIn(Duration.ofHours(2)).build());
        db.sql("delete from {schema}._private_jobs where run_at > now() + interval '90 minutes'")
                .update();
        db.sql("""
                insert into {schema}._private_jobs (task_id, payload, priority, run_at)
                select t.id, (? + n)::text::json, n - 1000, %s
                from {schema}._private_tasks t, generate_series(0, ? - 1) n where t.identifier = 'count'
                """.formatted(runAt)).params(first, PRIORITIES).update();
    }
}
