package dev.pgworker.internal.store;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

import org.awaitility.Awaitility;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.internal.store.Floor.Kind;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.testing.OwnThread;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** What a claim takes, and what it leaves. */
class ClaimTest {

    private static final Task<String> WORK = Task.of("work", String.class);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private ClaimStore store;
    private TaskIds tasks;

    @BeforeEach
    void createStore() throws SQLException {
        store = new JobStore(db.dataSource(), db.schema(), "w").claims();
        tasks = store.tasks(List.of("work"));
    }

    private static List<Floor> from(@Nullable Instant plain, @Nullable Instant queued) {
        return List.of(
                new Floor(new Kind(false, 0), plain == null ? Instant.MIN : plain, 0),
                new Floor(new Kind(true, 0), queued == null ? Instant.MIN : queued, 0));
    }

    private ClaimRequest request(int run, List<Long> passed) {
        return new ClaimRequest(tasks, List.of(), task -> run, 12, true, passed);
    }

    private Claimed claim(int wanted) throws SQLException {
        return store.claim(request(1, List.of()), wanted, from(null, null));
    }

    private static List<Long> ids(Claimed claimed) {
        return claimed.readable().stream().map(Job::id).toList();
    }

    private List<Long> add(int jobs, String... queues) {
        return db
                .scheduler()
                .addJobs(IntStream.range(0, jobs)
                        .mapToObj(i -> JobRequest.of(
                                WORK,
                                "p",
                                JobSpec.builder()
                                        .queueName(queues.length == 0 ? null : queues[i % queues.length])
                                        .build()))
                        .toList())
                .stream()
                .map(Job::id)
                .toList();
    }

    @Test
    void whatIsPassedOverTakesItsQueueAndNothingElseWithIt() throws SQLException {
        List<Long> plain = add(3);
        List<Long> queued = add(6, "a", "b", "c");

        Claimed claimed = store.claim(request(2, List.of(plain.get(0), queued.get(1))), 20, from(null, null));

        assertThat(ids(claimed))
                .containsExactly(
                        plain.get(1), plain.get(2), queued.get(0), queued.get(2), queued.get(3), queued.get(5));
    }

    @Test
    void aClaimOfManyWaitsForItsTurnForABoundedTimeAndASmallOneForNothing() throws Exception {
        add(100);
        try (Connection other = db.dataSource().getConnection();
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute(db.schema().in("lock table {schema}.pgworker_turn in exclusive mode"));

            assertThatThrownBy(() -> claim(50)).hasFieldOrPropertyWithValue("SQLState", "55P03");
            assertThat(claim(49).size()).isEqualTo(49);
            CompletableFuture<Integer> waiting =
                    CompletableFuture.supplyAsync(() -> retried(() -> claim(50).size()), OwnThread.EACH);
            Awaitility.await()
                    .until(() -> db.sql("select exists (select from pg_locks l where not l.granted and l.relation ="
                                    + " '{schema}.pgworker_turn'::regclass)")
                            .query(Boolean.class)
                            .single());
            other.commit();

            assertThat(waiting.get(120, TimeUnit.SECONDS)).isEqualTo(50);
        }
    }

    @FunctionalInterface
    private interface Attempt {
        int run() throws SQLException;
    }

    /** The bound of the wait may end while the test takes its time. */
    private static int retried(Attempt attempt) {
        while (true) {
            try {
                return attempt.run();
            } catch (SQLException e) {
                if (!"55P03".equals(e.getSQLState())) {
                    throw new IllegalStateException(e);
                }
            }
        }
    }

    @Test
    void theFirstJobIsToldWithoutBeingClaimed() throws SQLException {
        List<Long> ids = add(2, "a");

        assertThat(store.first(request(1, List.of()), from(null, null)))
                .isNotNull()
                .extracting(ClaimStore.First::jobId, ClaimStore.First::task)
                .containsExactly(ids.get(0), "work");
        assertThat(db.sql("select count(*) from {schema}._private_jobs where attempts > 0 or locked_at is not null")
                        .query(Integer.class)
                        .single())
                .isZero();
        assertThat(store.first(request(1, ids), from(null, null))).isNull();
    }

