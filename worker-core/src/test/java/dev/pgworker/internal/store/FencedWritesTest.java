package dev.pgworker.internal.store;

import java.sql.Connection;
import java.time.Instant;
import java.util.List;
import java.util.Map;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.internal.store.Release.Action;
import dev.pgworker.internal.store.RenewedLocks.RowLock;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobSpec;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** Whatever a worker writes about jobs and queues that another one holds by now has no effect. */
class FencedWritesTest {

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private JobStore old;
    private TaskIds tasks;
    private List<Job> jobs;
    private List<Map<String, Object>> before;

    /** The first worker claims two jobs with queues; then they are another one's, and a third job waits behind each. */
    @BeforeEach
    void takeTheJobsOfTheOldWorker() throws Exception {
        old = new JobStore(db.dataSource(), db.schema(), "old");
        for (String queue : List.of("a", "b", "a", "b")) {
            db.scheduler().addJob("work", 1, JobSpec.builder().queueName(queue).build());
        }
        tasks = old.claims().tasks(List.of("work"));
        jobs = old.claims()
                .claim(
                        ClaimRequest.of(tasks, List.of()),
                        2,
                        List.of(new Floor(new Floor.Kind(true, 0), Instant.MIN, 0)))
                .readable();
        assertThat(jobs).hasSize(2);
        db.sql("update {schema}._private_jobs set locked_by = 'other' where locked_by = 'old'")
                .update();
        db.sql("update {schema}._private_job_queues set locked_by = 'other' where locked_by = 'old'")
                .update();
        before = rows();
        assertThat(before).hasSize(6);
    }

    @Test
    void aCompletionOfOneJob() throws Exception {
        assertThat(complete(jobs.subList(0, 1)))
                .containsExactly(Map.entry(jobs.get(0).id(), WriteResult.LOST));
        assertThat(rows()).isEqualTo(before);
    }

    @Test
    void aCompletionOfSeveralJobs() throws Exception {
        assertThat(complete(jobs)).hasSize(2).containsValue(WriteResult.LOST).doesNotContainValue(WriteResult.GONE);
        assertThat(rows()).isEqualTo(before);
    }

    @Test
    void aReleaseHoweverTheJobEnded() throws Exception {
        for (Action action : Action.values()) {
            Map<Long, WriteResult> outcomes = old.outcomes()
                    .release(
                            jobs.stream()
                                    .map(job -> Release.of(job, action, null, "error", null))
                                    .toList(),
                            RenewedLocks.UNCHANGED,
                            Map.of());

            assertThat(outcomes.values()).hasSize(2).containsOnly(WriteResult.LOST);
            assertThat(rows()).isEqualTo(before);
        }
    }

    private Map<Long, WriteResult> complete(List<Job> done) throws Exception {
        List<HeldClaim> held = done.stream()
                .map(job -> new HeldClaim(job.id(), Claim.of(job).lockedAt(), null))
                .toList();
        return old.outcomes().complete(held, List.of(), false, Map.of());
    }

    @Test
    void theReleaseOfAQueue() throws Exception {
        List<Integer> ids = db.sql("select id from {schema}._private_job_queues")
                .query(Integer.class)
                .list();
        for (int id : ids) {
            assertThat(old.outcomes().free(List.of(new HeldQueue(id, "any", null))))
                    .isEmpty();
            assertThat(old.outcomes()
                            .free(List.of(new HeldQueue(id, "any", jobs.get(0).lockedAt()))))
                    .isEmpty();
        }

        assertThat(rows()).isEqualTo(before);
    }

    @Test
    void theRenewalOfLocks() throws Exception {
        db.sql("update {schema}._private_jobs set locked_at = now() - interval '5 hours' where locked_by = 'other'")
                .update();
        before = rows();

        old.holdings()
                .renew(jobs.stream().map(Claim::of).toList(), claim -> new RowLock(claim.lockedAt(), Instant.now()));

        assertThat(rows()).isEqualTo(before);
    }

    /** The same worker holds them again: a statement that is repeated after a lost answer must not hit the later run. */
    @Test
    void anythingAboutAnEarlierRunOfTheSameJobsByTheSameWorker() throws Exception {
        db.sql("update {schema}._private_jobs set locked_by = 'old', locked_at = locked_at + interval '1 microsecond' "
                        + "where locked_by = 'other'")
                .update();
        db.sql("update {schema}._private_job_queues set locked_by = 'old' where locked_by = 'other'")
                .update();
        before = rows();

        assertThat(complete(jobs).values()).hasSize(2).containsOnly(WriteResult.LOST);
        assertThat(complete(jobs.subList(0, 1)).values()).containsExactly(WriteResult.LOST);
        aReleaseHoweverTheJobEnded();
        old.holdings()
                .renew(jobs.stream().map(Claim::of).toList(), claim -> new RowLock(claim.lockedAt(), Instant.now()));

        assertThat(rows()).isEqualTo(before);
        for (Job job : jobs) {
            assertThat(old.holdings().isHeld(Claim.of(job), RenewedLocks.UNCHANGED))
                    .isFalse();
        }
    }

    /** What is not known to be renewed is known by both times until it is tried again. */
    @Test
    void aRenewalTellsWhichLocksItHasRenewed() throws Exception {
        db.sql("update {schema}._private_jobs set locked_by = 'old' where locked_by = 'other'")
                .update();
        RenewedLocks renewed =
                claim -> new RowLock(claim.lockedAt(), claim.lockedAt().plusSeconds(1));
        List<Claim> claims = jobs.stream().map(Claim::of).toList();
        try (Connection other = db.dataSource().getConnection()) {
            other.setAutoCommit(false);
            old.outcomes().awaitRow(other, jobs.get(0));

            assertThat(old.holdings().renew(claims, renewed))
                    .containsExactly(jobs.get(1).id());

            other.rollback();
        }
        assertThat(old.holdings().renew(claims, renewed)).hasSize(2);
        assertThat(old.holdings().isHeld(claims.get(0), renewed)).isTrue();
        assertThat(old.holdings().isHeld(claims.get(1), renewed)).isTrue();
    }

    /** Whether the answer to a renewal was lost or the renewal itself: the claim is known by either time. */
    @Test
    void aClaimIsKnownByTheTimeToWhichItMayHaveBeenRenewed() throws Exception {
        db.sql("update {schema}._private_jobs set locked_by = 'old' where locked_by = 'other'")
                .update();
        Instant later = java.util.Objects.requireNonNull(jobs.get(0).lockedAt()).plusSeconds(1);
        RenewedLocks renewed = claim -> new RowLock(claim.lockedAt(), later);
        old.holdings().renew(List.of(Claim.of(jobs.get(0))), renewed);

        for (Job job : jobs) {
            assertThat(old.holdings().isHeld(Claim.of(job), renewed)).isTrue();
        }
    }

    private List<Map<String, Object>> rows() {
        return db.sql("""
                        select 'job ' || id as name, locked_by, locked_at, attempts, run_at, last_error, updated_at
                        from {schema}._private_jobs
                        union all
                        select 'queue ' || queue_name, locked_by, locked_at, null, null, null, null
                        from {schema}._private_job_queues order by 1""").query().listOfRows();
    }
}
