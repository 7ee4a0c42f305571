package dev.pgworker.flow;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

import dev.pgworker.WorkerClient;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.JobState;
import dev.pgworker.job.JobWait;
import dev.pgworker.job.Task;
import dev.pgworker.testing.OwnThread;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

/** What becomes of jobs that wait for jobs, whoever ends those; no worker runs here. */
class FlowReleaseTest {

    private static final Task<Integer> PART = Task.of("part", Integer.class);
    private static final Task<Integer> WHOLE = Task.of("whole", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private JobFlows flows() {
        return WorkerClient.jobFlows(db.dataSource(), db.schema(), db.codec());
    }

    private record Left(boolean more, boolean held) {}

    private Left releaseOnce() {
        return db.sql("select more, held from {schema}.pgworker_release_successors()")
                .query((row, number) -> new Left(row.getBoolean(1), row.getBoolean(2)))
                .single();
    }

    /** Has everything go on that can; returns whether somebody holds something. */
    private boolean release() {
        Left left = releaseOnce();
        while (left.more()) {
            left = releaseOnce();
        }
        return left.held();
    }

    private Job job(Task<Integer> task, int payload) {
        return db.scheduler().addJob(task, payload);
    }

    /** Ends a job as a worker of Node.js does. */
    private void succeed(Job... jobs) {
        for (Job job : jobs) {
            db.sql(
                            "update {schema}._private_jobs set locked_at = now(), locked_by = 'worker-node', attempts = attempts + 1 where id = ?")
                    .param(job.id())
                    .update();
            db.sql("delete from {schema}._private_jobs where id = ?")
                    .param(job.id())
                    .update();
        }
    }

    private void fail(Job job) {
        db.sql("select id from {schema}.permanently_fail_jobs(array[?::bigint], 'Out of paper')")
                .param(job.id())
                .query(Long.class)
                .list();
    }

    private Optional<Job> find(Job job) {
        return db.queries().find(job.id());
    }

    private boolean waits(Job job) {
        return db.sql("select run_at = '9999-01-01 00:00:00+00' from {schema}._private_jobs where id = ?")
                .param(job.id())
                .query(Boolean.class)
                .single();
    }

    private boolean isDue(Job job) {
        return db.sql("select run_at <= now() and is_available from {schema}._private_jobs where id = ?")
                .param(job.id())
                .query(Boolean.class)
                .single();
    }

    /** A flow of parts and a whole that waits for them. */
    private AddedFlow fanIn(int parts, OnFailure choice) {
        JobFlow flow = new JobFlow();
        List<FlowJob> added =
                flow.addAll(PART, IntStream.range(0, parts).boxed().toList());
        flow.add(WHOLE, parts).after(added).onFailure(choice);
        return flows().add(flow);
    }

    private static Job last(AddedFlow flow) {
        return flow.jobs().get(flow.jobs().size() - 1);
    }

    private JobWait waitOf(Job job) {
        return db.queries().waitOf(job.id()).orElseThrow();
    }

    @Test
    void aChainStartsOneAfterTheOther() {
        JobFlow flow = new JobFlow();
        FlowJob first = flow.add(PART, 1);
        FlowJob second = flow.add(PART, 2).after(first);
        FlowJob third = flow.add(PART, 3).after(second);
        AddedFlow added = flows().add(flow);
        assertThat(isDue(added.job(first))).isTrue();
        assertThat(waits(added.job(second))).isTrue();
        assertThat(waits(added.job(third))).isTrue();
        assertThat(release()).isFalse();
        assertThat(waits(added.job(second))).isTrue();

        succeed(added.job(first));
        assertThat(release()).isFalse();
        assertThat(isDue(added.job(second))).isTrue();
        assertThat(waits(added.job(third))).isTrue();
        succeed(added.job(second));
        release();
        assertThat(isDue(added.job(third))).isTrue();
    }

    @Test
    void fanInStartsAfterTheLast() {
        AddedFlow flow = fanIn(3, OnFailure.WAIT);
        succeed(flow.jobs().get(2), flow.jobs().get(0));
        release();
        assertThat(waits(last(flow))).isTrue();
        assertThat(waitOf(last(flow)))
                .isEqualTo(new JobWait(
                        JobWait.Reason.PREDECESSORS,
                        null,
                        null,
                        "Waits for 1 job that has not ended: "
                                + flow.jobs().get(1).id() + "."));
        succeed(flow.jobs().get(1));
        release();
        assertThat(isDue(last(flow))).isTrue();
    }

    @Test
    void completeJobsAndDeletionBeforeTheRunCountAsWhatTheyAre() {
        AddedFlow completed = fanIn(1, OnFailure.WAIT);
        db.changes().complete(List.of(completed.jobs().get(0).id()));
        AddedFlow deleted = fanIn(1, OnFailure.RUN);
        db.sql("delete from {schema}._private_jobs where id = ?")
                .param(deleted.jobs().get(0).id())
                .update();
        AddedFlow removed = fanIn(1, OnFailure.WAIT);
        db.changes().cancel(List.of(removed.jobs().get(0).id()));
        release();
        assertThat(isDue(last(completed))).isTrue();
        assertThat(isDue(last(deleted))).isTrue();
        assertThat(waits(last(removed))).isTrue();
        assertThat(waitOf(last(removed)).text())
                .isEqualTo("Waits for 1 job that has not succeeded: "
                        + removed.jobs().get(0).id() + ". Retry what has failed, or make this one run now.");
    }

    @Test
    void aTimeThatIsAskedForHoldsAfterwards() {
        Instant tomorrow = Instant.now().plus(Duration.ofDays(1)).truncatedTo(java.time.temporal.ChronoUnit.MILLIS);
        JobFlow flow = new JobFlow();
        FlowJob first = flow.add(PART, 1);
        FlowJob second =
                flow.add(WHOLE, 2, JobSpec.builder().runAt(tomorrow).build()).after(first);
        AddedFlow added = flows().add(flow);
        succeed(added.job(first));
        release();
        assertThat(find(added.job(second)).orElseThrow().runAt()).isEqualTo(tomorrow);
    }

    @Test
    void waitingGoesOnUntilTheOperatorHasRetriedWhatFailed() {
        AddedFlow flow = fanIn(2, OnFailure.WAIT);
        succeed(flow.jobs().get(0));
        fail(flow.jobs().get(1));
        release();
        assertThat(waits(last(flow))).isTrue();
        db.changes().runNow(List.of(flow.jobs().get(1).id()));
        release();
        assertThat(waits(last(flow))).isTrue();
        succeed(flow.jobs().get(1));
        release();
        assertThat(isDue(last(flow))).isTrue();
    }

    @Test
    void failureGoesDownTheChain() {
        JobFlow flow = new JobFlow();
        FlowJob first = flow.add(PART, 1);
        FlowJob second = flow.add(PART, 2).after(first).onFailure(OnFailure.FAIL);
        FlowJob third = flow.add(WHOLE, 3).after(second).onFailure(OnFailure.FAIL);
        FlowJob cleanUp = flow.add(WHOLE, 4).after(third).onFailure(OnFailure.RUN);
        AddedFlow added = flows().add(flow);
        fail(added.job(first));
        release();
        Job failed = find(added.job(third)).orElseThrow();
        assertThat(failed.attempts()).isEqualTo(failed.maxAttempts());
        assertThat(failed.lastError())
                .isEqualTo("Job " + added.job(second).id() + " (part), for which this one waited, has failed: Job "
                        + added.job(first).id() + " (part), for which this one waited, has failed: Out of paper");
        assertThat(isDue(added.job(cleanUp))).isTrue();
        // Retried by the operator it runs, and waits for nobody.
        db.changes().runNow(List.of(added.job(third).id()));
        assertThat(isDue(added.job(third))).isTrue();
    }

    @Test
    void whatRunsAllTheSameWaitsForAllToEnd() {
        AddedFlow flow = fanIn(2, OnFailure.RUN);
        fail(flow.jobs().get(0));
        release();
        assertThat(waits(last(flow))).isTrue();
        succeed(flow.jobs().get(1));
        release();
        assertThat(isDue(last(flow))).isTrue();
    }

    @Test
    void aPredecessorThatIsRetriedIsWaitedForAgain() {
        AddedFlow flow = fanIn(2, OnFailure.RUN);
        Job retried = flow.jobs().get(0);
        fail(retried);
        release();
        db.changes().runNow(List.of(retried.id()));
        succeed(flow.jobs().get(1));
        release();
        assertThat(waits(last(flow))).isTrue();
        fail(retried);
        release();
        assertThat(isDue(last(flow))).isTrue();
    }

    private record Alternatives(Job part, Job whole, Job apology, Job after) {}

    private Alternatives alternatives() {
        JobFlow flow = new JobFlow();
        FlowJob part = flow.add(PART, 1);
        FlowJob other = flow.add(PART, 2);
        FlowJob whole = flow.add(WHOLE, 3).after(part, other).onFailure(OnFailure.REMOVE);
        FlowJob apology = flow.add("apology", null).after(part, other).onFailure(OnFailure.INSTEAD);
        FlowJob after = flow.add(WHOLE, 4).after(whole, apology).onFailure(OnFailure.RUN);
        AddedFlow added = flows().add(flow);
        return new Alternatives(added.job(part), added.job(whole), added.job(apology), added.job(after));
    }

    @Test
    void anotherJobRunsInsteadOfWhatCannot() {
        Alternatives flow = alternatives();
        assertThat(waits(flow.apology)).isTrue();
        fail(flow.part);
        release();
        assertThat(find(flow.whole)).isEmpty();
        assertThat(isDue(flow.apology)).isTrue();
        assertThat(waits(flow.after)).isTrue();
        succeed(flow.apology);
        release();
        assertThat(isDue(flow.after)).isTrue();
    }

    @Test
    void whatRunsInsteadIsRemovedIfAllSucceed() {
        Alternatives flow = alternatives();
        succeed(flow.part);
        release();
        assertThat(waits(flow.apology)).isTrue();
        db.changes().complete(List.of(flow.part.id() + 1));
        release();
        assertThat(isDue(flow.whole)).isTrue();
        assertThat(find(flow.apology)).isEmpty();
        succeed(flow.whole);
        release();
        assertThat(isDue(flow.after)).isTrue();
        JobFlow lonely = new JobFlow();
        lonely.add(WHOLE, 5).onFailure(OnFailure.INSTEAD);
        assertThatThrownBy(() -> flows().add(lonely))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("waits for none");
    }

    @Test
    void theEndOfAFailedJobThatCouldNotBeWrittenIsFound() throws SQLException {
        AddedFlow flow = fanIn(1, OnFailure.RUN);
        try (Connection stranger = hold("pgworker_ends")) {
            fail(flow.jobs().get(0));
            stranger.rollback();
        }
        release();
        assertThat(waits(last(flow))).isTrue();
        db.sql("select {schema}.pgworker_tend_ends()").query().listOfRows();
        release();
        assertThat(isDue(last(flow))).isTrue();
    }

    /** Locks rows as somebody does who keeps a transaction open. */
    private Connection hold(String rows) throws SQLException {
        Connection stranger = db.dataSource().getConnection();
        stranger.setAutoCommit(false);
        try (Statement statement = stranger.createStatement()) {
            statement.execute(db.schema().in("select from {schema}." + rows + " for update"));
        }
        return stranger;
    }

    @Test
    void aFailureWhoseEndCouldNotBeWrittenIsFoundLater() throws SQLException {
        AddedFlow flow = fanIn(1, OnFailure.FAIL);
        String hold = db.schema().in("select from {schema}.pgworker_ends for update");
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.execute(hold);
            fail(flow.jobs().get(0));
            connection.rollback();
        }
        release();
        assertThat(waits(last(flow))).isTrue();
        db.sql("select {schema}.pgworker_tend_ends()").query().listOfRows();
        release();
        assertThat(find(last(flow)).orElseThrow().lastError()).contains("for which this one waited, has failed");
    }

