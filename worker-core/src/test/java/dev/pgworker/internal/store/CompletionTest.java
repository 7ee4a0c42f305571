package dev.pgworker.internal.store;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

import com.zaxxer.hikari.HikariDataSource;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.job.Job;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.testing.InterceptedDataSource;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

/** Jobs are deleted where they lay when they were claimed, but never one that is not meant. */
class CompletionTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final HikariDataSource pool = TestSchema.pool(1);

    private JobStore store;
    private TaskIds tasks;

    @BeforeEach
    void createStore() throws SQLException {
        store = new JobStore(pool, db.schema(), "w");
        tasks = store.claims().tasks(Set.of("work"));
    }

    @AfterEach
    void closePool() {
        pool.close();
    }

    @Test
    void theAddressesOfClaimsAreUsed() throws SQLException {
        List<Job> jobs = claimed(5, null);
        db.sql("alter function {schema}.pgworker_delete_at rename to renamed").update();

        assertThatThrownBy(() -> complete(jobs)).hasMessageContaining("pgworker_delete_at");

        db.sql("alter function {schema}.renamed rename to pgworker_delete_at").update();
        complete(jobs);
        assertThat(remaining()).isEmpty();
    }

    @Test
    void aClaimReturnsWhereTheRowsLieAfterIt() {
        add(5, null);

        assertThat(claimAndDelete("other", 3)).isNull();
        assertThat(remaining()).hasSize(5);
        assertThat(claimAndDelete("w", 2)).isEqualTo(2);
        assertThat(remaining()).hasSize(3);
    }

    private @Nullable Integer claimAndDelete(String deletingWorker, int jobs) {
        return db.sql("""
                        select cardinality({schema}.pgworker_delete_at(?, array_agg(c.id order by c.id),
                          array[min(c.locked_at)], null, array_agg(c.address)))
                        from {schema}.pgworker_claim('w', array(select id from {schema}._private_tasks), ?) c
                        """)
                .params(deletingWorker, jobs)
                .query((row, number) -> row.getObject(1, Integer.class))
                .list()
                .get(0);
    }

    @Test
    void aRowThatMovedIsFound() throws SQLException {
        List<Job> jobs = claimed(5, null);
        db.sql("update {schema}._private_jobs set priority = 3 where id = ?")
                .params(jobs.get(2).id())
                .update();

        Completion completion = complete(jobs);

        assertThat(completion.unwritten()).isEmpty();
        assertThat(remaining()).isEmpty();
    }

    @Test
    void aJobOfAnotherWorkerStays() throws SQLException {
        List<Job> jobs = claimed(5, null);
        long taken = jobs.get(2).id();
        db.sql("update {schema}._private_jobs set locked_by = 'other' where id = ?")
                .params(taken)
                .update();

        Completion completion = complete(jobs);

        assertThat(completion.unwritten()).containsExactly(Map.entry(taken, WriteResult.LOST));
        assertThat(remaining()).containsExactly(taken);
    }

    @Test
    void aJobOfAGroupThatIsHeldByTheClaimOfAnotherOneStays() throws SQLException {
        List<Job> jobs = new ArrayList<>(claimed(2, null));
        jobs.addAll(claimed(2, null));
        long again = jobs.get(1).id();
        db.sql(
                        "update {schema}._private_jobs set locked_at = (select max(locked_at) from {schema}._private_jobs) where id = ?")
                .params(again)
                .update();
        db.sql("vacuum full {schema}._private_jobs").update();
        JobStore fresh = new JobStore(pool, db.schema(), "w");

        assertThat(fresh.outcomes()
                        .complete(
                                jobs,
                                new FollowUp(tasks, LanePlan.NONE, Long.MAX_VALUE, List.of()),
                                RenewedLocks.UNCHANGED)
                        .unwritten())
                .containsExactly(Map.entry(again, WriteResult.LOST));
        assertThat(remaining()).containsExactly(again);
    }

    @Test
    void aClaimThatMovesToAnotherJobIsNoticedAtItsAddress() throws SQLException {
        claimed(2, null);
        claimed(2, null);
        assertThat(deleteAt("array[1, 2, 2, 2]")).isNull();
        assertThat(remaining()).hasSize(4);
        assertThat(deleteAt("array[1, 1, 2, 2]")).isEqualTo(4);
        assertThat(remaining()).isEmpty();
    }

    private @Nullable Integer deleteAt(String claimNumbers) {
        return db.sql("""
                        select cardinality({schema}.pgworker_delete_at('w', array_agg(j.id order by j.id),
                          (select array_agg(c.locked_at order by c.locked_at)
                            from (select distinct locked_at from {schema}._private_jobs) c), %s, array_agg(j.ctid)))
                        from {schema}._private_jobs j
                        """.formatted(claimNumbers))
                .query((row, number) -> row.getObject(1, Integer.class))
                .list()
                .get(0);
    }

    @Test
    void aJobOrQueueWhoseRowSomebodyHoldsDoesNotCountAsWaiting() throws SQLException {
        for (String queue : new @Nullable String[] {null, "q"}) {
            add(1, queue);
            assertThat(store.due().waits(tasks, List.of(), Duration.ZERO)).isTrue();
            for (String table : queue == null ? List.of("jobs") : List.of("jobs", "job_queues")) {
                try (Connection other = db.dataSource().getConnection();
                        Statement statement = other.createStatement()) {
                    other.setAutoCommit(false);
                    statement.execute(db.schema().in("select from {schema}._private_" + table + " for update"));
                    assertThat(store.due().waits(tasks, List.of(), Duration.ZERO))
                            .as(table)
                            .isFalse();
                    other.rollback();
                }
            }
            complete(claim(1, 1));
        }
    }

    @Test
    void aClaimIsCancelledThoughTheFirstCancellationIsLost() throws Exception {
        add(1, null);
        JobStore losing = new JobStore(
                new InterceptedDataSource(
                        db.dataSource(),
                        (call, proceed) -> call.is("cancel", "pgworker_claim") ? null : proceed.proceed()),
                db.schema(),
                "w");
        ExecutorService executor = Executors.newSingleThreadExecutor();
        try (Connection holder = pool.getConnection()) {
            holder.setAutoCommit(false);
            holder.createStatement().execute(db.schema().in("lock table {schema}._private_jobs"));
            Future<?> claim = executor.submit(() -> losing.claims().claim(tasks, ClaimRequest.of(1)));
            await().until(() -> db.sql(
                                    "select count(*) from pg_locks where not granted and relation = '{schema}._private_jobs'::regclass")
                            .query(Integer.class)
                            .single()
                    == 1);

            assertThat(losing.claims().cancelClaims()).isTrue();
            assertThat(losing.claims().cancelClaims()).isTrue();

            assertThatThrownBy(() -> claim.get(120, TimeUnit.SECONDS))
                    .hasMessageContaining("canceling statement due to user request");
            holder.rollback();
        } finally {
            executor.shutdownNow();
        }
    }

    @Test
    void aJobThatTookThePlaceOfAnotherStays() throws SQLException {
        List<Job> jobs = claimed(20, null);
        long removed = jobs.get(7).id();
        String place = place(removed);
        db.sql("delete from {schema}._private_jobs where id = ?")
                .params(removed)
                .update();
        long successor = 0;
        // Until then somebody's snapshot, autovacuum's for instance, may keep the dead row.
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(120);
        while (successor == 0 && System.nanoTime() < deadline) {
            db.sql("vacuum {schema}._private_jobs").update();
            successor = db.sql("""
                            insert into {schema}._private_jobs (task_id, locked_at, locked_by)
                            select id, now(), 'w' from {schema}._private_tasks
                            returning case when ctid = ?::tid then id else 0 end
                            """).params(place).query(Long.class).single();
        }
        assertThat(successor).as("a job at the place of another").isPositive();

        Completion completion = complete(jobs);

        assertThat(completion.unwritten()).containsExactly(Map.entry(removed, WriteResult.GONE));
        assertThat(remaining()).contains(successor).doesNotContainAnyElementsOf(ids(jobs));
    }

    @Test
    void aRowThatSomebodyHoldsIsNotWaitedFor() throws SQLException {
        try (Connection connection = pool.getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("set statement_timeout = '60s'");
        }
        List<Job> jobs = claimed(5, null);
        long held = jobs.get(2).id();
        try (Connection other = db.dataSource().getConnection();
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute(db.schema().in("select from {schema}._private_jobs where id = " + held + " for update"));

            Completion completion = complete(jobs);

            assertThat(completion.unwritten()).containsExactly(Map.entry(held, WriteResult.BUSY));
            assertThat(remaining()).containsExactly(held);
            other.rollback();
        }
        try (Connection connection = pool.getConnection();
                Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery("show lock_timeout")) {
            row.next();
            assertThat(row.getString(1)).isEqualTo("0");
        }
        assertThat(complete(List.of(jobs.get(2))).unwritten()).isEmpty();
        assertThat(remaining()).isEmpty();
    }

    @Test
    void queuesGoOnOrAreFreedWhicheverWayTheirJobsAreDeleted() throws SQLException {
        for (boolean moved : List.of(false, true)) {
            add(4, "goes on");
            add(3, "is over");
            List<Job> jobs = byId(claim(10, 3));
            assertThat(jobs).hasSize(6);
            if (moved) {
                db.sql("update {schema}._private_jobs set priority = priority where id = ?")
                        .params(jobs.get(0).id())
                        .update();
            }
            List<Integer> aheads = jobs.stream()
                    .map(job -> "goes on".equals(job.queueName()) ? 1 : 0)
                    .toList();

            Completion completion = complete(jobs, new LanePlan(aheads, List.of()));

            assertThat(completion.claimed().jobs()).extracting(Job::queueName).containsExactly("goes on");
            assertThat(store.holdings().heldQueues(Duration.ofSeconds(60)))
                    .extracting(HeldQueue::name)
                    .containsExactly("goes on");
            complete(completion.claimed().jobs());
            assertThat(store.holdings().heldQueues(Duration.ofSeconds(60))).isEmpty();
            assertThat(remaining()).isEmpty();
        }
    }

    private List<Job> claimed(int jobs, String queue) throws SQLException {
        add(jobs, queue);
        return byId(claim(jobs, jobs));
    }

    private void add(int jobs, String queue) {
        JobSpec spec = JobSpec.builder().queueName(queue).build();
        db.scheduler()
                .addJobs(IntStream.range(0, jobs)
                        .mapToObj(i -> JobRequest.of(WORK, i, spec))
                        .toList());
    }

    private static List<Job> byId(List<Job> jobs) {
        return jobs.stream().sorted(Comparator.comparingLong(Job::id)).toList();
    }

    private static List<Long> ids(List<Job> jobs) {
        return jobs.stream().map(Job::id).toList();
    }

    private Completion complete(List<Job> jobs) throws SQLException {
        return complete(jobs, LanePlan.NONE);
    }

    private Completion complete(List<Job> jobs, LanePlan lanes) throws SQLException {
        return store.outcomes()
                .complete(jobs, new FollowUp(tasks, lanes, Long.MAX_VALUE, List.of()), RenewedLocks.UNCHANGED);
    }

    private List<Job> claim(int wanted, int run) throws SQLException {
        return store.claims()
                .claim(
                        tasks,
                        new ClaimRequest(
                                wanted, Long.MAX_VALUE, List.of(), task -> run, QueueFront.UNKNOWN, null, Chain.WHOLE))
                .jobs();
    }

    private String place(long id) {
        return db.sql("select ctid::text from {schema}._private_jobs where id = ?")
                .params(id)
                .query(String.class)
                .single();
    }

    private List<Long> remaining() {
        return db.sql("select id from {schema}._private_jobs order by id")
                .query(Long.class)
                .list();
    }
}
