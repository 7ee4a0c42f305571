package dev.pgworker.internal.store;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.postgresql.PGConnection;

import dev.pgworker.internal.store.Floor.Kind;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Completions: jobs are deleted where their claims hold them, queues freed where their runs are over, and no row is waited for. */
class CompleteTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private JobStore store;
    private List<ClaimedJob> jobs;

    /** Two jobs of queue a, one of b, and two without a queue. */
    @BeforeEach
    void claimJobs() throws SQLException {
        store = new JobStore(db.dataSource(), db.schema(), "w");
        for (String queue : new String[] {"a", "a", "b", null, null}) {
            db.scheduler().addJob(WORK, 1, JobSpec.builder().queueName(queue).build());
        }
        jobs = claim();
        assertThat(jobs).hasSize(5);
    }

    private List<ClaimedJob> claim() throws SQLException {
        TaskIds tasks = store.claims().tasks(List.of("work"));
        ClaimRequest request = new ClaimRequest(tasks, List.of(), task -> 10, 12, true, List.of());
        List<Floor> floors =
                List.of(new Floor(new Kind(false, 0), Instant.MIN, 0), new Floor(new Kind(true, 0), Instant.MIN, 0));
        return store.claims().claim(request, 10, floors).jobs();
    }

    private static List<HeldClaim> held(List<ClaimedJob> claimed, boolean addresses) {
        return claimed.stream()
                .map(one ->
                        new HeldClaim(one.job().id(), Claim.of(one.job()).lockedAt(), addresses ? one.address() : null))
                .sorted(Comparator.comparingLong(HeldClaim::jobId))
                .toList();
    }

    private List<HeldQueue> queues() {
        List<HeldQueue> queues = new ArrayList<>();
        for (ClaimedJob one : jobs) {
            String name = one.job().queueName();
            if (name != null && queues.stream().noneMatch(queue -> queue.id() == one.queueId())) {
                queues.add(new HeldQueue(one.queueId(), name, one.job().lockedAt()));
            }
        }
        return queues;
    }

    private Map<Long, WriteResult> complete(List<HeldClaim> done, List<HeldQueue> over) throws SQLException {
        return store.outcomes().complete(done, over, false, Map.of());
    }

    private int lockedQueues() {
        return db.sql("select count(*) from {schema}._private_job_queues where locked_at is not null")
                .query(Integer.class)
                .single();
    }

    @Test
    void jobsGoByTheirAddressesAndQueuesWithThem() throws SQLException {
        assertThat(complete(held(jobs, true), queues())).isEmpty();

        assertThat(db.jobs()).isZero();
        assertThat(lockedQueues()).isZero();
    }

    @Test
    void aRowThatHasMovedIsFoundByItsId() throws SQLException {
        db.sql("update {schema}._private_jobs set updated_at = now()").update();

        assertThatThrownBy(() -> complete(held(jobs, true), queues())).hasFieldOrPropertyWithValue("SQLState", "55P03");
        assertThat(db.jobs()).as("all or nothing").isEqualTo(5);
        assertThat(lockedQueues()).isEqualTo(2);
        assertThat(complete(held(jobs, false), queues())).isEmpty();
        assertThat(db.jobs()).isZero();
        assertThat(lockedQueues()).isZero();
    }

    @Test
    void aJobThatSomebodyHoldsIsBusyAndTheOthersGo() throws SQLException {
        long busy = jobs.get(1).job().id();
        try (Connection other = db.dataSource().getConnection();
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute(db.schema().in("select from {schema}._private_jobs where id = " + busy + " for update"));

            assertThatThrownBy(() -> complete(held(jobs, true), List.of()))
                    .hasFieldOrPropertyWithValue("SQLState", "55P03");
            assertThat(complete(held(jobs, false), List.of())).isEqualTo(Map.of(busy, WriteResult.BUSY));
            other.rollback();
        }
        assertThat(complete(held(jobs, false), List.of()).values())
                .containsOnly(WriteResult.GONE)
                .hasSize(4);
        assertThat(db.jobs()).isZero();
    }

    @Test
    void aQueueWhoseRowSomebodyHoldsIsFreedByItselfLater() throws SQLException {
        try (Connection other = db.dataSource().getConnection();
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute(
                    db.schema().in("select from {schema}._private_job_queues where queue_name = 'a' for update"));
            int held = queues().stream()
                    .filter(queue -> queue.name().equals("a"))
                    .findFirst()
                    .orElseThrow()
                    .id();

            assertThatThrownBy(() -> complete(held(jobs, true), queues()))
                    .hasFieldOrPropertyWithValue("SQLState", "55P03");
            assertThat(complete(held(jobs, false), List.of())).isEmpty();
            assertThat(store.outcomes().free(queues())).containsExactly(held);
            assertThat(lockedQueues()).isEqualTo(1);
            other.rollback();
        }
        assertThat(store.outcomes().free(queues())).isEmpty();
        assertThat(lockedQueues()).isZero();
    }

    @Test
    void aLateCompletionDoesNotFreeANewerRunOfTheSameWorker() throws SQLException {
        db.sql("update {schema}._private_job_queues set locked_at = locked_at + interval '1 second'")
                .update();

        assertThatThrownBy(() -> complete(held(jobs, true), queues())).hasFieldOrPropertyWithValue("SQLState", "55P03");
        assertThat(store.outcomes().free(queues())).isEmpty();
        assertThat(lockedQueues()).isEqualTo(2);
    }

    @Test
    void aJobOfAGroupThatIsHeldByTheClaimOfAnotherOneStays() throws SQLException {
        db.sql("update {schema}._private_jobs set locked_at = null, locked_by = null where job_queue_id is null")
                .update();
        List<ClaimedJob> later = claim();
        assertThat(later).hasSize(2);
        List<HeldClaim> mixed = new ArrayList<>(held(jobs.subList(0, 1), false));
        // The first claim of a job that is held by the second.
        mixed.addAll(held(jobs, false).stream()
                .filter(one -> later.stream().anyMatch(other -> other.job().id() == one.jobId()))
                .toList());
        mixed.sort(Comparator.comparingLong(HeldClaim::jobId));

        assertThat(complete(mixed, List.of()).values()).containsExactly(WriteResult.LOST, WriteResult.LOST);
        assertThat(db.jobs()).isEqualTo(4);
    }

    @Test
    void aTriggerThatKeepsAJobIsReported() {
        db.sql("create function {schema}.keep() returns trigger language plpgsql as 'begin return null; end'")
                .update();
        db.sql(
                        "create trigger keep before delete on {schema}._private_jobs for each row execute function {schema}.keep()")
                .update();

        assertThatThrownBy(() -> complete(held(jobs, false), List.of()))
                .isInstanceOf(SQLException.class)
                .hasMessageContaining("A trigger keeps jobs from being deleted");
    }

    /** Other workers look behind its place meanwhile. */
    @Test
    void aJobOfAQueueThatIsGivenBackIsAnnouncedWithItsTime() throws SQLException {
        long id = jobs.get(0).job().id();
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("listen \"jobs:insert\"");
            db.sql("""
                            select {schema}.pgworker_release('w', array[(id, locked_at, 'back', null, null, null, null, null, null, null, null, null)
                              ::{schema}.pgworker_outcome]) from {schema}._private_jobs where id = ?""").param(id).query().listOfRows();
            statement.execute("select 1");
            assertThat(connection.unwrap(PGConnection.class).getNotifications())
                    .singleElement()
                    .satisfies(told -> assertThat(told.getParameter()).containsPattern("\"at\":\\d+,\"p\":\\[0]"));
            statement.execute("unlisten *");
        }
    }
}
