package dev.pgworker.internal.client;

import java.sql.SQLException;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.WorkerClient;
import dev.pgworker.event.WorkerEvent.JobsChanged;
import dev.pgworker.job.BulkProgress;
import dev.pgworker.job.BulkResult;
import dev.pgworker.job.CleanupTask;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobChange;
import dev.pgworker.job.JobChanges;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobSelection;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.JobState;
import dev.pgworker.job.Rescheduling;
import dev.pgworker.job.SweepOptions;
import dev.pgworker.job.WorkerOperations;
import dev.pgworker.recovery.RecoverySettings;
import dev.pgworker.testing.InterceptedDataSource;
import dev.pgworker.testing.LogCapture;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Removing and changing many jobs by hand, and what is told of it. */
class BulkChangeTest {

    private static final BulkProgress ON = (done, changed, total) -> true;

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final RecordingListener events = new RecordingListener();
    private final LogCapture log = new LogCapture(ChangeReport.class);

    @AfterEach
    void close() {
        log.close();
    }

    private JobQueries queries() {
        return db.queries();
    }

    private JobChanges changes() {
        return WorkerClient.jobChanges(db.dataSource(), db.schema(), () -> List.of(events));
    }

    private WorkerOperations operations() {
        return WorkerClient.workerOperations(
                db.dataSource(), db.schema(), RecoverySettings.DEFAULT, List::of, () -> List.of(events));
    }

    @Test
    void removesWhatDoesNotRun() {
        List<Long> ids = add(3);
        lock(ids.get(1));

        List<Job> removed = changes().remove(List.of(ids.get(2), ids.get(1), 999_999L, ids.get(0)));

        assertThat(removed).extracting(Job::id).containsExactly(ids.get(2), ids.get(0));
        assertThat(removed.get(0).payload()).isEqualTo("2");
        assertThat(db.jobs()).isEqualTo(1);
    }

    @Test
    void changesASnapshotInChunks() {
        List<Long> ids = add(1_201);
        lock(ids.get(700));
        JobSelection selection =
                queries().select(JobQuery.builder().taskIdentifier("mail").build(), 10_000);
        add(1);
        List<String> steps = new ArrayList<>();

        BulkResult result = changes()
                .change(selection, new JobChange.Fail("no longer needed"), (done, changed, total) -> {
                    steps.add(done + " " + changed + " " + total);
                    return true;
                });

        assertThat(selection).isEqualTo(new JobSelection(ids, true));
        assertThat(result).isEqualTo(new BulkResult(1_201, 1_201, 1_200));
        assertThat(steps).containsExactly("500 500 1201", "1000 999 1201", "1201 1200 1201");
        assertThat(queries()
                        .count(JobQuery.builder().search("no longer needed").build())
                        .failed())
                .isEqualTo(1_200);
        assertThat(events.all(JobsChanged.class))
                .extracting(
                        JobsChanged::action,
                        JobsChanged::count,
                        event -> event.jobIds().size())
                .containsExactly(
                        org.assertj.core.groups.Tuple.tuple("fail", 500L, 500),
                        org.assertj.core.groups.Tuple.tuple("fail", 499L, 499),
                        org.assertj.core.groups.Tuple.tuple("fail", 201L, 201));
        assertThat(log.messages())
                .containsExactly("1200 jobs failed by hand: " + ids.subList(0, 20) + " and 1180 more");
    }

