package dev.pgworker;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;

import org.awaitility.Awaitility;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.postgresql.PGConnection;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.job.Task;
import dev.pgworker.testing.OwnThread;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** Claims of many jobs are made by two at a time; whoever gets no turn soon goes on without. */
@Tag("thorough")
@Tag("any-postgres")
class ClaimTurnsTest {

    private static final int JOBS = 30_000;
    private static final Task<Integer> COUNT = Task.of("count", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema(30);

    @BeforeEach
    void addJobs() {
        db.scheduler().addJobs(COUNT, IntStream.range(0, JOBS).boxed().toList());
    }

    @Test
    void aClaimOfManyHasATurnUntilItCommitsAndOneOfFewHasNone() throws Exception {
        try (Connection claimer = transaction()) {
            assertThat(claim(claimer, 199, null)).hasSize(199);
            assertThat(turnsOf(claimer)).isZero();
            assertThat(claim(claimer, 200, null)).hasSize(200);
            assertThat(turnsOf(claimer)).isOne();
            assertThat(claim(claimer, 200, null)).hasSize(200);
            claimer.commit();
            assertThat(turnsOf(claimer)).isZero();
        }
    }

    @Test
    void twoHaveTurnsAndTheThirdWaitsForOne() throws Exception {
        try (Connection first = transaction();
                Connection second = transaction();
                Connection third = transaction()) {
            assertThat(claim(first, 300, null)).hasSize(300);
            assertThat(claim(second, 300, null)).hasSize(300);
            assertThat(turnsOf(first)).isOne();
            assertThat(turnsOf(second)).isOne();
            // Longer than it takes to see that it waits.
            db.sql("alter function {schema}.pgworker_await_turn(bigint) set lock_timeout = 0")
                    .update();

            CompletableFuture<List<Long>> claim =
                    CompletableFuture.supplyAsync(() -> claim(third, 300, null), OwnThread.EACH);
            Awaitility.await().until(() -> waits(third));
            first.commit();
            second.commit();
            assertThat(claim.get(120, TimeUnit.SECONDS)).hasSize(300).doesNotContainNull();
            assertThat(turnsOf(third)).isOne();
        }
    }

    @Test
    void whoGetsNoTurnClaimsWithoutAndItsTransactionGoesOn() throws Exception {
        try (Connection first = transaction();
                Connection second = transaction();
                Connection third = transaction()) {
            claim(first, 300, null);
            claim(second, 300, 0);
            assertThat(claim(third, 300, null)).hasSize(300).doesNotContainNull();
            assertThat(turnsOf(third)).isZero();
            assertThat(claim(third, 300, null)).hasSize(300).doesNotContainNull();
            third.commit();
        }
        assertThat(db.sql("select count(*) from {schema}._private_jobs where locked_by = 'w'")
                        .query(Long.class)
                        .single())
                .isEqualTo(600);
    }

    @Test
    void aSecondChainIsRefusedWithOneRowOfNulls() throws Exception {
        try (Connection first = transaction();
                Connection second = transaction();
                Connection third = transaction()) {
            claim(first, 300, null);
            assertThat(claim(third, 300, 1)).hasSize(300).doesNotContainNull();
            third.rollback();
            claim(second, 300, null);
            assertThat(claim(third, 300, 1)).hasSize(1).containsOnlyNulls();
            assertThat(claim(third, 199, 1)).hasSize(199).doesNotContainNull();
            assertThat(claim(third, 300, 0)).hasSize(300).doesNotContainNull();
        }
    }

    @Test
    void aWorkerRunsEveryJobOnceWhileOthersKeepTheTurnsAndAsksForASecondChainOnceASecond() throws Exception {
        try (Connection first = transaction();
                Connection second = transaction()) {
            // Of a task that this worker does not have, so that they keep turns and nothing else.
            db.scheduler()
                    .addJobs(
                            Task.of("other", Integer.class),
                            IntStream.range(0, 1_000).boxed().toList());
            claimOf(first, "other", 300, null);
            claimOf(second, "other", 300, null);
            assertThat(turnsOf(first) + turnsOf(second)).isEqualTo(2);
            AtomicInteger refused = new AtomicInteger();
            Map<Integer, AtomicInteger> ledger = new ConcurrentHashMap<>();
            CountDownLatch done = new CountDownLatch(JOBS);
            long before = System.nanoTime();
            Worker worker = db.start(db.worker()
                    .settings(WorkerSettings.builder()
                            .pollInterval(Duration.ofMinutes(5))
                            .build())
                    .directListener(event -> {
                        if (event instanceof WorkerEvent.FetchEmpty
                                && Thread.currentThread().getName().equals("worker-fetch-2")) {
                            refused.incrementAndGet();
                        }
                    })
                    .task(COUNT, (number, context) -> {
                        ledger.computeIfAbsent(number, n -> new AtomicInteger()).incrementAndGet();
                        done.countDown();
                    }));

            assertThat(done.await(120, TimeUnit.SECONDS)).isTrue();
            Duration took = Duration.ofNanos(System.nanoTime() - before);
            worker.stop();
            assertThat(ledger).hasSize(JOBS);
            assertThat(ledger.values()).allMatch(runs -> runs.get() == 1);
            assertThat(refused.get()).isPositive().isLessThanOrEqualTo((int) took.toSeconds() + 2);
        }
    }

    @Test
    void manyWorkersRunEveryJobOnce() throws Exception {
        Map<Integer, AtomicInteger> ledger = new ConcurrentHashMap<>();
        CountDownLatch done = new CountDownLatch(JOBS);
        List<Worker> workers = IntStream.range(0, 5)
                .mapToObj(n -> db.start(db.worker()
                        .settings(WorkerSettings.builder()
                                .pollInterval(Duration.ofMinutes(5))
                                .build())
                        .task(COUNT, (number, context) -> {
                            ledger.computeIfAbsent(number, key -> new AtomicInteger())
                                    .incrementAndGet();
                            done.countDown();
                        })))
                .toList();

        assertThat(done.await(120, TimeUnit.SECONDS)).isTrue();
        Awaitility.await().until(() -> db.jobs() == 0);
        workers.forEach(Worker::stop);
        assertThat(ledger).hasSize(JOBS);
        assertThat(ledger.values()).allMatch(runs -> runs.get() == 1);
    }

    private Connection transaction() throws SQLException {
        Connection connection = db.dataSource().getConnection();
        connection.setAutoCommit(false);
        return connection;
    }

    private List<Long> claim(Connection connection, int wanted, @Nullable Integer parity) {
        return claimOf(connection, "count", wanted, parity);
    }

    /** Returns what the first column has, null where it is null. */
    private List<Long> claimOf(Connection connection, String task, int wanted, @Nullable Integer parity) {
        String text = db.schema().in("""
                select id from {schema}.pgworker_claim(
                  'w', array(select t.id from {schema}._private_tasks t where t.identifier = '%s'), %d, parity => %s)
                """.formatted(task, wanted, parity));
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(text)) {
            List<Long> ids = new ArrayList<>();
            while (row.next()) {
                long id = row.getLong(1);
                ids.add(row.wasNull() ? null : Long.valueOf(id));
            }
            return ids;
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    private static int turnsOf(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(
                        "select count(*) from pg_locks where locktype = 'advisory' and granted and pid = pg_backend_pid()")) {
            row.next();
            return row.getInt(1);
        }
    }

    /** Returns whether this session waits for an advisory lock. */
    private boolean waits(Connection connection) throws SQLException {
        int pid = connection.unwrap(PGConnection.class).getBackendPID();
        return db.sql("select count(*) from pg_locks where locktype = 'advisory' and not granted and pid = ?")
                        .param(pid)
                        .query(Long.class)
                        .single()
                > 0;
    }
}
