package dev.pgworker;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;
import tools.jackson.databind.JsonNode;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.history.HistorySettings;
import dev.pgworker.job.JobHandle;
import dev.pgworker.job.JobResultException;
import dev.pgworker.job.JobResultException.Reason;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.ResultSettings;
import dev.pgworker.job.Task;
import dev.pgworker.task.JobControlException;
import dev.pgworker.task.RetryDelay;
import dev.pgworker.task.TaskHandler;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

/** Who has asked for the result of a job gets it, or is told why there is none, whoever ends the job. */
class ResultsTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);

    private static final Duration NET = Duration.ofMinutes(2);

    private static final RetryDelay AT_ONCE = (job, error) -> Duration.ZERO;

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final RecordingListener events = new RecordingListener();

    private record Report(int number, String text) {}

    private static final TaskHandler<Integer> REPORTS =
            (payload, context) -> context.result(new Report(payload, "ä\uD83D\uDE00"));

    private Worker start(TaskOptions options, TaskHandler<Integer> handler) {
        return db.start(db.worker()
                .listener(events)
                .transactionManager(new JdbcTransactionManager(db.dataSource()))
                .tasks(List.of(TaskRegistration.of(WORK, handler).with(options))));
    }

    private JobHandle<Report> add(int number) {
        return db.scheduler().addJobForResult(WORK, number, Report.class);
    }

    private TransactionTemplate transaction() {
        return new TransactionTemplate(new JdbcTransactionManager(db.dataSource()));
    }

    private JobResultException failure(JobHandle<?> handle) {
        return Objects.requireNonNull(catchThrowableOfType(JobResultException.class, () -> handle.await(NET)));
    }

    private void sql(String text) {
        db.sql(text).update();
    }

    private List<?> select(String text) {
        return db.sql(text).query().listOfRows();
    }

    private void claim(JobHandle<?> handle) {
        sql(
                "update {schema}._private_jobs set locked_at = now(), locked_by = 'node', attempts = attempts + 1 where id = "
                        + handle.jobId());
    }

    /** Who sends this has no limit for waits, but that of a test. */
    private void deleteAsAnyClient(JobHandle<?> handle) throws SQLException {
        try (Connection client = db.dataSource().getConnection();
                Statement session = client.createStatement()) {
            session.execute("set statement_timeout = '120s'");
            session.execute(db.schema().in("delete from {schema}._private_jobs where id = " + handle.jobId()));
            session.execute("reset statement_timeout");
        }
    }

    @Test
    void resultsOfManyJobsComeToWhoeverAskedForThem() throws Exception {
        start(TaskOptions.DEFAULT, REPORTS);
        JobScheduler jobs = db.scheduler();
        List<JobHandle<Report>> handles = new ArrayList<>();
        for (int i = 0; i < 300; i++) {
            handles.add(jobs.addJobForResult(WORK, i, Report.class));
            jobs.addJob(WORK, -1);
        }

        List<CompletableFuture<Report>> futures = new ArrayList<>();
        handles.forEach(handle -> futures.add(handle.future()));
        for (int i = 0; i < 300; i++) {
            Report expected = new Report(i, "ä\uD83D\uDE00");
            assertThat(futures.get(i).get(2, TimeUnit.MINUTES)).isEqualTo(expected);
            assertThat(handles.get(i).await(NET)).isEqualTo(expected);
        }
        Awaitility.await().until(() -> db.jobs() == 0);
        assertThat(select("select * from {schema}.pgworker_ends")).hasSize(300);
    }

    @Test
    void directTasksAndTransactionalHandlersHaveResults() throws Exception {
        Task<Integer> direct = Task.of("direct", Integer.class);
        Task<Integer> transactional = Task.of("transactional", Integer.class);
        db.start(db.worker()
                .transactionManager(new JdbcTransactionManager(db.dataSource()))
                .tasks(List.of(
                        TaskRegistration.of(direct, REPORTS).with(TaskOptions.DEFAULT.withDirect(true)),
                        TaskRegistration.of(transactional, REPORTS)
                                .with(TaskOptions.DEFAULT.withTransactional(true)))));

        for (Task<Integer> task : List.of(direct, transactional)) {
            List<JobHandle<Report>> handles = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                handles.add(db.scheduler().addJobForResult(task, i, Report.class));
            }
            for (int i = 0; i < 20; i++) {
                assertThat(handles.get(i).await(NET)).isEqualTo(new Report(i, "ä\uD83D\uDE00"));
            }
        }
    }

    @Test
    void aHandlerThatReturnsNothingHasNullForAResult() throws Exception {
        start(TaskOptions.DEFAULT, (payload, context) -> {});

        assertThat(add(1).await(NET)).isNull();
        assertThat(add(1).future().get(2, TimeUnit.MINUTES)).isNull();
    }

    @Test
    void whoeverEndsAJobEndsTheWait() throws Exception {
        JobHandle<Report> completed = add(1);
        JobHandle<Report> ended = add(2);
        JobHandle<Report> removed = add(3);
        JobHandle<Report> deleted = add(4);
        claim(ended);

        db.changes().complete(List.of(completed.jobId()));
        sql("delete from {schema}._private_jobs where id = " + ended.jobId());
        db.changes().remove(List.of(removed.jobId()));
        sql("delete from {schema}._private_jobs where id = " + deleted.jobId());

        assertThat(completed.await(NET)).isNull();
        assertThat(ended.await(NET)).isNull();
        for (JobHandle<Report> handle : List.of(removed, deleted)) {
            JobResultException e = failure(handle);
            assertThat(e.reason()).isEqualTo(Reason.REMOVED);
            assertThat(e).hasMessage("Job " + handle.jobId() + " (task \"work\") has been removed");
        }
    }

    @Test
    void aJobThatIsCancelledWhileItRunsEndsTheWait() throws Exception {
        CountDownLatch running = new CountDownLatch(1);
        start(TaskOptions.DEFAULT, (payload, context) -> {
            running.countDown();
            new CountDownLatch(1).await();
        });
        JobHandle<Report> handle = add(1);
        running.await();

        db.changes().cancel(List.of(handle.jobId()));

        assertThat(failure(handle).reason()).isEqualTo(Reason.CANCELLED);
    }

    @Test
    void aJobThatLosesItsKeyWhileItRunsEndsTheWait() {
        JobSpec keyed = JobSpec.builder().jobKey("k").build();
        JobHandle<Report> handle = db.scheduler().addJobForResult(WORK, 1, keyed, Report.class);
        claim(handle);

        db.changes().remove("k");
        sql("update {schema}._private_jobs set locked_at = null, locked_by = null, last_error = 'boom'");

        assertThat(failure(handle).reason()).isEqualTo(Reason.REMOVED);
    }

    @Test
    void aJobWhoseKeyIsTakenWhileItWaitsIsTheSameJob() throws Exception {
        JobSpec keyed = JobSpec.builder().jobKey("k").build();
        JobHandle<Report> first = db.scheduler().addJobForResult(WORK, 1, keyed, Report.class);
        JobHandle<Report> second = db.scheduler().addJobForResult(WORK, 2, keyed, Report.class);
        assertThat(second.jobId()).isEqualTo(first.jobId());

        start(TaskOptions.DEFAULT, REPORTS);

        assertThat(first.await(NET)).isEqualTo(second.await(NET)).isEqualTo(new Report(2, "ä\uD83D\uDE00"));
    }

    @Test
    void aRetryIsNoEndAndALaterSuccessCounts() throws Exception {
        AtomicInteger runs = new AtomicInteger();
        start(TaskOptions.DEFAULT.withRetryDelay(AT_ONCE), (payload, context) -> {
            if (runs.incrementAndGet() < 3) {
                throw new IllegalStateException("not yet");
            }
            context.result(new Report(runs.get(), ""));
        });

        assertThat(add(1).await(NET)).isEqualTo(new Report(3, ""));
    }

    @Test
    void aJobThatFailsForGoodEndsTheWaitAndMayBeRetriedByHand() throws Exception {
        AtomicInteger runs = new AtomicInteger();
        start(TaskOptions.DEFAULT, (payload, context) -> {
            if (runs.incrementAndGet() == 1) {
                throw JobControlException.failPermanently("no such customer");
            }
            context.result(new Report(payload, ""));
        });
        JobHandle<Report> handle = add(1);

        JobResultException e = failure(handle);
        assertThat(e.reason()).isEqualTo(Reason.FAILED);
        assertThat(e.taskIdentifier()).isEqualTo("work");
        assertThat(e.error()).contains("no such customer");
        assertThat(e).hasMessageContaining("Job " + handle.jobId()).hasMessageContaining("no such customer");
        assertThatThrownBy(() -> handle.future().get(2, TimeUnit.MINUTES)).hasCauseInstanceOf(JobResultException.class);

        db.changes().runNow(List.of(handle.jobId()));
        assertThat(handle.await(NET)).isEqualTo(new Report(1, ""));
    }

    @Test
    void whoWaitsTooShortlyLearnsThatAndTheJobGoesOn() throws Exception {
        JobHandle<Report> handle = add(1);

        assertThatThrownBy(() -> handle.await(Duration.ofMillis(20)))
                .isInstanceOf(TimeoutException.class)
                .hasMessageContaining("Job " + handle.jobId() + " has not ended within PT0.02S");
        assertThat(db.jobs()).isOne();
    }

    @Test
    void anEndOfWhichNobodyWasNotifiedIsFound() throws Exception {
        start(TaskOptions.DEFAULT, REPORTS);
        JobScheduler jobs = db.scheduler();
        // From the first on it is relied on notifications.
        assertThat(jobs.addJobForResult(WORK, 1, Report.class).await(NET)).isNotNull();
        JobHandle<Report> handle = jobs.addJobForResult("other", null, Report.class);
        CompletableFuture<Report> future = handle.future();

        // As a trigger of another session writes it, whose notification is lost.
        sql("""
                update {schema}.pgworker_ends set outcome = 'succeeded', result = '{"number": 7, "text": ""}',
                  ended_at = now(), expires_at = now() where job_id = {id}
                """.replace("{id}", Long.toString(handle.jobId())));

        assertThat(future.get(2, TimeUnit.MINUTES)).isEqualTo(new Report(7, ""));
    }

    @Test
    void aResultThatIsTooLargeIsRefusedByNameAndHurtsNobody() throws Exception {
        start(
                TaskOptions.DEFAULT,
                (payload, context) -> context.result(payload == 0 ? "x".repeat(50_000_000) : "small"));
        JobScheduler jobs = db.scheduler();
        List<JobHandle<String>> handles = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            handles.add(jobs.addJobForResult(WORK, i % 10, String.class));
        }

        for (int i = 0; i < 20; i++) {
            if (i % 10 == 0) {
                JobResultException e = failure(handles.get(i));
                assertThat(e.reason()).isEqualTo(Reason.UNREADABLE);
                assertThat(e).hasMessageContaining("it has more than 1048576 bytes (pgworker.results.max-size)");
            } else {
                assertThat(handles.get(i).await(NET)).isEqualTo("small");
            }
        }
        assertThat(events.all(JobFailed.class)).isEmpty();
    }

    @Test
    void manyLargeResultsAreReadInParts() throws Exception {
        start(TaskOptions.DEFAULT, (payload, context) -> {
            char[] text = new char[900_000];
            for (int i = 0; i < text.length; i++) {
                text[i] = (char) ('a' + (i * 31L * (payload + 7) + (long) i * i) % 26);
            }
            context.result(new String(text));
        });
        JobScheduler jobs = db.scheduler();
        List<CompletableFuture<String>> futures = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            futures.add(jobs.addJobForResult(WORK, i, String.class).future());
        }

        for (CompletableFuture<String> future : futures) {
            assertThat(future.get(2, TimeUnit.MINUTES)).hasSize(900_000);
        }
    }

    @Test
    void aResultOfAnotherTypeIsToldWithBothTypes() {
        start(TaskOptions.DEFAULT, (payload, context) -> context.result(Map.of("number", "many")));

        JobResultException e = failure(add(1));

        assertThat(e.reason()).isEqualTo(Reason.UNREADABLE);
        assertThat(e).hasMessageContaining("cannot be read as " + Report.class.getName() + " at $.number");
    }

    @Test
    void toWaitInTheTransactionThatAddsTheJobIsAnError() throws Exception {
        start(TaskOptions.DEFAULT, REPORTS);
        CompletableFuture<Report> committed =
                Objects.requireNonNull(transaction().execute(status -> {
                    JobHandle<Report> handle = add(1);
                    assertThatThrownBy(() -> handle.await(NET))
                            .isInstanceOf(IllegalStateException.class)
                            .hasMessageContaining("wait for its result after that");
                    assertThatThrownBy(() -> db.scheduler()
                                    .resultOf(handle.jobId(), Report.class)
                                    .await(NET))
                            .isInstanceOf(JobResultException.class)
                            .hasMessageContaining("the transaction that adds it is not committed");
                    return handle.future();
                }));

        assertThat(committed.get(2, TimeUnit.MINUTES)).isEqualTo(new Report(1, "ä\uD83D\uDE00"));
    }

    @Test
    void whatIsRolledBackEndsTheWait() {
        CompletableFuture<Report> future = Objects.requireNonNull(transaction().execute(status -> {
            status.setRollbackOnly();
            return add(1).future();
        }));

        assertThatThrownBy(future::join)
                .isInstanceOf(CompletionException.class)
                .hasCauseInstanceOf(JobResultException.class)
                .hasMessageContaining("it was rolled back");
    }

    @Test
    void anotherProcessWaitsByTheId() throws Exception {
        long id = add(5).jobId();
        start(TaskOptions.DEFAULT, REPORTS);

        JsonNode result = Objects.requireNonNull(
                db.scheduler().resultOf(id, JsonNode.class).await(NET));
        assertThat(result.path("number").asInt()).isEqualTo(5);
        assertThat(failure(db.scheduler().resultOf(id + 1, Report.class)).reason())
                .isEqualTo(Reason.ABSENT);
    }

    @Test
    void whatIsAddedBySqlIsWaitedForInJavaAndSql() throws Exception {
        start(TaskOptions.DEFAULT, REPORTS);
        long id = db.sql(
                        "select {schema}.pgworker_keep_result((j).id, interval '1 day') from {schema}.add_job('work', '4') j")
                .query(Long.class)
                .single();

        assertThat(db.scheduler().resultOf(id, Report.class).await(NET)).isEqualTo(new Report(4, "ä\uD83D\uDE00"));
        assertThat(db.sql("select outcome || (result ->> 'number') from {schema}.pgworker_results(array[?])")
                        .param(id)
                        .query(String.class)
                        .single())
                .isEqualTo("succeeded4");
        assertThatThrownBy(() -> db.sql("select {schema}.pgworker_keep_result(?)")
                        .param(id)
                        .query(Long.class)
                        .single())
                .hasMessageContaining("There is no job " + id);
    }

    @Test
    void aStrangerWhoLocksTheTableCostsTheEndAndNothingElse() throws Exception {
        start(TaskOptions.DEFAULT, REPORTS);
        JobScheduler jobs = db.scheduler();
        JobHandle<Report> handle = jobs.addJobForResult(
                WORK, 1, JobSpec.builder().runIn(Duration.ofSeconds(1)).build(), Report.class);
        JobHandle<Report> other = jobs.addJobForResult("node's", null, Report.class);
        claim(other);
        try (Connection stranger = db.dataSource().getConnection();
                Statement session = stranger.createStatement()) {
            stranger.setAutoCommit(false);
            session.execute(db.schema().in("lock table {schema}.pgworker_ends in access exclusive mode"));
            jobs.addJob(WORK, 2);
            events.await(JobCompleted.class, 2);
            deleteAsAnyClient(other);
            assertThat(db.jobs()).isZero();
            stranger.rollback();
        }

        assertThat(failure(other).reason()).isEqualTo(Reason.UNKNOWN);
        assertThat(failure(handle).reason()).isEqualTo(Reason.UNKNOWN);
        select("select {schema}.pgworker_tend_ends()");
        assertThat(select("select outcome from {schema}.pgworker_ends where outcome = 'unknown'"))
                .hasSize(2);
    }

    @Test
    void aStrangerWhoLocksARowCostsThatEndAlone() throws Exception {
        JobHandle<Report> locked = add(1);
        JobHandle<Report> other = add(2);
        JobHandle<Report> nodes = db.scheduler().addJobForResult("node's", null, Report.class);
        claim(nodes);
        try (Connection stranger = db.dataSource().getConnection();
                Statement session = stranger.createStatement()) {
            stranger.setAutoCommit(false);
            session.execute(db.schema()
                    .in("select from {schema}.pgworker_ends where job_id in (" + locked.jobId() + ", " + nodes.jobId()
                            + ") for update"));
            start(TaskOptions.DEFAULT, REPORTS);

            assertThat(other.await(NET)).isNotNull();
            deleteAsAnyClient(nodes);
            Awaitility.await().until(() -> db.jobs() == 0);
            stranger.rollback();
        }

        assertThat(failure(locked).reason()).isEqualTo(Reason.UNKNOWN);
    }

    @Test
    void aHeldSnapshotHoldsNothingUp() throws Exception {
        start(TaskOptions.DEFAULT, REPORTS);
        try (Connection stranger = db.dataSource().getConnection();
                Statement session = stranger.createStatement()) {
            stranger.setAutoCommit(false);
            stranger.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            session.execute("select 1");
            for (int i = 0; i < 50; i++) {
                assertThat(add(i).await(NET)).isEqualTo(new Report(i, "ä\uD83D\uDE00"));
            }
            stranger.rollback();
        }
    }

    /** What the history calls an end is what waits call it. */
    @Test
    void theHistoryTellsTheSame() throws Exception {
        CountDownLatch running = new CountDownLatch(1);
        db.start(db.worker()
                .settings(WorkerSettings.builder()
                        .history(HistorySettings.builder()
                                .enabled(true)
                                .maxResultSize(10)
                                .build())
                        .results(new ResultSettings(Duration.ofMinutes(1), 1_000))
                        .build())
                .listener(events)
                .tasks(List.of(TaskRegistration.of(WORK, (payload, context) -> {
                    switch (payload) {
                        case 1 -> context.result("short");
                        case 2 -> context.result("longer than ten");
                        case 3 -> context.result("x".repeat(2_000));
                        case 4 -> throw JobControlException.failPermanently("boom");
                        default -> {
                            running.countDown();
                            new CountDownLatch(1).await();
                        }
                    }
                }))));
        JobScheduler jobs = db.scheduler();
        List<JobHandle<String>> handles = new ArrayList<>();
        for (int i = 1; i <= 5; i++) {
            handles.add(jobs.addJobForResult(WORK, i, String.class));
        }
        running.await();
        db.changes().cancel(List.of(handles.get(4).jobId()));
        JobHandle<String> removed = jobs.addJobForResult("nobody's", null, String.class);
        db.changes().remove(List.of(removed.jobId()));
        handles.add(removed);
        for (JobHandle<String> handle : handles) {
            try {
                handle.await(NET);
            } catch (JobResultException e) {
                assertThat(e.reason()).isNotEqualTo(Reason.UNKNOWN);
            }
        }

        assertThat(select("""
                        select e.outcome, e.result::text, e.error is not null as error, h.outcome as entry, h.result::text as shown
                        from {schema}.pgworker_ends e join {schema}.pgworker_history h on h.job_id = e.job_id order by e.job_id
                        """).toString())
                .isEqualTo(Arrays.asList(
                                "{outcome=succeeded, result=\"short\", error=false, entry=succeeded, shown=\"short\"}",
                                "{outcome=succeeded, result=\"longer than ten\", error=false, entry=succeeded, shown=null}",
                                "{outcome=succeeded, result=null, error=true, entry=succeeded, shown=null}",
                                "{outcome=failed, result=null, error=true, entry=failed, shown=null}",
                                "{outcome=cancelled, result=null, error=true, entry=cancelled, shown=null}",
                                "{outcome=removed, result=null, error=false, entry=removed, shown=null}")
                        .toString());
    }

    @Test
    void whatHasExpiredAndWhatIsTooMuchIsForgotten() throws Exception {
        start(TaskOptions.DEFAULT, REPORTS);
        JobHandle<Report> kept = add(1);
        JobHandle<Report> expired = add(2);
        assertThat(kept.await(NET)).isNotNull();
        assertThat(expired.await(NET)).isNotNull();
        sql("update {schema}.pgworker_ends set expires_at = now() - interval '1 second' where job_id = "
                + expired.jobId());
        sql("""
                insert into {schema}.pgworker_ends (job_id, task_identifier, outcome, ended_at, expires_at)
                select -i, 'work', 'succeeded', now(), now() + interval '1 minute' + i * interval '1 microsecond'
                from generate_series(1, 100010) i
                """);

        select("select {schema}.pgworker_tend_ends()");

        assertThat(db.sql("select count(*) from {schema}.pgworker_ends")
                        .query(Long.class)
                        .single())
                .isEqualTo(100_000);
        assertThat(kept.await(NET)).isNotNull();
        assertThat(failure(expired).reason()).isEqualTo(Reason.ABSENT);
    }

    @Test
    void whoMayNotReadResultsIsToldAtOnce() throws SQLException {
        JobHandle<Report> handle = add(1);
        sql("alter function {schema}.pgworker_results(bigint[]) rename to pgworker_elsewhere");

        assertThatThrownBy(() -> handle.await(NET)).hasMessageContaining("The results of jobs cannot be read");
    }
}