    @Test
    void ofAWaitingJobThatIsRemovedNothingStays() {
        AddedFlow flow = fanIn(2, OnFailure.WAIT);
        db.changes().cancel(List.of(last(flow).id()));
        succeed(flow.jobs().get(0), flow.jobs().get(1));
        release();
        expire();
        assertThat(leftovers()).isZero();
    }

    @Test
    void whatIsKnownStaysForThoseWhoMayRetry() {
        AddedFlow flow = fanIn(1, OnFailure.WAIT);
        succeed(flow.jobs().get(0));
        release();
        expire();
        assertThat(flows().find(last(flow).id(), 10)).hasSize(2);
        // Many of these stand before no others.
        assertThat(db.sql("select count(*) from {schema}.pgworker_ends where expires_at < now()")
                        .query(Long.class)
                        .single())
                .isZero();
        db.changes().complete(List.of(last(flow).id()));
        release();
        expire();
        assertThat(leftovers()).isZero();
    }

    private void expire() {
        db.sql("update {schema}.pgworker_ends set expires_at = now() - interval '1 second' where outcome is not null")
                .update();
        db.sql("select {schema}.pgworker_tend_flows()").query().listOfRows();
        db.sql("select {schema}.pgworker_tend_ends()").query().listOfRows();
    }

