package dev.pgworker.flow;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.Statement;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

import dev.pgworker.Worker;
import dev.pgworker.WorkerClient;
import dev.pgworker.WorkerSettings;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.ListenerConnected;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.PauseTarget;
import dev.pgworker.job.Task;
import dev.pgworker.limit.Limit;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

/** Flows as running workers keep to them. */
class FlowsOfWorkersTest {

    private static final Task<Integer> PART = Task.of("part", Integer.class);
    private static final Task<Integer> WHOLE = Task.of("whole", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema(60);

    private final RecordingListener events = new RecordingListener();
    private final Queue<String> done = new ConcurrentLinkedQueue<>();
    private final Map<Integer, AtomicInteger> wholes = new ConcurrentHashMap<>();

    private JobFlows flows() {
        return WorkerClient.jobFlows(db.dataSource(), db.schema(), db.codec());
    }

    private Worker.Builder worker() {
        return db.worker()
                .settings(WorkerSettings.builder().concurrency(8).build())
                .listener(events)
                .task(PART, (number, context) -> {
                    if (number < 0) {
                        throw new IllegalArgumentException("less than nothing");
                    }
                    context.result(Map.of("square", number * number));
                    done.add("part " + number);
                })
                .task(WHOLE, (number, context) -> {
                    done.add("whole " + number);
                    wholes.computeIfAbsent(number, key -> new AtomicInteger()).incrementAndGet();
                });
    }

    private void start(int workers) {
        for (int i = 0; i < workers; i++) {
            db.start(worker());
        }
        events.await(ListenerConnected.class, workers);
    }

    private void awaitAllDone() {
        Awaitility.await().until(() -> db.jobs() == 0);
    }

    @Test
    void partsRunBeforeTheWholeOnSeveralWorkers() {
        start(3);
        for (int n = 1; n <= 20; n++) {
            JobFlow flow = new JobFlow();
            List<FlowJob> parts =
                    flow.addAll(PART, IntStream.range(0, 5).boxed().toList());
            FlowJob whole = flow.add(WHOLE, n).after(parts);
            flow.add(WHOLE, 100 + n).after(whole);
            flows().add(flow);
        }
        awaitAllDone();
        events.await(JobCompleted.class, 140);
        assertThat(done).hasSize(140);
        assertThat(wholes)
                .hasSize(40)
                .allSatisfy((number, times) -> assertThat(times).hasValue(1));
        List<String> order = List.copyOf(done);
        for (int n = 1; n <= 20; n++) {
            assertThat(order.indexOf("whole " + (100 + n))).isGreaterThan(order.indexOf("whole " + n));
        }
    }

    /** Exactly one release, and no chain of lock waits: nobody who ends a job waits for another. */
    @Test
    void tenThousandEndedByEightWorkersReleaseOne() {
        JobFlow flow = new JobFlow();
        List<FlowJob> parts =
                flow.addAll(PART, IntStream.range(0, 10_000).boxed().toList());
        flow.add(WHOLE, 1).after(parts);
        flows().add(flow);
        db.sql("create table {schema}.released (job_id bigint)").update();
        db.sql("""
                create function {schema}.note_release() returns trigger language plpgsql as
                $$ begin insert into {schema}.released values (new.id); return null; end $$
                """).update();
        db.sql("""
                create trigger note_release after update of run_at on {schema}._private_jobs for each row
                when (old.run_at = '9999-01-01 00:00:00+00' and new.run_at <> old.run_at) execute function {schema}.note_release()
                """).update();
        start(8);
        awaitAllDone();
        assertThat(wholes.get(1)).hasValue(1);
        assertThat(List.copyOf(done)).hasSize(10_001).last().isEqualTo("whole 1");
        assertThat(db.sql("select count(*) from {schema}.released")
                        .query(Long.class)
                        .single())
                .isOne();
        db.sql("drop trigger note_release on {schema}._private_jobs").update();
    }

    @Test
    void tenThousandRunAfterOne() {
        JobFlow flow = new JobFlow();
        FlowJob first = flow.add(PART, 0);
        flow.addAll(WHOLE, IntStream.range(0, 10_000).boxed().toList()).forEach(each -> each.after(first));
        flows().add(flow);
        start(4);
        awaitAllDone();
        assertThat(wholes)
                .hasSize(10_000)
                .allSatisfy((number, times) -> assertThat(times).hasValue(1));
    }

    @Test
    void theSuccessorReadsWhatItsPredecessorsHaveReturned() throws InterruptedException {
        Queue<PredecessorResult> seen = new ConcurrentLinkedQueue<>();
        Task<Integer> sum = Task.of("sum", Integer.class);
        JobFlow flow = new JobFlow();
        FlowJob two = flow.add(PART, 2);
        FlowJob three = flow.add(PART, 3);
        FlowJob bad = flow.add(PART, -1, JobSpec.builder().maxAttempts(1).build());
        flow.add(sum, 1).after(two, three, bad).onFailure(OnFailure.RUN);
        AddedFlow added = flows().add(flow);
        assertThat(worker().task(
                                sum,
                                (number, context) ->
                                        seen.addAll(context.predecessors().of(PART)))
                        .build()
                        .runOnce())
                .isEqualTo(4);
        assertThat(seen)
                .extracting(PredecessorResult::jobId)
                .containsExactly(
                        added.job(two).id(),
                        added.job(three).id(),
                        added.job(bad).id());
        List<PredecessorResult> results = List.copyOf(seen);
        assertThat((Object) results.get(1).as(Map.class)).isEqualTo(Map.of("square", 9));
        assertThat(results.get(1)).hasToString("job " + added.job(three).id() + " (part, SUCCEEDED)");
        assertThat(results.get(2).state()).isEqualTo(FlowState.FAILED);
        assertThat(results.get(2).error()).contains("less than nothing");
        assertThatIllegalStateException()
                .isThrownBy(() -> results.get(2).as(Map.class))
                .withMessageContaining("is FAILED")
                .withMessageContaining("less than nothing");
    }

    @Test
    void limitsQueuesAndPausesHoldForWhatIsReleased() {
        Limit limit = Limit.concurrency("whole", 1, "whole");
        db.start(worker().limits(List.of(limit)));
        Awaitility.await()
                .until(() -> WorkerClient.jobLimits(db.dataSource(), db.schema())
                        .find("whole")
                        .isPresent());
        db.operations().pause(PauseTarget.queue("bindery"), null);
        JobFlow flow = new JobFlow();
        FlowJob first = flow.add(PART, 1);
        for (int i = 0; i < 5; i++) {
            flow.add(WHOLE, i).after(first);
        }
        flow.add(WHOLE, 9, JobSpec.builder().queueName("bindery").build()).after(first);
        flows().add(flow);
        Awaitility.await().until(() -> db.jobs() == 1);
        assertThat(wholes).hasSize(5);
        db.operations().resume(PauseTarget.queue("bindery"));
        awaitAllDone();
        assertThat(wholes).containsKey(9);
    }

    @Test
    void aFlowThatIsRolledBackLeavesNothing() {
        start(1);
        new TransactionTemplate(new DataSourceTransactionManager(db.dataSource())).executeWithoutResult(status -> {
            JobFlow flow = new JobFlow();
            FlowJob part = flow.add(PART, 1);
            flow.add(WHOLE, 2).after(part);
            flows().add(flow);
            status.setRollbackOnly();
        });
        assertThat(db.jobs()).isZero();
        assertThat(db.sql("select count(*) from {schema}.pgworker_flow_waits")
                        .query(Long.class)
                        .single())
                .isZero();
    }

    @Test
    void aHandlerMayAddAFlowThatWaitsForItself() {
        Task<Integer> fork = Task.of("fork", Integer.class);
        db.start(worker().task(fork, (number, context) -> {
            JobFlow flow = new JobFlow();
            flow.add(WHOLE, 7).afterJobs(context.job().id());
            flows().add(flow);
            done.add("fork");
        }));
        db.scheduler().addJob(fork, 1);
        awaitAllDone();
        assertThat(done).containsExactly("fork", "whole 7");
    }

    /** A worker is killed in the middle of a release: nothing of it stays, and another one does it. */
    @Test
    void aReleaseThatBreaksOffIsDoneByAnother() throws Exception {
        JobFlow flow = new JobFlow();
        FlowJob first = flow.add(PART, 0);
        flow.addAll(WHOLE, IntStream.range(0, 100).boxed().toList()).forEach(each -> each.after(first));
        AddedFlow added = flows().add(flow);
        db.changes().complete(List.of(added.job(first).id()));
        try (Connection killed = DriverManager.getConnection(TestPostgres.jdbcUrl())) {
            killed.setAutoCommit(false);
            Statement statement = killed.createStatement();
            statement.execute(db.schema().in("select * from {schema}.pgworker_release_successors()"));
            statement.execute(db.schema().in("select * from {schema}.pgworker_release_successors()"));
            start(2);
            assertThat(db.sql("select count(*) from {schema}._private_jobs where run_at <= now()")
                            .query(Long.class)
                            .single())
                    .isZero();
            killed.abort(Runnable::run);
        }
        awaitAllDone();
        assertThat(wholes)
                .hasSize(100)
                .allSatisfy((number, times) -> assertThat(times).hasValue(1));
    }
}
