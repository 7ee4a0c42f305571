package dev.pgworker.internal.store;

import java.sql.Connection;
import java.sql.SQLException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TimeZone;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;

import com.zaxxer.hikari.HikariDataSource;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.internal.client.CrontabControl;
import dev.pgworker.internal.store.CrontabStore.Execution;
import dev.pgworker.internal.store.CrontabStore.Known;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.testing.InterceptedDataSource;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** An item's last execution and its jobs change together, and once for all workers. */
class CrontabStoreTest {

    private static final Instant TICK = Instant.parse("2026-03-01T04:30:00Z");

    @RegisterExtension
    final TestSchema db = new TestSchema(10);

    private CrontabStore store() {
        return new CrontabStore(db.dataSource(), db.schema());
    }

    /** Returns a store that tells before it waits for the locks of one item for 200 ms. */
    private CrontabStore store(Runnable onLongWait) {
        return new CrontabStore(
                new InterceptedDataSource(db.dataSource(), (call, proceed) -> {
                    if (call.is("setString", "lock_timeout")
                            && "200ms".equals(call.arguments().get(1))) {
                        onLongWait.run();
                    }
                    return proceed.proceed();
                }),
                db.schema());
    }

    private static Execution execution(String identifier, Instant tick) {
        return new Execution(identifier, tick, "task_" + identifier, "{\"i\":\"" + identifier + "\"}", JobSpec.DEFAULT);
    }

    @Test
    void addsAJobWithEveryAttribute() throws SQLException {
        JobSpec spec = JobSpec.builder()
                .queueName("q")
                .maxAttempts(3)
                .jobKey("k")
                .jobKeyMode(JobKeyMode.PRESERVE_RUN_AT)
                .priority(-2)
                .flags("a", "b\"\\,{")
                .build();

        CrontabStore.Result result = store().execute(
                        List.of(new Execution("i", TICK, "t", "{\"a\":\"\\u0000\"}", spec)),
                        CrontabStore.Adding.IN_TIME);

        assertThat(result.failed()).isEmpty();
        assertThat(result.added()).hasSize(1);
        assertThat(db.sql("select task_identifier, queue_name, max_attempts, key, priority, run_at = '" + TICK
                                + "' as at_tick, flags->>'a' as a, flags->>'b\"\\,{' as b from {schema}.jobs")
                        .query()
                        .singleRow())
                .isEqualTo(Map.of(
                        "task_identifier",
                        "t",
                        "queue_name",
                        "q",
                        "max_attempts",
                        3,
                        "key",
                        "k",
                        "priority",
                        -2,
                        "at_tick",
                        true,
                        "a",
                        "true",
                        "b",
                        "true"));
        assertThat(payloads()).containsExactly("{\"a\":\"\\u0000\"}");
        assertThat(store().register(List.of("i"), TICK)).isEqualTo(Map.of("i", new Known(TICK, TICK)));
    }

    @Test
    void theSameOrAnEarlierMinuteAddsNothing() throws SQLException {
        store().execute(List.of(execution("a", TICK)), CrontabStore.Adding.IN_TIME);

        assertThat(store().execute(List.of(execution("a", TICK)), CrontabStore.Adding.IN_TIME)
                        .added())
                .isEmpty();
        assertThat(store().execute(List.of(execution("a", TICK.minusSeconds(60))), CrontabStore.Adding.IN_TIME)
                        .added())
                .isEmpty();
        assertThat(store().execute(List.of(execution("a", TICK.plusSeconds(60))), CrontabStore.Adding.IN_TIME)
                        .added())
                .hasSize(1);
        assertThat(db.jobs()).isEqualTo(2);
    }

    @Test
    void registersWhatIsUnknownAndKeepsTheRest() throws SQLException {
        store().execute(List.of(execution("a", TICK)), CrontabStore.Adding.IN_TIME);

        assertThat(store().register(List.of("a", "b"), TICK.plusSeconds(5))).containsOnlyKeys("a");

        assertThat(store().register(List.of("a", "b"), TICK.plusSeconds(9)))
                .isEqualTo(Map.of("a", new Known(TICK, TICK), "b", new Known(TICK.plusSeconds(5), null)));
        assertThat(store().execute(List.of(execution("b", TICK)), CrontabStore.Adding.IN_TIME)
                        .added())
                .hasSize(1);
    }