    private long leftovers() {
        return db.sql("""
                        select (select count(*) from {schema}.pgworker_flow_edges) + (select count(*) from {schema}.pgworker_flow_waits)
                          + (select count(*) from {schema}.pgworker_ends)
                        """).query(Long.class).single();
    }

    @Test
    void whoRunsAWaitingJobNowTakesItOut() {
        AddedFlow flow = fanIn(1, OnFailure.FAIL);
        db.changes().runNow(List.of(last(flow).id()));
        assertThat(isDue(last(flow))).isTrue();
        fail(flow.jobs().get(0));
        release();
        assertThat(isDue(last(flow))).isTrue();
    }

    @ParameterizedTest
    @EnumSource(OnFailure.class)
    void whatAPersonHasFailedStaysAsItIs(OnFailure choice) {
        AddedFlow flow = fanIn(1, choice);
        db.changes().permanentlyFail(List.of(last(flow).id()), "not needed");
        fail(flow.jobs().get(0));
        release();
        assertThat(find(last(flow)).orElseThrow().lastError()).isEqualTo("not needed");
        assertThat(releaseOnce()).isEqualTo(new Left(false, false));
        db.changes().runNow(List.of(last(flow).id()));
        assertThat(isDue(last(flow))).isTrue();
    }

    @Test
    void keysReplaceKeepAndRemoveWhatWaits() {
        JobFlow flow = new JobFlow();
        FlowJob part = flow.add(PART, 1);
        flow.add(WHOLE, 2, JobSpec.builder().jobKey("whole").build()).after(part);
        AddedFlow added = flows().add(flow);
        Job kept = db.scheduler()
                .addJob(
                        WHOLE,
                        3,
                        JobSpec.builder()
                                .jobKey("whole")
                                .jobKeyMode(JobKeyMode.PRESERVE_RUN_AT)
                                .build());
        assertThat(kept.id()).isEqualTo(last(added).id());
        assertThat(waits(kept)).isTrue();
        // The same flow again: the part is another, and the whole waits for that one, too.
        AddedFlow again = flows().add(flow);
        assertThat(last(again).id()).isEqualTo(kept.id());
        assertThat(waits(kept)).isTrue();
        succeed(again.jobs().get(0));
        release();
        assertThat(isDue(kept)).isTrue();
        assertThat(db.changes().remove("whole")).isPresent();
    }

