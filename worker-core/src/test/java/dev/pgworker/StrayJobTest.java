package dev.pgworker;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** Jobs that come to lie before the place at which a busy worker begins to look. */
@Tag("thorough")
class StrayJobTest {

    private static final Task<Integer> FLOW = Task.of("flow", Integer.class);
    private static final Task<Integer> STRAY = Task.of("stray", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema(16);

    private final AtomicBoolean ends = new AtomicBoolean();
    private final AtomicInteger flowed = new AtomicInteger();
    private final Set<Integer> strays = ConcurrentHashMap.newKeySet();
    private final ExecutorService thread = Executors.newSingleThreadExecutor();
    private Future<?> flow;

    /** Keeps a worker at work, whose poll does not help, until it is known that its claims begin at a floor. */
    @BeforeEach
    void start() {
        flow = thread.submit(() -> {
            int n = 0;
            while (!ends.get()) {
                db.scheduler().addJob(FLOW, n++);
            }
        });
        db.start(db.worker()
                .settings(WorkerSettings.builder()
                        .pollInterval(Duration.ofHours(1))
                        .build())
                .task(FLOW, (n, context) -> flowed.incrementAndGet())
                .task(STRAY, (n, context) -> strays.add(n)));
        awaitFlow();
        insert(-1, "priority => 0", "run_at => now() - interval '1 day'");
        awaitStrays(1);
    }

    @AfterEach
    void stop() throws Exception {
        ends.set(true);
        flow.get(120, TimeUnit.SECONDS);
        thread.shutdown();
    }

    @Test
    void thatAreInsertedWithoutAWordRun() {
        for (int n = 0; n < 20; n++) {
            insert(n, "priority => " + n % 3, "run_at => now() - " + n * n + " * interval '1 minute'");
        }
        insert(20, "priority => 0", "run_at => '-infinity'");
        insert(21, "priority => -32768", "run_at => now()");
        insert(22, "priority => 32767", "run_at => now() + interval '500 ms'");
        awaitStrays(24);
    }

    @Test
    void thatAreAddedWithAnEarlierTimeOrAnotherPriorityRunAtOnce() {
        for (int n = 0; n < 20; n++) {
            int before = strays.size();
            db.scheduler()
                    .addJob(
                            STRAY,
                            n,
                            JobSpec.builder()
                                    .runAt(Instant.now().minus(Duration.ofMinutes(n)))
                                    .priority(n % 7 - 3)
                                    .build());
            awaitStrays(before + 1);
        }
    }

    @Test
    void ofALongTransactionRun() throws Exception {
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            for (int n = 0; n < 5; n++) {
                statement.execute(
                        db.schema().in("select {schema}.add_job('stray', '" + n + "', priority => " + n % 2 + ")"));
            }
            awaitFlow();
            connection.commit();
        }
        awaitStrays(6);
    }

    @Test
    void thatAreFreedRun() throws SQLException {
        for (int n = 0; n < 10; n++) {
            insert(n, "priority => 0", "run_at => now() - interval '1 hour', locked_at => now(), locked_by => 'other'");
        }
        awaitFlow();
        db.sql(
                        "update {schema}._private_jobs set locked_at = null, locked_by = null where id % 2 = 0 and locked_by = 'other'")
                .update();
        db.sql("select {schema}.force_unlock_workers(array['other'])")
                .query((row, number) -> 1)
                .list();
        awaitStrays(11);
    }

    @Test
    @Tag("thorough")
    void thatAreRescheduledRun() {
        for (int n = 0; n < 10; n++) {
            insert(n, "priority => 0", "run_at => now() + interval '1 day'");
        }
        awaitFlow();
        db.sql(
                        "select {schema}.reschedule_jobs(array(select id from {schema}._private_jobs where run_at > now() + interval '1 hour'),"
                                + " run_at => now() - interval '1 hour')")
                .query((row, number) -> 1)
                .list();
        awaitStrays(11);
    }

    private void awaitFlow() {
        int before = flowed.get();
        Awaitility.await().pollInterval(Duration.ofMillis(10)).until(() -> flowed.get() > before + 500);
    }

    private void awaitStrays(int count) {
        Awaitility.await().pollInterval(Duration.ofMillis(10)).until(() -> strays.size() >= count);
        assertThat(strays).hasSize(count);
    }

    /** Writes the row as somebody does who does not know the functions. */
    private void insert(int payload, String... columns) {
        String all = String.join(", ", columns);
        String names = all.replaceAll(" => (?:[^,(]|\\([^)]*\\))*", "");
        String values = all.replaceAll("[a-z_]+ => ", "");
        db.sql("insert into {schema}._private_jobs (task_id, payload, " + names
                        + ") select {schema}.pgworker_task_id('stray'), '" + payload + "', " + values)
                .update();
    }
}