    @Test
    void everyChangeCanBeMadeInBulk() {
        List<Long> ids = add(4);
        changes().permanentlyFail(ids, "broken");
        JobSelection failed =
                queries().select(JobQuery.builder().state(JobState.FAILED).build(), 3);
        assertThat(failed).isEqualTo(new JobSelection(ids.subList(0, 3), false));

        assertThat(bulk(new JobChange.RunNow(), failed.ids())).isEqualTo(3);
        assertThat(queries().count(JobQuery.ALL).ready()).isEqualTo(3);
        Rescheduling later = Rescheduling.builder().priority(7).maxAttempts(3).build();
        assertThat(bulk(new JobChange.Reschedule(later), ids.subList(0, 1))).isEqualTo(1);
        assertThat(queries().find(ids.get(0)).orElseThrow().priority()).isEqualTo(7);
        JsonNode payload = new JsonMapper().readTree("[{\"to\": \"ada\"}]");
        assertThat(bulk(new JobChange.RetryWith(payload), ids))
                .as("failed ones")
                .isEqualTo(1);
        assertThat(bulk(new JobChange.Complete(), ids.subList(0, 1))).isEqualTo(1);
        assertThat(bulk(new JobChange.Remove(), ids)).isEqualTo(3);
        assertThat(bulk(new JobChange.Remove(), ids)).isZero();
        assertThat(events.all(JobsChanged.class))
                .extracting(JobsChanged::action)
                .containsExactly("fail", "run-now", "reschedule", "retry-with", "complete", "remove");
    }

    private int bulk(JobChange change, List<Long> ids) {
        return changes().change(new JobSelection(ids, true), change, ON).changed();
    }

    @Test
    void progressStopsAChange() {
        List<Long> ids = add(1_100);

        BulkResult result = changes()
                .change(new JobSelection(ids, true), new JobChange.Remove(), (done, changed, total) -> done < 1_000);

        assertThat(result).isEqualTo(new BulkResult(1_100, 1_000, 1_000));
        assertThat(db.jobs()).isEqualTo(100);
    }

    @Test
    void anInterruptionStopsAChangeAndIsKept() {
        List<Long> ids = add(1_100);

        BulkResult result = changes()
                .change(new JobSelection(ids, true), new JobChange.Remove(), (done, changed, total) -> {
                    Thread.currentThread().interrupt();
                    return true;
                });

        assertThat(Thread.interrupted()).isTrue();
        assertThat(result).isEqualTo(new BulkResult(1_100, 500, 500));
        assertThat(db.jobs()).isEqualTo(600);
    }

    @Test
    void whatProgressThrowsIsPassedOn() {
        List<Long> ids = add(600);

        assertThatThrownBy(() -> changes()
                        .change(new JobSelection(ids, true), new JobChange.Remove(), (done, changed, total) -> {
                            throw new IllegalStateException("the page is closed");
                        }))
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("the page is closed");

        assertThat(db.jobs()).isEqualTo(100);
        assertThat(log.messages()).singleElement().asString().startsWith("500 jobs removed by hand");
    }

    @Test
    void afterAnOutageItIsSaidHowManyAreDone() {
        List<Long> ids = add(1_100);
        AtomicInteger calls = new AtomicInteger();
        JobChanges broken = WorkerClient.jobChanges(
                new InterceptedDataSource(db.dataSource(), (call, proceed) -> {
                    if (call.is("executeQuery", "pgworker_remove_jobs") && calls.incrementAndGet() == 2) {
                        throw new SQLException("connection lost", "08006");
                    }
                    return proceed.proceed();
                }),
                db.schema());

        assertThatThrownBy(() -> broken.change(new JobSelection(ids, true), new JobChange.Remove(), ON))
                .isInstanceOf(DataAccessException.class)
                .hasMessageContaining("remove jobs (after 500 of 1100, of which 500 have been changed)");

        assertThat(db.jobs()).isEqualTo(600);
        assertThat(log.messages()).singleElement().asString().startsWith("500 jobs removed by hand");
    }

    @Test
    void aChangeDoesNotDependOnTheCallersTransaction() {
        List<Long> ids = add(2);
        TransactionTemplate transaction = new TransactionTemplate(new JdbcTransactionManager(db.dataSource()));

        transaction.executeWithoutResult(status -> {
            bulk(new JobChange.Remove(), ids.subList(0, 1));
            changes().remove(ids.subList(1, 2));
            assertThat(events.all(JobsChanged.class)).hasSize(1);
            status.setRollbackOnly();
        });

        assertThat(queries().find(ids.get(0))).isEmpty();
        assertThat(queries().find(ids.get(1))).isPresent();
        assertThat(events.all(JobsChanged.class))
                .as("not of what was rolled back")
                .hasSize(1);
        assertThat(log.messages()).hasSize(1);
    }