    @Test
    void aJobMayWaitForOneThatIsThere() {
        Job there = job(PART, 1);
        JobFlow flow = new JobFlow();
        FlowJob whole = flow.add(WHOLE, 2).afterJobs(there.id());
        Job added = flows().add(flow).job(whole);
        assertThat(waits(added)).isTrue();
        succeed(there);
        release();
        assertThat(isDue(added)).isTrue();
        // It has ended, and that is known.
        Job later = flows().add(flow).job(whole);
        assertThat(waits(later)).isTrue();
        release();
        assertThat(isDue(later)).isTrue();
    }

    @Test
    void ofAFailedOneAndOneThatTheHistoryKnowsTheEndIsKnown() {
        db.sql("select {schema}.pgworker_keep_history(true, null, null, null)")
                .query()
                .listOfRows();
        Job failed = job(PART, 1);
        fail(failed);
        Job succeeded = job(PART, 2);
        succeed(succeeded);
        JobFlow flow = new JobFlow();
        FlowJob runs = flow.add(WHOLE, 3).afterJobs(succeeded.id());
        FlowJob fails = flow.add(WHOLE, 4).afterJobs(failed.id()).onFailure(OnFailure.FAIL);
        AddedFlow added = flows().add(flow);
        release();
        assertThat(isDue(added.job(runs))).isTrue();
        assertThat(find(added.job(fails)).orElseThrow().lastError()).contains("Out of paper");
    }

