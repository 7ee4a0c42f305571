package dev.pgworker;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;

import org.awaitility.Awaitility;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.dao.DataIntegrityViolationException;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.ListenerConnected;
import dev.pgworker.event.WorkerEvent.PauseBegan;
import dev.pgworker.job.CleanupTask;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.JobWait;
import dev.pgworker.job.NamedQueue;
import dev.pgworker.job.PauseTarget;
import dev.pgworker.job.SweepOptions;
import dev.pgworker.job.Task;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** The locks by which queues are paused, which bind other Graphile Workers as well. */
@Tag("any-postgres")
class PausedQueueTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);
    private static final JobSpec QUEUED = JobSpec.builder().queueName("q").build();
    private static final PauseTarget QUEUE = PauseTarget.queue("q");

    @RegisterExtension
    final TestSchema db = new TestSchema(20);

    private final RecordingListener events = new RecordingListener();

    /** Claims a job as Node.js workers do: only of a free queue, whose row it locks together with the job. */
    private @Nullable Long claimLikeNode(String worker) {
        return db.sql("""
                        with j as (
                          select id, job_queue_id from {schema}._private_jobs
                          where is_available and run_at <= now() and (job_queue_id is null or job_queue_id in (
                            select id from {schema}._private_job_queues where is_available for update skip locked))
                          order by priority, run_at limit 1 for update skip locked),
                        q as (
                          update {schema}._private_job_queues set locked_by = :worker, locked_at = now()
                          from j where _private_job_queues.id = j.job_queue_id)
                        update {schema}._private_jobs set attempts = attempts + 1, locked_by = :worker, locked_at = now()
                        from j where _private_jobs.id = j.id returning j.id
                        """).param("worker", worker).query(Long.class).optional().orElse(null);
    }

    /** Completes a job and frees its queue as Node.js workers do. */
    private void completeLikeNode(Connection connection, long id, String worker) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(db.schema()
                    .in("with j as (delete from {schema}._private_jobs where id = " + id
                            + " returning *) update {schema}._private_job_queues q set locked_by = null, locked_at = null"
                            + " from j where q.id = j.job_queue_id and q.locked_by = '" + worker + "'"));
        }
    }

    private void completeLikeNode(long id, String worker) throws SQLException {
        try (Connection connection = db.dataSource().getConnection()) {
            completeLikeNode(connection, id, worker);
        }
    }

    private @Nullable String holder() {
        return db.sql("select coalesce(locked_by, '') from {schema}._private_job_queues where queue_name = 'q'")
                .query(String.class)
                .single();
    }

    private void add(int count) {
        for (int n = 0; n < count; n++) {
            db.scheduler().addJob(WORK, n, QUEUED);
        }
    }

    @Test
    void aForeignWorkersJobGoesOnAndItsQueueStaysPausedWhenItFreesThat() throws Exception {
        add(3);
        Long running = Objects.requireNonNull(claimLikeNode("pool-1"));

        assertThat(db.operations().pause(QUEUE, null)).isTrue();
        completeLikeNode(running, "pool-1");

        assertThat(db.jobs()).isEqualTo(2);
        assertThat(holder()).isEqualTo("pgworker-paused");
        assertThat(claimLikeNode("pool-1")).isNull();
        assertThat(db.operations().resume(QUEUE)).isTrue();
        assertThat(holder()).isEmpty();
        assertThat(claimLikeNode("pool-1")).isNotNull();
    }

    @Test
    void aForeignWorkerThatStillRunsGetsItsQueueBack() throws Exception {
        add(3);
        Long running = Objects.requireNonNull(claimLikeNode("pool-1"));

        db.operations().pause(QUEUE, null);
        db.operations().resume(QUEUE);

        assertThat(db.queries().pauses()).isEmpty();
        assertThat(holder()).isEqualTo("pool-1");
        assertThat(claimLikeNode("pool-2")).isNull();
        completeLikeNode(running, "pool-1");
        assertThat(holder()).isEmpty();
        // What the resumption has left is no pause, and goes.
        keep();
        assertThat(rows()).isZero();
        assertThat(claimLikeNode("pool-2")).isNotNull();
    }

    @Test
    void aQueueIsFreedWhoseForeignWorkerHasMissedItsResumption() throws Exception {
        add(3);
        Long running = Objects.requireNonNull(claimLikeNode("pool-1"));
        db.operations().pause(QUEUE, null);
        try (Connection other = db.dataSource().getConnection()) {
            other.setAutoCommit(false);
            // Its statement sees the queue as it was before the resumption.
            completeLikeNode(other, running, "pool-1");
            db.operations().resume(QUEUE);
            other.commit();
        }
        assertThat(holder()).isEqualTo("pool-1");

        db.start(db.worker().task(WORK, (n, context) -> {}).listener(events));

        events.await(JobCompleted.class, 2);
        Awaitility.await().until(() -> rows() == 0);
    }

    @Test
    void aForeignWorkerGoesOnWithATaskThatIsPausedAndWithEverything() {
        add(1);
        db.operations().pause(PauseTarget.task("work"), null);
        db.operations().pause(PauseTarget.everything(), null);

        assertThat(claimLikeNode("pool-1")).isNotNull();
    }

    private void keep() {
        db.sql("select {schema}.pgworker_keep_pauses()").query().listOfRows();
    }

    private int rows() {
        return db.sql("select count(*) from {schema}.pgworker_pauses")
                .query(Integer.class)
                .single();
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    @Tag("thorough")
    void whatSomebodyFreesIsPausedAgainWithinASecond(boolean listen) {
        db.start(db.worker()
                .settings(WorkerSettings.builder().listen(listen).build())
                .task(WORK, (n, context) -> {})
                .listener(events));
        if (listen) {
            events.await(ListenerConnected.class);
        }
        db.operations().pause(QUEUE, null);
        events.await(PauseBegan.class);
        for (int i = 0; i < 3; i++) {
            db.sql("update {schema}._private_job_queues set locked_at = null, locked_by = null")
                    .update();
            Awaitility.await().pollInterval(Duration.ofMillis(20)).until(() -> "pgworker-paused".equals(holder()));
        }
    }

    @Test
    void nothingThatReleasesLocksFreesAPausedQueue() {
        add(2);
        Objects.requireNonNull(claimLikeNode("dead"));
        db.operations().pause(QUEUE, null);
        db.sql("select {schema}.worker_heartbeat('dead')").query().listOfRows();
        db.sql("update {schema}._private_workers set last_heartbeat_at = now() - interval '1 day'")
                .update();
        db.sql("update {schema}._private_jobs set locked_at = now() - interval '1 day' where locked_at is not null")
                .update();

        assertThat(db.operations().sweep(SweepOptions.DEFAULT).workerIds()).containsExactly("dead");
        db.sql("select * from {schema}.pgworker_release_old_locks()").query().listOfRows();
        for (String statement : List.of(
                "select {schema}.force_unlock_workers(array['pgworker-paused', 'dead'])",
                "select {schema}.recover_dead_worker_jobs(array['pgworker-paused', 'dead'])",
                "update {schema}._private_job_queues set locked_at = null, locked_by = null where locked_at < now() - interval '4 hours'")) {
            try (Connection connection = db.dataSource().getConnection();
                    Statement text = connection.createStatement()) {
                text.execute(db.schema().in(statement));
            } catch (SQLException e) {
                throw new AssertionError(statement, e);
            }
            assertThat(holder()).as(statement).isEqualTo("pgworker-paused");
        }
        assertThat(db.sql("select worker_id from {schema}.list_orphan_locked_workers('1 second')")
                        .query(String.class)
                        .list())
                .isEmpty();
        // The text of Rust workers, which know no other exceptions.
        assertThat(db.sql("""
                                select locked_by from {schema}._private_job_queues
                                where locked_at < now() - interval '5 minutes'
                                  and locked_by not in (select id from {schema}._private_workers)
                                """).query(String.class).list()).isEmpty();
        db.sql("delete from {schema}._private_jobs").update();
        db.operations().cleanup(EnumSet.allOf(CleanupTask.class));
        assertThat(holder()).isEqualTo("pgworker-paused");
    }

    @Test
    void aQueueThatDoesNotExistIsPausedAllTheSame() {
        assertThat(db.operations().pause(QUEUE, null)).isTrue();
        assertThat(db.operations().pause(PauseTarget.task("missing"), null)).isTrue();
        add(1);

        assertThat(claimLikeNode("pool-1")).isNull();
        assertThat(db.operations().resume(QUEUE)).isTrue();
        assertThat(claimLikeNode("pool-1")).isNotNull();
    }

    @Test
    void isShownWhereverJobsAre() {
        db.operations().actingAs("ann").pause(QUEUE, "the partner is down");
        db.operations().actingAs("bob").pause(PauseTarget.task("work"), null);
        long queued = db.scheduler().addJob(WORK, 1, QUEUED).id();
        long unqueued = db.scheduler().addJob(WORK, 1).id();
        var pauses = db.queries().pauses();

        assertThat(db.queries().queues(null, 10))
                .containsExactly(new NamedQueue("q", 1, false, null, null, pauses.get(0)));
        assertThat(db.queries().tasks(null, 10).get(0).pause()).isEqualTo(pauses.get(1));
        assertThat(db.queries().waitOf(queued))
                .hasValue(new JobWait(
                        JobWait.Reason.PAUSED,
                        null,
                        null,
                        "Queue \"q\" paused by ann since " + pauses.get(0).since() + ": the partner is down."));
        assertThat(db.queries().waitOf(unqueued).orElseThrow().text())
                .isEqualTo("Task \"work\" paused by bob since " + pauses.get(1).since() + ".");
        db.operations().pause(PauseTarget.everything(), "moving house");
        assertThat(db.queries().waitOf(unqueued).orElseThrow().text())
                .startsWith("Everything paused since ")
                .endsWith(": moving house.");
        assertThat(db.queries().backlog().ready()).isEqualTo(2);
    }

    @Test
    void hostileNamesAreTakenOrRefusedInPlainWords() {
        String hostile = "a'\"\\\n\u2028{}$$%s💥" + "x".repeat(100);
        for (PauseTarget target : List.of(PauseTarget.task(hostile), PauseTarget.queue(hostile))) {
            assertThat(db.operations().actingAs(hostile).pause(target, hostile)).isTrue();
            assertThat(db.queries().pauses().get(0).target()).isEqualTo(target);
            assertThat(db.operations().resume(target)).isTrue();
        }
        assertThatIllegalArgumentException()
                .isThrownBy(() -> PauseTarget.task("x".repeat(10_000)))
                .withMessage("task must have at most 128 characters, but has 10000");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> PauseTarget.queue(""))
                .withMessage("queue must not be empty");
        for (String bad : Arrays.asList("a\0b", "\uD800")) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> PauseTarget.queue(bad))
                    .withMessageStartingWith("queue must not contain");
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> db.operations().pause(QUEUE, bad))
                    .withMessageStartingWith("reason must not contain");
        }
        assertThatIllegalArgumentException()
                .isThrownBy(() -> db.operations().pause(QUEUE, "x".repeat(1_001)))
                .withMessage("reason must have at most 1000 characters, but has 1001");
        assertThat(db.queries().pauses()).isEmpty();
    }

    @Test
    void sqlIsToldWhatIsWrong() {
        for (String[] wrong : new String[][] {
            {"null", "'x'", "kind must be task, queue or all, but is null"},
            {"'tasks'", "'x'", "kind must be task, queue or all, but is 'tasks'"},
            {"'task'", "''", "name must name a task, but is ''"},
            {"'queue'", "null", "name must name a queue, but is null"},
            {"'all'", "'x'", "name must be empty where the kind is all, but is 'x'"},
            {"'task'", "repeat('x', 129)", "name must have 1 to 128 characters, but has 129"}
        }) {
            for (String function : Set.of("pgworker_pause", "pgworker_resume")) {
                assertThatThrownBy(() -> db.sql("select {schema}." + function + "(" + wrong[0] + ", " + wrong[1] + ")")
                                .query()
                                .listOfRows())
                        .hasMessageContaining(wrong[2]);
            }
        }
        assertThat(db.sql("select {schema}.pgworker_pause('all', by => 'ann', reason => 'tests')")
                        .query(Boolean.class)
                        .single())
                .isTrue();
        assertThat(db.queries().pauses().get(0).by()).isEqualTo("ann");
        assertThat(db.sql("select {schema}.pgworker_resume('all')")
                        .query(Boolean.class)
                        .single())
                .isTrue();
    }

    /** One that cannot be read would keep all workers from knowing the others. */
    @Test
    void whatNoFunctionWritesTheTableDoesNotTake() {
        for (String wrong : List.of(
                "'task', ''", "'queue', ''", "'task', repeat('x', 129)", "'all', 'x'", "null, 'x'", "'all', null")) {
            assertThatThrownBy(() -> db.sql("insert into {schema}.pgworker_pauses (kind, name) values (" + wrong + ")")
                            .update())
                    .as(wrong)
                    .isInstanceOf(DataIntegrityViolationException.class);
        }
    }

    @Test
    void whoMayNotReadPausesWorksWithoutThemAndSaysSo() {
        db.sql("alter table {schema}.pgworker_pauses rename to hidden").update();
        db.start(db.worker().task(WORK, (n, context) -> {}).listener(events));
        add(1);

        events.await(JobCompleted.class);
    }

    @Test
    void rollsBackWithTheCaller() throws SQLException {
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            statement.execute(db.schema().in("select {schema}.pgworker_pause('queue', 'q')"));
            connection.rollback();
            connection.setReadOnly(true);
            assertThatThrownBy(() -> statement.execute(db.schema().in("select {schema}.pgworker_pause('queue', 'q')")))
                    .hasMessageContaining("read-only");
            connection.rollback();
            connection.setReadOnly(false);
            connection.setAutoCommit(true);
        }
        assertThat(db.queries().pauses()).isEmpty();
        add(1);
        assertThat(claimLikeNode("pool-1")).isNotNull();
    }
}