    @Test
    void manyMinutesAreAddedInOrderAndOnlyFromTheLastOn() throws SQLException {
        store().execute(List.of(execution("a", TICK.plusSeconds(120))), CrontabStore.Adding.IN_TIME);
        List<Execution> executions = IntStream.range(0, 6)
                .mapToObj(minute -> execution("a", TICK.plusSeconds(60L * minute)))
                .toList();

        assertThat(store().execute(executions, CrontabStore.Adding.IN_TIME)
                        .added()
                        .keySet())
                .containsExactlyElementsOf(executions.subList(3, 6));

        assertThat(db.sql("select run_at from {schema}.jobs order by id")
                        .query((row, i) -> row.getTimestamp(1).toInstant())
                        .list())
                .isSorted()
                .hasSize(4);
    }

    /** A local time without its offset would mean either of two hours. */
    @Test
    void theHourInWhichClocksGoBackIsExecutedTwiceWhateverTheZoneOfThisProcess() throws SQLException {
        Instant first = Instant.parse("2026-10-25T00:30:00Z");
        Instant second = first.plusSeconds(3600);
        TimeZone before = TimeZone.getDefault();
        TimeZone.setDefault(TimeZone.getTimeZone("Europe/Berlin"));
        try (HikariDataSource pool = TestSchema.pool(1)) {
            CrontabStore store = new CrontabStore(pool, db.schema());

            assertThat(store.execute(List.of(execution("a", first)), CrontabStore.Adding.IN_TIME)
                            .added())
                    .hasSize(1);
            assertThat(store.execute(List.of(execution("a", second)), CrontabStore.Adding.IN_TIME)
                            .added())
                    .hasSize(1);

            assertThat(store.register(List.of("a"), second)).isEqualTo(Map.of("a", new Known(first, second)));
        } finally {
            TimeZone.setDefault(before);
        }
    }

    @Test
    void anItemThatFailsDoesNotStopTheOthersAndIsNotRecorded() throws SQLException {
        Execution bad = new Execution("bad", TICK, "bad", "not JSON", JobSpec.DEFAULT);

        CrontabStore.Result result =
                store().execute(List.of(execution("a", TICK), bad, execution("b", TICK)), CrontabStore.Adding.IN_TIME);

        assertThat(result.added().keySet()).extracting(Execution::identifier).containsExactly("a", "b");
        assertThat(result.failed()).containsOnlyKeys("bad");
        assertThat(store().register(List.of("a", "b", "bad"), TICK)).containsOnlyKeys("a", "b");
    }

    @Test
    void whatIsPassedOverCountsAsExecutedWithoutAJob() throws SQLException {
        store().execute(List.of(execution("paused", TICK)), CrontabStore.Adding.IN_TIME);
        new CrontabControl(db.dataSource(), db.schema()).pause("paused");
        List<Execution> executions = List.of(
                Execution.passedOver("a", TICK),
                execution("b", TICK),
                Execution.passedOver("paused", TICK.plusSeconds(60)),
                execution("b", TICK.plusSeconds(60)),
                Execution.passedOver("b", TICK.plusSeconds(120)));

        CrontabStore.Result result = store().execute(executions, CrontabStore.Adding.IN_TIME);

        assertThat(result.added().keySet()).containsExactly(executions.get(1), executions.get(3));
        assertThat(result.failed()).isEmpty();
        assertThat(store().register(List.of("a", "b"), TICK))
                .isEqualTo(Map.of("a", new Known(TICK, TICK), "b", new Known(TICK, TICK.plusSeconds(120))));
        assertThat(store().execute(
                                List.of(execution("a", TICK), execution("b", TICK.plusSeconds(120))),
                                CrontabStore.Adding.IN_TIME)
                        .added())
                .isEmpty();
    }