    @Test
    void nobodyWaitsForAJobOfWhichNothingIsKnown() {
        Job gone = job(PART, 1);
        succeed(gone);
        JobFlow flow = new JobFlow();
        flow.add(PART, 2);
        flow.add(WHOLE, 3).afterJobs(gone.id());
        assertThatExceptionOfType(DataAccessException.class)
                .isThrownBy(() -> flows().add(flow))
                .withStackTraceContaining("No job can wait for job " + gone.id());
        assertThat(db.jobs()).isZero();
        assertThat(leftovers()).isZero();
    }

    @Test
    void onlyTheTransactionThatAddsAJobCanHaveItWait() {
        Job first = job(PART, 1);
        Job second = job(WHOLE, 2);
        assertThatThrownBy(() -> runAfter(second, first))
                .hasStackTraceContaining(
                        "Job " + second.id() + " cannot wait for others: this transaction has not added it");
        assertThat(isDue(second)).isTrue();
    }

    @Test
    void whoAsksForTheEndOfAJobHasNotAddedIt() {
        Job first = job(PART, 1);
        Job second = job(WHOLE, 2);
        assertThatThrownBy(() -> inTransaction(() -> {
                    db.sql("select {schema}.pgworker_keep_result(?)")
                            .param(second.id())
                            .query()
                            .listOfRows();
                    runAfter(second, first);
                    return null;
                }))
                .hasStackTraceContaining("this transaction has not added it");
        assertThat(isDue(second)).isTrue();
    }

    private void runAfter(Job successor, Job predecessor) {
        db.sql("select {schema}.pgworker_run_after(?::bigint, array[?::bigint])")
                .params(successor.id(), predecessor.id())
                .query()
                .listOfRows();
    }

    private <T> T inTransaction(java.util.function.Supplier<T> work) {
        return new TransactionTemplate(new DataSourceTransactionManager(db.dataSource())).execute(status -> work.get());
    }

    @Test
    void circlesCannotBeMade() {
        JobSpec keyed = JobSpec.builder().jobKey("a").build();
        List<Job> jobs = inTransaction(() -> {
            Job a = db.scheduler().addJob(PART, 1, keyed);
            Job b = db.scheduler().addJob(PART, 2, JobSpec.builder().jobKey("b").build());
            Job c = job(PART, 3);
            runAfter(b, a);
            runAfter(c, b);
            return List.of(a, b, c);
        });
        assertThatThrownBy(() -> inTransaction(() -> {
                    Job a = db.scheduler().addJob(PART, 1, keyed);
                    runAfter(a, jobs.get(2));
                    return a;
                }))
                .hasStackTraceContaining("would wait for itself");
        assertThatThrownBy(() -> inTransaction(() -> {
                    Job d = job(PART, 1);
                    runAfter(d, d);
                    return d;
                }))
                .hasStackTraceContaining("would wait for itself");
        FlowJob first = new JobFlow().add(PART, 1);
        JobFlow flow = new JobFlow();
        FlowJob mine = flow.add(PART, 1);
        FlowJob later = flow.add(PART, 2);
        assertThatIllegalArgumentException().isThrownBy(() -> mine.after(first));
        assertThatIllegalArgumentException().isThrownBy(() -> mine.after(later));
        assertThatIllegalArgumentException().isThrownBy(() -> mine.after(mine));
    }

