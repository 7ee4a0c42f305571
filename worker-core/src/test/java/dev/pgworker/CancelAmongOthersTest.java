package dev.pgworker;

import java.sql.Connection;
import java.sql.Statement;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.job.Cancellation;
import dev.pgworker.job.Cancellation.State;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.testing.ClaimSql;
import dev.pgworker.testing.OwnThread;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** A cancellation that is committed while somebody else is about to change the job. */
@Tag("any-postgres")
class CancelAmongOthersTest {

    private static final Task<Integer> TASK = Task.of("task", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema(10);

    /** What the first job asks a locked table for is waited for with the snapshot in hand that shows the second as it was. */
    @Test
    void aFailureWhoseStatementBeganBeforeTheCancellationIsWritten() throws Exception {
        long first = running("pgworker-1", 1);
        long id = running("pgworker-1");
        String write = "select outcome from {schema}.pgworker_release('pgworker-1', array["
                + ClaimSql.outcome(String.valueOf(first), "'fail'", "null", "'on purpose'", "null", "1") + ", "
                + ClaimSql.outcome(String.valueOf(id), "'retry'", "null", "'on purpose'", "null", "1") + "])";
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.execute(db.schema().in("lock table {schema}.pgworker_cancellations in access exclusive mode"));
            CompletableFuture<List<String>> written = CompletableFuture.supplyAsync(
                    () -> db.sql(write).query(String.class).list(), OwnThread.EACH);
            Awaitility.await()
                    .until(() -> db.sql("select exists (select from pg_catalog.pg_locks l where not l.granted"
                                    + " and l.relation = '{schema}.pgworker_cancellations'::regclass)")
                            .query(Boolean.class)
                            .single());
            statement.execute(
                    db.schema().in("select * from {schema}.pgworker_cancel_jobs(array[" + id + "]::bigint[])"));
            connection.commit();

            assertThat(written.get(120, TimeUnit.SECONDS)).containsExactlyInAnyOrder("failed", "cancelled");
        }
        assertThat(stateOf(id)).isEqualTo(State.CANCELLED);
    }

    @Test
    void aJobThatAWorkerOfNodeGivesBackDoesNotRun() {
        for (int most : new int[] {1, 25, Short.MAX_VALUE}) {
            long id = running("pool-1", most);
            Cancellation answer = db.changes().cancel(List.of(id)).get(0);
            assertThat(answer.state()).isEqualTo(State.MARKED);

            // What Graphile Worker does with a job that it has fetched and not started.
            db.sql(
                            "update {schema}._private_jobs set attempts = greatest(0, attempts - 1), locked_by = null, locked_at = null"
                                    + " where id = ?")
                    .param(id)
                    .update();

            assertThat(db.sql("select count(*) from {schema}._private_jobs where is_available")
                            .query(Integer.class)
                            .single())
                    .as("max_attempts = %s", most)
                    .isZero();
            assertThat(stateOf(id)).isEqualTo(State.CANCELLED);
        }
        db.sql("select {schema}.pgworker_tend_cancellations()")
                .query((row, number) -> 1)
                .list();
        assertThat(db.jobs()).isZero();
    }

    @Test
    @Tag("thorough")
    void manyJobsAreCancelledAtOnce() {
        db.sql("insert into {schema}._private_jobs (task_id) select {schema}.pgworker_task_id('task')"
                        + " from generate_series(1, 60000)")
                .update();
        List<Long> ids = db.sql("select id from {schema}._private_jobs")
                .query(Long.class)
                .list();

        List<Cancellation> answers = db.changes().cancel(ids);

        assertThat(answers)
                .hasSize(60_000)
                .allSatisfy(answer -> assertThat(answer.state()).isEqualTo(State.REMOVED));
    }

    private State stateOf(long id) {
        return db.queries().cancellations(List.of(id)).get(0).state();
    }

    private long running(String worker) {
        return running(worker, 25);
    }

    private long running(String worker, int maxAttempts) {
        Job job = db.scheduler()
                .addJob(TASK, 1, JobSpec.builder().maxAttempts(maxAttempts).build());
        db.sql("update {schema}._private_jobs set attempts = 1, locked_by = ?, locked_at = now() where id = ?")
                .params(worker, job.id())
                .update();
        if (worker.startsWith("pgworker-")) {
            db.sql("select {schema}.worker_heartbeat(?, '{\"implementation\": \"pgworker\"}')")
                    .param(worker)
                    .query((row, number) -> 1)
                    .list();
        }
        return job.id();
    }
}