    @Test
    void anItemThatNobodyIsInTheWayOfIsNotDelayedByTheOthers() throws Exception {
        List<Execution> executions = new ArrayList<>(IntStream.range(0, 20)
                .mapToObj(i -> new Execution(
                        "held-" + i,
                        TICK,
                        "held",
                        "{}",
                        JobSpec.builder().jobKey("key-" + i).build()))
                .toList());
        executions.forEach(execution -> db.scheduler().addJob(Task.of("held", Integer.class), 1, execution.spec()));
        executions.add(execution("free", TICK));
        try (Connection holder = db.dataSource().getConnection()) {
            holder.setAutoCommit(false);
            holder.createStatement().execute(db.schema().in("select from {schema}._private_jobs for update"));
            List<Integer> free = new ArrayList<>();

            CrontabStore.Result result = store(() -> {
                        free.add(db.sql("select count(*) from {schema}.jobs where task_identifier = 'task_free'")
                                .query(Integer.class)
                                .single());
                        release(holder);
                    })
                    .execute(executions, CrontabStore.Adding.IN_TIME);

            assertThat(free).as("before any other is waited for").isNotEmpty().containsOnly(1);
            assertThat(result.held()).hasSizeLessThan(20);
        }
    }

    private static void release(Connection holder) {
        try {
            holder.rollback();
        } catch (SQLException e) {
            throw new AssertionError(e);
        }
    }

    /** The next minute of all others waits meanwhile. */
    @Test
    @Tag("thorough")
    void manyItemsThatHaveToWaitDoNotDoSoOneAfterTheOther() throws Exception {
        List<Execution> executions = IntStream.range(0, 100)
                .mapToObj(i -> new Execution(
                        "held-" + i,
                        TICK,
                        "held",
                        "{}",
                        JobSpec.builder().jobKey("key-" + i).build()))
                .toList();
        executions.forEach(execution -> db.scheduler().addJob(Task.of("held", Integer.class), 1, execution.spec()));
        try (Connection holder = db.dataSource().getConnection()) {
            holder.setAutoCommit(false);
            holder.createStatement().execute(db.schema().in("select from {schema}._private_jobs for update"));
            AtomicInteger long200 = new AtomicInteger();

            assertThat(store(long200::incrementAndGet)
                            .execute(executions, CrontabStore.Adding.IN_TIME)
                            .held())
                    .hasSize(100);

            assertThat(long200.get()).as("waits, of two seconds in all").isBetween(1, 11);
            holder.rollback();
        }
        assertThat(store().execute(executions, CrontabStore.Adding.IN_TIME).added())
                .hasSize(100);
    }

    @Test
    void racingWorkersAddEachExecutionOnce() throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(8);
        try {
            List<Callable<Integer>> workers = new ArrayList<>();
            for (int worker = 0; worker < 8; worker++) {
                // Every other worker names the items in the opposite order.
                List<String> order = worker % 2 == 0 ? List.of("a", "b", "c") : List.of("c", "b", "a");
                workers.add(() -> {
                    int added = 0;
                    for (int minute = 0; minute < 60; minute++) {
                        Instant tick = TICK.plusSeconds(60L * minute);
                        CrontabStore.Result result = store().execute(
                                        order.stream()
                                                .map(identifier -> execution(identifier, tick))
                                                .toList(),
                                        CrontabStore.Adding.IN_TIME);
                        assertThat(result.failed()).isEmpty();
                        added += result.added().size();
                    }
                    return added;
                });
            }
            int added = 0;
            for (Future<Integer> worker : threads.invokeAll(workers)) {
                added += worker.get();
            }
            assertThat(added).isEqualTo(180);
            assertThat(db.jobs()).isEqualTo(180);
        } finally {
            threads.shutdown();
        }
    }

    private List<String> payloads() {
        return db.sql("select payload::text from {schema}._private_jobs")
                .query(String.class)
                .list();
    }
}