    @Test
    void floorsHideWhatLiesBeforeThemButNotTheFirstJobOfAQueue() throws SQLException {
        List<Long> plain = add(2);
        List<Long> queued = add(3, "a");
        db.sql("update {schema}._private_jobs set run_at = now() - interval '1 hour' where id in (?, ?)")
                .params(plain.get(0), queued.get(1))
                .update();
        Instant floor = Instant.now().minus(Duration.ofMinutes(30));

        assertThat(ids(store.claim(request(2, List.of()), 10, from(floor, floor))))
                .containsExactly(queued.get(1), plain.get(1), queued.get(0));
        db.sql("update {schema}._private_jobs set locked_at = null, locked_by = null")
                .update();
        db.sql("update {schema}._private_job_queues set locked_at = null, locked_by = null")
                .update();
        ClaimRequest fromFloors = new ClaimRequest(tasks, List.of(), task -> 2, 12, false, List.of());

        assertThat(ids(store.claim(fromFloors, 10, from(floor, floor))))
                .containsExactly(plain.get(1), queued.get(0), queued.get(2));
    }

    @Test
    void aQueueWhoseRowSomebodyHoldsIsPassedOverAndWorthLookingAgain() throws Exception {
        List<Long> ids = add(2, "a", "b");
        try (Connection other = db.dataSource().getConnection();
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute(
                    db.schema().in("select from {schema}._private_job_queues where queue_name = 'a' for update"));

            Claimed claimed = claim(10);
            assertThat(ids(claimed)).containsExactly(ids.get(1));
            assertThat(claimed.again()).isTrue();
            other.rollback();
        }
        assertThat(ids(claim(10))).containsExactly(ids.get(0));
        assertThat(claim(10).again()).isFalse();
    }

    /** As when somebody deletes, cancels or reschedules the jobs between the walk and the read of its queue. */
    @Test
    void aQueueOfWhichNoJobIsTakenStaysFree() throws SQLException {
        add(1, "a");
        db.sql("""
                        create or replace function {schema}.pgworker_queue_row(queue_id int)
                        returns table (tid tid, locked_at timestamptz, locked_by text, queue_name text)
                        language plpgsql volatile as $$
                        #variable_conflict use_column
                        begin
                          delete from {schema}._private_jobs;
                          return query select q.ctid, q.locked_at, q.locked_by, q.queue_name from {schema}._private_job_queues q where q.id = $1;
                        end $$""").update();

        assertThat(ids(claim(10))).isEmpty();
        assertThat(db.sql("select count(*) from {schema}._private_job_queues where locked_at is null")
                        .query(Integer.class)
                        .single())
                .isEqualTo(1);
    }

    @Test
    void thoseWhoAddJobsAtOtherIsolationsLockNoRowThatClaimsNeed() throws Exception {
        List<Long> ids = add(1, "a");
        for (int isolation : new int[] {Connection.TRANSACTION_REPEATABLE_READ, Connection.TRANSACTION_SERIALIZABLE}) {
            try (Connection other = db.dataSource().getConnection();
                    Statement statement = other.createStatement()) {
                other.setAutoCommit(false);
                other.setTransactionIsolation(isolation);
                statement.execute(db.schema().in("select {schema}.add_job('work', queue_name => 'a')"));
                statement.execute(db.schema()
                        .in(
                                "select count(*) from {schema}.add_jobs(array[('work', '1', 'a', null, null, null, null, null)]"
                                        + "::{schema}.job_spec[])"));

                assertThat(ids(claim(10))).containsExactly(ids.get(0));
                other.rollback();
            }
            db.sql("update {schema}._private_jobs set locked_at = null, locked_by = null")
                    .update();
            db.sql("update {schema}._private_job_queues set locked_at = null, locked_by = null")
                    .update();
        }
    }