    /** Each has written half of a circle, and cannot see the other's. */
    @Test
    void twoTransactionsCannotMakeACircleBetweenThem() throws Exception {
        JobSpec a = JobSpec.builder().jobKey("a").build();
        JobSpec b = JobSpec.builder().jobKey("b").build();
        Job first = db.scheduler().addJob(PART, 1, a);
        Job second = db.scheduler().addJob(PART, 2, b);
        java.util.concurrent.CyclicBarrier both = new java.util.concurrent.CyclicBarrier(2);
        List<java.util.concurrent.CompletableFuture<Boolean>> ends = new ArrayList<>();
        for (boolean turned : new boolean[] {false, true}) {
            ends.add(java.util.concurrent.CompletableFuture.supplyAsync(
                    () -> {
                        try {
                            return inTransaction(() -> {
                                Job mine = db.scheduler().addJob(PART, 1, turned ? b : a);
                                try {
                                    both.await();
                                } catch (Exception e) {
                                    throw new IllegalStateException(e);
                                }
                                runAfter(mine, turned ? first : second);
                                return true;
                            });
                        } catch (DataAccessException e) {
                            return false;
                        }
                    },
                    OwnThread.EACH));
        }
        assertThat(ends.get(0).get() ^ ends.get(1).get()).isTrue();
    }

