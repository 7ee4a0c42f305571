package dev.pgworker.internal.client;

import java.sql.Connection;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.MissingNode;

import dev.pgworker.Worker;
import dev.pgworker.WorkerClient;
import dev.pgworker.WorkerSettings;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.ListenerConnected;
import dev.pgworker.event.WorkerEvent.WorkerStarted;
import dev.pgworker.job.ActiveWorker;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobChanges;
import dev.pgworker.job.JobCounts;
import dev.pgworker.job.JobPage;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.JobState;
import dev.pgworker.job.Rescheduling;
import dev.pgworker.job.Task;
import dev.pgworker.job.WorkerOperations;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.testing.OwnThread;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Changing, finding, listing and counting jobs by hand. */
class AdministrationTest {

    private static final Task<Integer> MAIL = Task.of("mail", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final RecordingListener events = new RecordingListener();

    @Test
    void completesWhatDoesNotRunInTheGivenOrder() {
        List<Long> ids = add(5);
        lock(ids.get(1), "1 minute");
        lock(ids.get(3), "241 minutes");

        List<Job> done =
                db.changes().complete(List.of(ids.get(4), ids.get(1), ids.get(3), 999_999L, ids.get(0), ids.get(4)));

        assertThat(done).extracting(Job::id).containsExactly(ids.get(4), ids.get(3), ids.get(0));
        assertThat(done.get(1).lockedBy()).isEqualTo("somebody");
        assertThat(remaining()).containsExactly(ids.get(1), ids.get(2));
    }

    @Test
    void changedJobsCarryTheNamesOfTaskAndQueue() {
        long plain = db.scheduler().addJob("plain", 1).id();
        long queued = db.scheduler()
                .addJob("queued", 2, JobSpec.builder().queueName("lane").build())
                .id();

        List<Job> done = db.changes().complete(List.of(queued, plain));

        assertThat(done).extracting(Job::taskIdentifier).containsExactly("queued", "plain");
        assertThat(done).extracting(Job::queueName).containsExactly("lane", null);
        assertThat(done).extracting(Job::payload).containsExactly("2", "1");
    }

    @Test
    void failsPermanentlyWhatDoesNotRun() {
        List<Long> ids = add(3);
        lock(ids.get(0), "239 minutes");
        lock(ids.get(1), "241 minutes");

        List<Job> failed = db.changes().permanentlyFail(List.of(ids.get(2), ids.get(1), ids.get(0)), "wrong address");

        assertThat(failed).extracting(Job::id).containsExactly(ids.get(2), ids.get(1));
        assertThat(failed).allSatisfy(job -> {
            assertThat(job.attempts()).isEqualTo(job.maxAttempts());
            assertThat(job.lastError()).isEqualTo("wrong address");
            assertThat(job.lockedBy()).isNull();
        });
        assertThat(db.queries().find(ids.get(0)).orElseThrow().lockedBy()).isEqualTo("somebody");
    }

    @Test
    void reschedulesOnlyWhatIsSet() {
        List<Long> ids = add(2);
        lock(ids.get(1), "1 minute");
        Instant later = Instant.now().plusSeconds(1000).truncatedTo(ChronoUnit.MICROS);

        List<Job> all = db.changes().reschedule(ids, new Rescheduling(later, -3, 7, 9));
        assertThat(all).extracting(Job::id).containsExactly(ids.get(0));
        assertThat(all.get(0).runAt()).isEqualTo(later);
        assertThat(all.get(0).priority()).isEqualTo(-3);
        assertThat(all.get(0).attempts()).isEqualTo(7);
        assertThat(all.get(0).maxAttempts()).isEqualTo(9);

        Job one = db.changes()
                .reschedule(ids, Rescheduling.builder().priority(4).build())
                .get(0);
        assertThat(one.priority()).isEqualTo(4);
        assertThat(one.runAt()).isEqualTo(later);
        assertThat(one.attempts()).isEqualTo(7);
        assertThat(one.maxAttempts()).isEqualTo(9);
    }

    @Test
    void reschedulingAFailedJobWakesAnIdleWorker() {
        start();
        long id = db.scheduler()
                .addJob("mail", 1, JobSpec.builder().runIn(Duration.ofHours(2)).build())
                .id();
        db.changes().permanentlyFail(List.of(id), "not now");

        db.changes()
                .reschedule(
                        List.of(id),
                        Rescheduling.builder().runAt(Instant.now()).attempts(0).build());

        assertThat(events.await(JobCompleted.class).job().id()).isEqualTo(id);
    }

    @Test
    void runsNowWhatDoesNotRunAndGivesAttemptsBackOnlyToWhatHasFailed() {
        JobSpec later = JobSpec.builder().runIn(Duration.ofHours(2)).build();
        long retried = db.scheduler().addJob("mail", 1, later).id();
        db.changes()
                .reschedule(List.of(retried), Rescheduling.builder().attempts(3).build());
        long failed = db.scheduler().addJob("mail", 2, later).id();
        db.changes().permanentlyFail(List.of(failed), "not now");
        long running = db.scheduler().addJob("mail", 3, later).id();
        lock(running, "1 minute");

        List<Job> due = db.changes().runNow(List.of(failed, running, Long.MAX_VALUE, retried));

        assertThat(due).extracting(Job::id).containsExactly(failed, retried);
        assertThat(due).extracting(Job::attempts).containsExactly(0, 3);
        assertThat(ids(JobQuery.builder().state(JobState.READY))).containsExactly(failed, retried);
        assertThat(db.changes().runNow(List.of())).isEmpty();
    }

    @Test
    void retriesFailedJobsWithAnotherPayload() {
        JobSpec later =
                JobSpec.builder().runIn(Duration.ofDays(1)).jobKey("mail:1").build();
        long failed = db.scheduler().addJob("mail", List.of("old"), later).id();
        db.changes().permanentlyFail(List.of(failed), "not now");
        long waiting = db.scheduler().addJob("mail", 2).id();
        long running = db.scheduler().addJob("mail", 3).id();
        db.changes().permanentlyFail(List.of(running), "not now");
        lock(running, "1 minute");
        JsonNode payload = new JsonMapper().readTree("[\"new\"]");

        List<Job> retried = db.changes().retryWith(List.of(failed, waiting, running, Long.MAX_VALUE), payload);

        assertThat(retried).extracting(Job::id).containsExactly(failed);
        Job job = db.queries().find(failed).orElseThrow();
        assertThat(job.payload()).isEqualTo("[\"new\"]");
        assertThat(job.attempts()).isZero();
        assertThat(job.key()).isEqualTo("mail:1");
        assertThat(JobState.of(job, db.queries().now())).isEqualTo(JobState.READY);
        assertThat(db.queries().find(waiting).orElseThrow().payload()).isEqualTo("2");
        assertThat(db.changes().retryWith(List.of(), payload)).isEmpty();
    }

    /** Whoever waits for the result, or is to start after the job, waits for the new end. */
    @Test
    void aJobThatIsRetriedWithAnotherPayloadHasNotEnded() {
        long id = db.scheduler().addJobForResult("mail", 1, String.class).jobId();
        db.changes().permanentlyFail(List.of(id), "not now");
        String ends = "select count(*) from {schema}.pgworker_results(array[" + id + "])";
        assertThat(db.sql(ends).query(Integer.class).single()).isEqualTo(1);

        db.changes().retryWith(List.of(id), new JsonMapper().readTree("2"));

        assertThat(db.sql(ends).query(Integer.class).single()).isZero();
    }

    @Test
    void aPayloadThatIsNoJsonIsRefusedByName() {
        ArrayNode nested = new JsonMapper().createArrayNode();
        ArrayNode innermost = nested;
        for (int i = 0; i < 2_000; i++) {
            innermost = innermost.addArray();
        }
        for (JsonNode payload : List.of(MissingNode.getInstance(), nested)) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> db.changes().retryWith(List.of(1L), payload))
                    .withMessageStartingWith("payload must be");
        }
    }

    @Test
    void runsNowAJobThatFailsMeanwhile() throws Exception {
        long id = add(1).get(0);
        try (Connection other = db.dataSource().getConnection();
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute(db.schema().in("update {schema}._private_jobs set attempts = max_attempts"));
            CompletableFuture<List<Job>> due =
                    CompletableFuture.supplyAsync(() -> db.changes().runNow(List.of(id)), OwnThread.EACH);
            Awaitility.await()
                    .until(() -> db.sql("select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
                                            + " and query like '%due as materialized%{schema}%'")
                                    .query(Integer.class)
                                    .single()
                            == 1);
            other.commit();

            assertThat(due.get()).extracting(Job::attempts).containsExactly(0);
        }
    }

    @Test
    void forceUnlockingWakesAnIdleWorkerForJobsAndQueues() {
        JobSpec inLane = JobSpec.builder().queueName("lane").build();
        long held = db.scheduler().addJob("mail", 1, inLane).id();
        long behind = db.scheduler().addJob("mail", 2, inLane).id();
        lock(held, "1 minute");
        start();

        db.operations().forceUnlockWorkers(List.of("nobody"));
        assertThat(db.queries().count(JobQuery.ALL).running()).isEqualTo(1);
        db.operations().forceUnlockWorkers(List.of("somebody"));

        assertThat(events.await(JobCompleted.class, 2))
                .extracting(e -> e.job().id())
                .containsExactly(held, behind);
    }

    @Test
    void removesByKey() {
        long waiting = keyed("waiting");
        long running = keyed("running");
        lock(running, "1 minute");
        long forgotten = keyed("forgotten");
        lock(forgotten, "241 minutes");

        assertThat(db.changes().remove("waiting")).map(Job::id).contains(waiting);
        assertThat(db.changes().remove("waiting")).isEmpty();
        assertThat(db.changes().remove("forgotten")).map(Job::id).contains(forgotten);
        Job stillRunning = db.changes().remove("running").orElseThrow();

        assertThat(stillRunning.lockedBy()).isEqualTo("somebody");
        assertThat(stillRunning.key()).isNull();
        assertThat(stillRunning.attempts()).isEqualTo(stillRunning.maxAttempts());
        assertThat(remaining()).containsExactly(running);
    }

    @Test
    void findsOneJobWithItsPayload() {
        Job added = db.scheduler()
                .addJob(
                        "mail",
                        Map.of("to", "ada"),
                        JobSpec.builder()
                                .queueName("lane")
                                .jobKey("k")
                                .flags("slow")
                                .build());

        assertThat(db.queries().find(added.id())).contains(added);
        assertThat(db.queries().find(added.id() + 1)).isEmpty();
    }

    @Test
    void listsAndCountsByEveryFilter() {
        JobSpec later = JobSpec.builder().runIn(Duration.ofHours(1)).build();
        long ready = db.scheduler().addJob("mail", "needle in payload").id();
        long scheduled = db.scheduler().addJob("mail", 1, later).id();
        long retrying = db.scheduler().addJob("report", 1, later).id();
        db.changes()
                .reschedule(
                        List.of(retrying), Rescheduling.builder().attempts(1).build());
        long running = db.scheduler()
                .addJob("report", 1, JobSpec.builder().queueName("lane").build())
                .id();
        lock(running, "1 minute");
        long failed = db.scheduler()
                .addJob("report", 1, JobSpec.builder().queueName("lane").build())
                .id();
        db.changes().permanentlyFail(List.of(failed), "needle in error");
        long lastAttempt = db.scheduler()
                .addJob(
                        "mail",
                        1,
                        JobSpec.builder().jobKey("needle in key").maxAttempts(1).build())
                .id();
        lock(lastAttempt, "1 minute");
        db.sql("update {schema}._private_jobs set attempts = 1 where id = ?")
                .param(lastAttempt)
                .update();

        assertThat(ids(JobQuery.builder().state(JobState.READY))).containsExactly(ready);
        assertThat(ids(JobQuery.builder().state(JobState.SCHEDULED))).containsExactly(scheduled);
        assertThat(ids(JobQuery.builder().state(JobState.RETRYING))).containsExactly(retrying);
        assertThat(ids(JobQuery.builder().state(JobState.RUNNING))).containsExactly(lastAttempt, running);
        assertThat(ids(JobQuery.builder().state(JobState.FAILED))).containsExactly(failed);
        assertThat(ids(JobQuery.builder().taskIdentifier("mail"))).containsExactly(lastAttempt, scheduled, ready);
        assertThat(ids(JobQuery.builder().taskIdentifier("none"))).isEmpty();
        assertThat(ids(JobQuery.builder().queueName("lane"))).containsExactly(failed, running);
        assertThat(ids(JobQuery.builder().queueName("none"))).isEmpty();
        assertThat(ids(JobQuery.builder().search("needle"))).containsExactly(lastAttempt, failed, ready);
        assertThat(ids(JobQuery.builder().search("needle%"))).isEmpty();
        assertThat(ids(JobQuery.builder()
                        .search("needle")
                        .queueName("lane")
                        .taskIdentifier("report")
                        .state(JobState.FAILED)))
                .containsExactly(failed);
        assertThat(ids(JobQuery.builder())).containsExactly(lastAttempt, failed, running, retrying, scheduled, ready);

        assertThat(db.queries().count(JobQuery.ALL)).isEqualTo(new JobCounts(1, 1, 1, 0, 2, 1));
        assertThat(db.queries().count(JobQuery.ALL).total()).isEqualTo(6);
        assertThat(db.queries().count(JobQuery.builder().taskIdentifier("mail").build()))
                .isEqualTo(new JobCounts(1, 1, 0, 0, 1, 0));
        assertThat(db.queries()
                        .count(JobQuery.builder()
                                .state(JobState.FAILED)
                                .search("needle")
                                .build()))
                .isEqualTo(new JobCounts(0, 0, 0, 0, 0, 1));
    }

    @Test
    void pagesThroughAThousandJobs() {
        List<Long> expected = new ArrayList<>(db.sql(
                        "select id from {schema}.add_jobs(array(select ('mail', '{}', null, null, null, null, null, null)"
                                + "::{schema}.job_spec from generate_series(1, 1000))) order by id desc")
                .query(Long.class)
                .list());
        List<Long> seen = new ArrayList<>();
        JobQuery query = JobQuery.builder().pageSize(100).build();
        int pages = 0;

        JobPage page;
        do {
            page = db.queries().list(query);
            assertThat(page.jobs()).hasSize(100);
            page.jobs().forEach(job -> seen.add(job.id()));
            query = query.after(page.next());
            pages++;
        } while (page.next() != null);

        assertThat(pages).isEqualTo(10);
        assertThat(seen).isEqualTo(expected);
        assertThat(db.queries().list(JobQuery.builder().pageSize(1000).build()).next())
                .isNull();
        assertThat(db.queries().list(JobQuery.builder().pageSize(999).build()).next())
                .isEqualTo(expected.get(998));
    }

    @Test
    void aJobWhoseTaskRowIsMissingIsListedAllTheSame() {
        long id = db.scheduler().addJob("mail").id();
        db.sql("delete from {schema}._private_tasks").update();

        assertThat(ids(JobQuery.builder())).containsExactly(id);
        assertThat(db.changes().complete(List.of(id))).extracting(Job::id).containsExactly(id);
    }

    @Test
    void listsWorkersWithTheJobsTheyHold() throws Exception {
        CountDownLatch mayEnd = new CountDownLatch(1);
        CountDownLatch begun = new CountDownLatch(2);
        Worker worker = db.start(db.worker().listener(events).task(MAIL, (payload, context) -> {
            begun.countDown();
            mayEnd.await();
        }));
        add(2);
        begun.await();
        db.sql("select {schema}.worker_heartbeat('idle', null)").query().singleRow();

        List<ActiveWorker> workers = db.queries().activeWorkers();
        mayEnd.countDown();

        assertThat(workers).extracting(ActiveWorker::id).containsExactly(worker.id(), "idle");
        assertThat(workers).extracting(ActiveWorker::heldJobs).containsExactly(2L, 0L);
        assertThat(workers.get(0).metadata()).contains("\"tasks\"", "mail");
        assertThat(workers.get(1).metadata()).isNull();
        assertThat(workers.get(0).lastHeartbeatAt())
                .isBetween(workers.get(0).startedAt(), Instant.now().plusSeconds(5));
    }

    @Test
    void changesJoinTheCallersTransaction() {
        List<Long> ids = add(2);

        new TransactionTemplate(new JdbcTransactionManager(db.dataSource())).executeWithoutResult(status -> {
            assertThat(db.changes().complete(ids)).hasSize(2);
            assertThat(db.queries().count(JobQuery.ALL).total()).isZero();
            status.setRollbackOnly();
        });

        assertThat(remaining()).isEqualTo(ids);
    }

    @Test
    void argumentsAreNamedBeforeAnySql() {
        WorkerSchema nowhere = new WorkerSchema("no_such_schema");
        JobQueries queries = WorkerClient.jobQueries(db.dataSource(), nowhere);
        JobChanges changes = WorkerClient.jobChanges(db.dataSource(), nowhere);
        WorkerOperations operations = WorkerClient.workerOperations(db.dataSource(), nowhere);

        assertThatIllegalArgumentException()
                .isThrownBy(() -> changes.complete(Arrays.asList(1L, null)))
                .withMessageContaining("ids[1]");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> changes.complete(null))
                .withMessageContaining("ids");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> changes.permanentlyFail(List.of(1L), "a\0b"))
                .withMessageContaining("reason");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> changes.reschedule(List.of(1L), null))
                .withMessageContaining("rescheduling");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Rescheduling.builder().build())
                .withMessageContaining("runAt");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Rescheduling.builder().attempts(-1).build())
                .withMessageContaining("attempts");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> changes.remove(""))
                .withMessageContaining("jobKey");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> operations.forceUnlockWorkers(Arrays.asList((String) null)))
                .withMessageContaining("workerIds[0]");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> operations.forceUnlockWorkers(List.of("a\0b")))
                .withMessageContaining("workerIds");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> queries.queues("a\0b", 1))
                .withMessageContaining("after");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> operations.cleanup(null))
                .withMessageContaining("tasks");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> queries.list(null))
                .withMessageContaining("query");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> JobQuery.builder().pageSize(1001).build())
                .withMessageContaining("pageSize")
                .withMessageContaining("1000");
        assertThat(changes.complete(List.of())).isEmpty();
        assertThatThrownBy(() -> changes.complete(List.of(1L)))
                .isInstanceOf(DataAccessException.class)
                .hasMessageContaining("complete jobs");
    }

    private void start() {
        db.start(db.worker()
                .settings(WorkerSettings.builder()
                        .pollInterval(Duration.ofHours(1))
                        .build())
                .listener(events)
                .task(MAIL, (payload, context) -> {}));
        events.await(WorkerStarted.class);
        events.await(ListenerConnected.class);
    }

    private List<Long> add(int count) {
        List<Long> ids = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            ids.add(db.scheduler().addJob("mail", i).id());
        }
        return ids;
    }

    private long keyed(String key) {
        return db.scheduler()
                .addJob("mail", 1, JobSpec.builder().jobKey(key).build())
                .id();
    }

    /** Locks a job as a claim does, with its queue, so long ago. */
    private void lock(long id, String ago) {
        db.sql("update {schema}._private_jobs set locked_at = now() - ?::interval, locked_by = 'somebody' where id = ?")
                .params(ago, id)
                .update();
        db.sql("update {schema}._private_job_queues set locked_at = now() - ?::interval, locked_by = 'somebody'"
                        + " where id = (select job_queue_id from {schema}._private_jobs where id = ?)")
                .params(ago, id)
                .update();
    }

    private List<Long> ids(JobQuery.Builder query) {
        return db.queries().list(query.build()).jobs().stream().map(Job::id).toList();
    }

    private List<Long> remaining() {
        return db.sql("select id from {schema}._private_jobs order by id")
                .query(Long.class)
                .list();
    }
}