    @Test
    void afterManyJobsOfQueuesThatOthersHoldThoseOfFreeQueuesAreFound() throws SQLException {
        add(1, "held");
        db.sql(
                        "insert into {schema}._private_jobs (task_id, payload, job_queue_id, run_at)"
                                + " select j.task_id, '1', j.job_queue_id, j.run_at from {schema}._private_jobs j, generate_series(1, 5000)")
                .update();
        db.sql("update {schema}._private_job_queues set locked_at = now(), locked_by = 'other'")
                .update();
        List<Long> free = add(1, "free");

        Claimed claimed = claim(10);
        assertThat(ids(claimed)).isEqualTo(free);
        assertThat(claimed.again())
                .as("there may be more than have been looked at")
                .isTrue();
    }

    @Test
    void largePayloadsAreLeftOutAndReadLater() throws SQLException {
        Job small = db.scheduler().addJob(WORK, "p");
        Job large = db.scheduler().addJob(WORK, "p".repeat(100_000));

        List<Job> jobs = claim(10).readable();
        assertThat(jobs).extracting(Job::payload).containsExactly("\"p\"", "");
        List<Claim> claims = List.of(Claim.of(jobs.get(1)), Claim.of(jobs.get(0)));

        assertThat(store.payloads(claims, RenewedLocks.UNCHANGED))
                .containsOnlyKeys(small.id(), large.id())
                .containsEntry(large.id(), large.payload());
        db.sql("update {schema}._private_jobs set locked_by = 'other'").update();
        assertThat(store.payloads(claims, RenewedLocks.UNCHANGED)).isEmpty();
    }

    @Test
    void jobsAreClaimedByTheirIdsUnlessTheyHaveAQueueAreNotDueOrAreHeld() throws SQLException {
        List<Long> ids = add(4);
        List<Long> queued = add(1, "a");
        db.sql("update {schema}._private_jobs set run_at = now() + interval '1 hour' where id = ?")
                .param(ids.get(1))
                .update();
        db.sql("update {schema}._private_jobs set locked_at = now(), locked_by = 'other' where id = ?")
                .param(ids.get(2))
                .update();

        Claimed claimed = store.claimIds(
                request(1, List.of()), List.of(ids.get(0), ids.get(1), ids.get(2), ids.get(3), queued.get(0), -1L));

        assertThat(ids(claimed)).containsExactly(ids.get(0), ids.get(3));
    }

    @Test
    void aLookTellsWhereDueJobsBeginAndWhenTheNextIsDue() throws SQLException {
        List<Long> plain = add(2);
        List<Long> queued = add(1, "a");
        db.sql("update {schema}._private_jobs set priority = 3, run_at = now() + interval '1 hour' where id = ?")
                .param(plain.get(1))
                .update();

        Look look = store.look(request(1, List.of()), null, null);

        assertThat(look.anyDue()).isTrue();
        assertThat(look.untilNext()).isBetween(Duration.ofMinutes(50), Duration.ofMinutes(60));
        assertThat(look.first()).containsOnlyKeys(new Kind(false, 0), new Kind(false, 3), new Kind(true, 0));
        assertThat(look.first().get(new Kind(false, 0)).jobId()).isEqualTo(plain.get(0));
        assertThat(look.first().get(new Kind(true, 0)).jobId()).isEqualTo(queued.get(0));
        assertThat(look.first().get(new Kind(false, 3)).runAt()).isEqualTo(look.at());
        Look behind = store.look(request(1, List.of()), from(look.at(), look.at()), null);
        assertThat(behind.anyDue()).isFalse();
        assertThat(behind.first()).containsOnlyKeys(new Kind(false, 0), new Kind(true, 0));
    }
}