    @Test
    void thePredecessorEndsAfterTheTransactionThatAddsTheEdge() throws Exception {
        Job there = job(PART, 1);
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.execute(db.schema().in("""
                    select {schema}.pgworker_run_after((select id from {schema}.add_job('whole')), array[<id>])
                    """.replace("<id>", String.valueOf(there.id()))));
            // A worker of ours finds it busy, one of Node.js waits.
            java.util.concurrent.CompletableFuture<Void> node =
                    java.util.concurrent.CompletableFuture.runAsync(() -> succeed(there), OwnThread.EACH);
            Awaitility.await()
                    .until(() -> db.sql(
                                            "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()")
                                    .query(Long.class)
                                    .single()
                            > 0);
            assertThat(node).isNotDone();
            connection.commit();
            node.get();
        }
        release();
        assertThat(db.sql("select count(*) from {schema}._private_jobs where run_at <= now()")
                        .query(Long.class)
                        .single())
                .isOne();
    }

    @Test
    void whatSomebodyHoldsIsReleasedLaterAndHoldsUpNothing() throws SQLException {
        AddedFlow held = fanIn(1, OnFailure.WAIT);
        AddedFlow other = fanIn(1, OnFailure.WAIT);
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.execute(db.schema()
                    .in("select from {schema}._private_jobs where id = "
                            + last(held).id() + " for update"));
            succeed(held.jobs().get(0), other.jobs().get(0));
            assertThat(release()).isTrue();
            assertThat(isDue(last(other))).isTrue();
            assertThat(waits(last(held))).isTrue();
            connection.rollback();
        }
        Awaitility.await().until(() -> !release());
        assertThat(isDue(last(held))).isTrue();
    }

    @Test
    void whatATriggerRefusesHoldsUpNothing() {
        AddedFlow refused = fanIn(1, OnFailure.WAIT);
        List<AddedFlow> others =
                IntStream.range(0, 10).mapToObj(i -> fanIn(1, OnFailure.WAIT)).toList();
        db.sql("""
                create function {schema}.refuse() returns trigger language plpgsql as
                $$ begin if new.id = <id> then raise exception 'no'; end if; return new; end $$
                """.replace("<id>", String.valueOf(last(refused).id()))).update();
        db.sql(
                        "create trigger refuse before update on {schema}._private_jobs for each row execute function {schema}.refuse()")
                .update();
        succeed(refused.jobs().get(0));
        others.forEach(flow -> succeed(flow.jobs().get(0)));
        assertThat(release()).isTrue();
        others.forEach(flow -> assertThat(isDue(last(flow))).isTrue());
        db.sql("drop trigger refuse on {schema}._private_jobs").update();
        Awaitility.await().until(() -> !release());
        assertThat(isDue(last(refused))).isTrue();
    }

    @Test
    void aStrangersLocksOnTheTablesStopNoJobFromEnding() throws SQLException {
        AddedFlow flow = fanIn(1, OnFailure.WAIT);
        for (String table : List.of("pgworker_flow_turn", "pgworker_flow_waits", "pgworker_flow_edges")) {
            Job plain = job(PART, 1);
            try (Connection connection = db.dataSource().getConnection();
                    Statement statement = connection.createStatement()) {
                connection.setAutoCommit(false);
                statement.execute(db.schema().in("lock table {schema}." + table + " in access exclusive mode"));
                succeed(plain);
                if (table.equals("pgworker_flow_turn")) {
                    succeed(flow.jobs().get(0));
                }
                assertThat(releaseOnce()).isEqualTo(new Left(false, true));
                connection.rollback();
            }
        }
        release();
        assertThat(isDue(last(flow))).isTrue();
    }

    @Test
    void aTransactionThatReplacesASuccessorHoldsUpNoOther() throws SQLException {
        JobFlow keyed = new JobFlow();
        FlowJob part = keyed.add(PART, 1);
        keyed.add(WHOLE, 2, JobSpec.builder().jobKey("whole").build()).after(part);
        AddedFlow replaced = flows().add(keyed);
        AddedFlow other = fanIn(1, OnFailure.WAIT);
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.execute(db.schema().in("""
                    select {schema}.pgworker_run_after(
                      (select id from {schema}.add_job('whole', job_key => 'whole')), array[(select id from {schema}.add_job('part'))])
                    """));
            succeed(replaced.jobs().get(0), other.jobs().get(0));
            assertThat(release()).isTrue();
            assertThat(isDue(last(other))).isTrue();
            connection.commit();
        }
        release();
        // It waits for the part of the second one alone.
        assertThat(waits(last(replaced))).isTrue();
        db.sql("delete from {schema}._private_jobs where id <> ?")
                .param(last(replaced).id())
                .update();
        release();
        assertThat(waits(last(replaced))).isTrue();
    }

    @Test
    void tenThousandEndAtOnceForOne() {
        AddedFlow flow = fanIn(10_000, OnFailure.WAIT);
        db.sql("delete from {schema}._private_jobs where id <> ?")
                .param(last(flow).id())
                .update();
        release();
        assertThat(waits(last(flow))).isTrue();
        assertThat(waitOf(last(flow)).text())
                .startsWith("Waits for 10000 jobs that have not succeeded: ")
                .contains(" and others.");
    }

    @Test
    void tenThousandStartAfterOne() {
        JobFlow flow = new JobFlow();
        FlowJob first = flow.add(PART, 0);
        flow.addAll(WHOLE, IntStream.range(0, 10_000).boxed().toList()).forEach(each -> each.after(first));
        AddedFlow added = flows().add(flow);
        assertThat(db.queries().count(JobQuery.builder().build()).scheduled()).isEqualTo(10_000);
        succeed(added.job(first));
        release();
        assertThat(db.queries().count(JobQuery.builder().build()).ready()).isEqualTo(10_000);
        assertThat(db.queries()
                        .list(JobQuery.builder()
                                .state(JobState.READY)
                                .pageSize(1)
                                .build())
                        .jobs())
                .hasSize(1);
    }

    @Test
    void theFlowOfAJobIsShown() {
        Alternatives flow = alternatives();
        long first = flow.part.id();
        succeed(flow.part);
        release();
        assertThat(flows().find(flow.after.id(), 100))
                .extracting(FlowMember::jobId, FlowMember::state, FlowMember::onFailure, FlowMember::predecessors)
                .containsExactly(
                        tuple(first, FlowState.SUCCEEDED, null, List.of()),
                        tuple(first + 1, FlowState.READY, null, List.of()),
                        tuple(flow.whole.id(), FlowState.WAITING, OnFailure.REMOVE, List.of(first, first + 1)),
                        tuple(flow.apology.id(), FlowState.WAITING, OnFailure.INSTEAD, List.of(first, first + 1)),
                        tuple(
                                flow.after.id(),
                                FlowState.WAITING,
                                OnFailure.RUN,
                                List.of(flow.whole.id(), flow.apology.id())));
        assertThat(flows().find(flow.after.id(), 2)).hasSize(2);
        assertThat(flows().find(LongStream.of(1_000_000).sum(), 2)).isEmpty();
    }
}