    @Test
    void changesAreToldInTheNameOfTheUser() {
        List<Long> ids = add(1);
        long keyed = db.scheduler()
                .addJob("mail", 1, JobSpec.builder().jobKey("k").queueName("q").build())
                .id();
        JobChanges kim = changes().actingAs("kim");
        WorkerOperations operator = operations().actingAs("kim");

        kim.runNow(ids);
        kim.remove("k");
        kim.complete(ids);
        kim.complete(ids);
        operator.forceUnlockWorkers(List.of("w\nForged: line"));
        operator.cleanup(EnumSet.of(CleanupTask.GC_JOB_QUEUES));
        operator.cleanup(EnumSet.of(CleanupTask.GC_JOB_QUEUES));
        db.sql(
                        "insert into {schema}._private_workers (id, last_heartbeat_at) values ('dead', now() - interval '1 day')")
                .update();
        operator.sweep(new SweepOptions(null, null, true));
        operator.sweep(new SweepOptions(null, null, false));
        operations().forceUnlockWorkers(List.of("other"));

        assertThat(log.messages())
                .containsExactly(
                        "1 job made due by user \"kim\": " + ids,
                        "1 job removed by user \"kim\": [" + keyed + "]",
                        "1 job completed by user \"kim\": " + ids,
                        "Workers unlocked by user \"kim\": [w\\u000AForged: line]",
                        "Rows cleaned up by user \"kim\": [GC_JOB_QUEUES 1]",
                        "Dead workers swept up by user \"kim\": [dead]",
                        "Workers unlocked by hand: [other]");
        assertThat(events.all(JobsChanged.class))
                .containsExactly(
                        new JobsChanged("admin", "run-now", ids, 1, "kim"),
                        new JobsChanged("admin", "remove", List.of(keyed), 1, "kim"),
                        new JobsChanged("admin", "complete", ids, 1, "kim"),
                        new JobsChanged("admin", "force-unlock", List.of(), 1, "kim"),
                        new JobsChanged("admin", "cleanup", List.of(), 1, "kim"),
                        new JobsChanged("admin", "sweep", List.of(), 0, "kim"),
                        new JobsChanged("admin", "force-unlock", List.of(), 1, null));
    }

    @Test
    void aNameForgesNoLine() {
        List<Long> ids = add(1);

        changes()
                .actingAs("kim\"\r\n\u2028\u202e\u0000\ud800 \\ \ud83d\ude00 é")
                .complete(ids);

        assertThat(log.messages())
                .containsExactly(
                        "1 job completed by user \"kim\\\"\\u000D\\u000A\\u2028\\u202E\\u0000\\uD800 \\\\ \ud83d\ude00 é\": "
                                + ids);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> changes().actingAs(""))
                .withMessage("user must have 1 to 255 characters, but has 0");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> changes().actingAs("x".repeat(256)))
                .withMessageContaining("has 256");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> operations().actingAs(null))
                .withMessageContaining("user");
    }

    @Test
    void argumentsAreCheckedFirst() {
        JobSelection none = new JobSelection(List.of(), true);

        assertThat(changes().change(none, new JobChange.Remove(), ON)).isEqualTo(new BulkResult(0, 0, 0));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> changes().change(none, new JobChange.Fail(""), ON))
                .withMessageContaining("reason");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> changes().change(none, null, ON))
                .withMessageContaining("change");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> changes().change(null, new JobChange.Remove(), ON))
                .withMessageContaining("selection");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> queries().select(JobQuery.ALL, 0))
                .withMessageContaining("most must be between 1 and 1000000");
    }

    private List<Long> add(int count) {
        return db.sql(
                        "select id from {schema}.add_jobs(array(select ('mail', (g - 1)::text::json, null, null, null, null, null, null)"
                                + "::{schema}.job_spec from generate_series(1, ?) g)) order by id")
                .param(count)
                .query(Long.class)
                .list();
    }

    private void lock(long id) {
        db.sql("update {schema}._private_jobs set locked_at = now(), locked_by = 'somebody' where id = ?")
                .param(id)
                .update();
    }
}
