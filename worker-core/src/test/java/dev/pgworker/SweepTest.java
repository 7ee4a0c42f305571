package dev.pgworker;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import dev.pgworker.event.RecoveryOutcome;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobRecovered;
import dev.pgworker.event.WorkerEvent.ListenerConnected;
import dev.pgworker.event.WorkerEvent.SupersededJobEnded;
import dev.pgworker.event.WorkerEvent.WorkersRecovered;
import dev.pgworker.job.ActiveWorker;
import dev.pgworker.job.CleanupTask;
import dev.pgworker.job.DeadWorker;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Rescheduling;
import dev.pgworker.job.SweepOptions;
import dev.pgworker.job.SweepResult;
import dev.pgworker.job.Task;
import dev.pgworker.job.WorkerOperations;
import dev.pgworker.recovery.RecoverySettings;
import dev.pgworker.task.JobRecoveryHandler;
import dev.pgworker.task.RecoveryDecision;
import dev.pgworker.testing.ClaimSql;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** What becomes of the jobs of dead workers. Dead ones are rows that a crash would leave. */
class SweepTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);
    private static final String RECOVERED = "Job recovered after worker interruption";

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final RecordingListener events = new RecordingListener();

    @Test
    void aJobOfADeadWorkerIsRecoveredWithItsQueueAndRunsAtItsNewTime() {
        Job job =
                db.scheduler().addJob(WORK, 1, JobSpec.builder().queueName("q").build());
        claimAs("dead");
        register("dead", "10 minutes");
        Worker worker = start(recovery().recoveryDelay(Duration.ofMillis(300)), List.of());

        JobRecovered recovered = events.await(JobRecovered.class);
        JobCompleted completed = events.await(JobCompleted.class);

        assertThat(recovered.workerId()).isEqualTo(worker.id());
        assertThat(recovered.deadWorkerId()).isEqualTo("dead");
        assertThat(recovered.outcome()).isEqualTo(RecoveryOutcome.RETURNED);
        assertThat(recovered.job().id()).isEqualTo(job.id());
        assertThat(recovered.job().payload()).isEqualTo("1");
        assertThat(recovered.job().attempts()).isEqualTo(1);
        assertThat(completed.job().attempts()).isEqualTo(1);
        assertThat(completed.job().lastError()).isEqualTo(RECOVERED);
        assertThat(events.await(WorkersRecovered.class).deadWorkerIds()).containsExactly("dead");
        assertThat(workers()).containsExactly(worker.id());
    }

    @Test
    void theDelayIsAddedAndTheAttemptGivenBack() {
        Job job = claimedBy("dead");
        register("dead", "6 minutes");

        assertThat(db.operations().sweep(SweepOptions.DEFAULT)).isEqualTo(new SweepResult(true, List.of("dead"), 1));

        assertThat(row(job)).containsEntry("attempts", 0).containsEntry("last_error", RECOVERED);
        assertThat(delay(job)).isBetween(29.9, 30.1);
        assertThat(workers()).isEmpty();
    }

    @Test
    void jobsRecoveredTogetherKeepTheirOrder() {
        Instant past = Instant.now().minusSeconds(100);
        Job second = db.scheduler()
                .addJob(WORK, 2, JobSpec.builder().runAt(past.plusSeconds(2)).build());
        Job first = db.scheduler().addJob(WORK, 1, JobSpec.builder().runAt(past).build());
        claimAs("dead");
        register("dead", "6 minutes");

        db.operations().sweep(SweepOptions.DEFAULT);

        assertThat(db.sql("select id from {schema}.jobs order by priority, run_at, id")
                        .query(Long.class)
                        .list())
                .containsExactly(first.id(), second.id());
    }

    @ParameterizedTest
    @CsvSource({"4 minutes, false", "6 minutes, true"})
    void aWorkerIsDeadWhenItsHeartbeatIsOlderThanTheThreshold(String age, boolean dead) {
        claimedBy("w");
        register("w", age);

        assertThat(db.operations().sweep(SweepOptions.DEFAULT).workerIds()).hasSize(dead ? 1 : 0);
        assertThat(workers()).hasSize(dead ? 0 : 1);
    }

    @ParameterizedTest
    @CsvSource({
        "orphan, 6 minutes, true",
        "orphan, 4 minutes, false",
        "pool-1, 6 minutes, false",
        "otpool-1, 9 hours, false"
    })
    void aLockOfAnUnregisteredWorkerIsAnOrphanUnlessItIsOfANodePool(String worker, String age, boolean orphan) {
        Job job =
                db.scheduler().addJob(WORK, 1, JobSpec.builder().queueName("q").build());
        claimAs(worker);
        age(age);

        assertThat(db.operations().sweep(SweepOptions.DEFAULT).workerIds())
                .as("unless asked for")
                .isEmpty();

        SweepResult result = withOrphans().sweep(SweepOptions.DEFAULT);

        assertThat(result.workerIds()).hasSize(orphan ? 1 : 0);
        assertThat(row(job).get("locked_by")).isEqualTo(orphan ? null : worker);
        assertThat(db.sql("select count(*) from {schema}._private_job_queues where locked_by is null")
                        .query(Integer.class)
                        .single())
                .isEqualTo(orphan ? 1 : 0);
    }

    @ParameterizedTest
    @CsvSource({
        "true, 6 minutes, true, false",
        "true, 16 minutes, true, true",
        "false, 6 minutes, true, true",
        "true, 6 minutes, false, false",
        "true, 16 minutes, false, true",
        "false, 6 minutes, false, true"
    })
    void resilientJobsHaveTheLongerThreshold(boolean truthy, String age, boolean registered, boolean dead) {
        db.scheduler()
                .addJob(
                        WORK,
                        1,
                        JobSpec.builder().flags("infrastructure_resilient").build());
        db.sql("update {schema}._private_jobs set flags = jsonb_build_object('infrastructure_resilient', ?)")
                .param(truthy)
                .update();
        claimAs("w");
        age(age);
        if (registered) {
            register("w", age);
        }

        assertThat(withOrphans().sweep(SweepOptions.DEFAULT).workerIds()).hasSize(dead ? 1 : 0);
    }

    @Test
    void theFourthRecoveryCountsAsAnAttemptWithBackOffAndTheLastAttemptIsFinal() {
        Job job =
                db.scheduler().addJob(WORK, 1, JobSpec.builder().maxAttempts(2).build());
        for (int i = 1; i <= 3; i++) {
            crash("dead" + i);
            assertThat(row(job)).containsEntry("attempts", 0).containsEntry("last_error", RECOVERED);
            assertThat(db.queries().list(JobQuery.ALL).jobs().get(0).recoveries())
                    .isEqualTo(i);
            assertThat(db.queries().find(job.id()).orElseThrow().recoveries()).isEqualTo(i);
        }

        crash("dead4");
        assertThat(row(job))
                .containsEntry("attempts", 1)
                .containsEntry(
                        "last_error",
                        "WorkerCrashed: worker dead4 died during attempt 1 of 2; the job has lost its worker 4 times");
        assertThat(delay(job)).isBetween(2.44, 3.0);

        crash("dead5");
        assertThat(row(job))
                .containsEntry("attempts", 2)
                .containsEntry(
                        "last_error",
                        "WorkerCrashed: worker dead5 died during attempt 2 of 2; the job has lost its worker 5 times");

        assertThat(db.changes()
                        .reschedule(
                                List.of(job.id()),
                                Rescheduling.builder().attempts(0).build())
                        .get(0)
                        .recoveries())
                .isZero();
    }

    @Test
    void theSharedFunctionHasTheSameBudget() {
        Job job = db.scheduler().addJob(WORK, 1);
        for (int i = 1; i <= 4; i++) {
            due();
            claimAs("dead");
            assertThat(db.sql("select {schema}.recover_dead_worker_jobs(array['dead'])")
                            .query(Integer.class)
                            .single())
                    .isEqualTo(1);
        }
        assertThat(row(job)).containsEntry("attempts", 1);
        assertThat((String) row(job).get("last_error")).startsWith("WorkerCrashed");
    }

    @Test
    void addingAJobAgainWithoutChangingItKeepsItsRecoveries() {
        JobSpec spec = JobSpec.builder().jobKey("k").build();
        JobSpec dedupe = JobSpec.builder()
                .jobKey("k")
                .jobKeyMode(JobKeyMode.UNSAFE_DEDUPE)
                .build();
        Job job = db.scheduler().addJob(WORK, 1, spec);
        for (int i = 1; i <= 3; i++) {
            crash("dead" + i);
            db.scheduler().addJob(WORK, 2, dedupe);
            db.scheduler().addJob(WORK, 2, dedupe);
            assertThat(db.queries().find(job.id()).orElseThrow().recoveries()).isEqualTo(i);
        }
        crash("dead4");
        assertThat((String) row(job).get("last_error")).endsWith("the job has lost its worker 4 times");
    }

    @Test
    void whatIsNotedAboutAJobThatIsGoneGoesWithTheNextRecoveryOrCleanUp() {
        Job gone = db.scheduler().addJob(WORK, 1);
        crash("dead1");
        db.changes().complete(List.of(gone.id()));
        assertThat(noted()).containsExactly(gone.id());

        Job left = db.scheduler().addJob(WORK, 1);
        crash("dead2");
        assertThat(noted()).containsExactly(left.id());

        db.changes().permanentlyFail(List.of(left.id()), "enough");
        db.operations().cleanup(EnumSet.of(CleanupTask.DELETE_PERMAFAILED_JOBS));
        assertThat(noted()).isEmpty();
    }

    private List<Long> noted() {
        return db.sql("select job_id from {schema}.pgworker_recoveries order by job_id")
                .query(Long.class)
                .list();
    }

    @Test
    void replacingAJobUnderItsKeyForgetsItsRecoveries() {
        JobSpec spec = JobSpec.builder().jobKey("k").build();
        Job job = db.scheduler().addJob(WORK, 1, spec);
        crash("dead");
        assertThat(db.queries().find(job.id()).orElseThrow().recoveries()).isEqualTo(1);

        db.scheduler().addJob(WORK, 2, spec);

        assertThat(db.queries().find(job.id()).orElseThrow().recoveries()).isZero();
    }

    @Test
    @Tag("thorough")
    void aSupersededJobIsNotRunAgainAndSaysWhy() {
        JobSpec spec = JobSpec.builder().jobKey("k").build();
        Job old = db.scheduler().addJob(WORK, 1, spec);
        claimAs("dead");
        db.scheduler().addJob(WORK, 2, spec);
        register("dead", "6 minutes");
        List<Job> asked = new CopyOnWriteArrayList<>();
        start(recovery(), List.of((job, dead) -> {
            asked.add(job);
            return RecoveryDecision.useDefault();
        }));

        assertThat(events.await(SupersededJobEnded.class).job().id()).isEqualTo(old.id());
        events.await(WorkersRecovered.class);
        assertThat(asked).isEmpty();
        assertThat(events.all(JobRecovered.class)).isEmpty();
        assertThat(row(old))
                .containsEntry("attempts", 25)
                .containsEntry("locked_by", null)
                .containsEntry(
                        "last_error", "Superseded by a newer job with the same key while running; its worker died");
        assertThat(db.queries().find(old.id()).orElseThrow().recoveries()).isZero();
    }

    @Test
    @Tag("thorough")
    void handlersDecide() {
        Instant at = Instant.parse("2100-01-01T00:00:00.123456Z");
        List<Job> jobs = new ArrayList<>();
        for (int i = 0; i <= 6; i++) {
            jobs.add(db.scheduler().addJob(WORK, i));
        }
        claimAs("dead");
        register("dead", "6 minutes");
        Set<String> recoverers = ConcurrentHashMap.newKeySet();
        JobRecoveryHandler indifferent = (job, dead) -> RecoveryDecision.useDefault();
        JobRecoveryHandler handler = (job, dead) -> {
            assertThat(dead.id()).isEqualTo("dead");
            assertThat(dead.reason()).isEqualTo(DeadWorker.Reason.NO_HEARTBEAT);
            recoverers.add(dead.recoveringWorkerId());
            return switch (job.payload()) {
                case "1" -> RecoveryDecision.reschedule(at);
                case "2" -> RecoveryDecision.reschedule(at, 7);
                case "3" -> RecoveryDecision.failWithBackoff();
                case "4" -> RecoveryDecision.skip();
                case "5" -> throw new IllegalStateException("on purpose");
                case "6" -> {
                    // Its own row is not locked: no deadlock.
                    db.sql("update {schema}._private_jobs set priority = 5 where id = ?")
                            .param(job.id())
                            .update();
                    yield RecoveryDecision.useDefault();
                }
                default -> RecoveryDecision.useDefault();
            };
        };
        Worker worker = start(recovery(), List.of(indifferent, handler));

        assertThat(events.await(WorkersRecovered.class).jobs()).isEqualTo(6);
        assertThat(events.all(JobRecovered.class))
                .extracting(JobRecovered::outcome)
                .containsExactly(
                        RecoveryOutcome.RETURNED,
                        RecoveryOutcome.RESCHEDULED,
                        RecoveryOutcome.RESCHEDULED,
                        RecoveryOutcome.FAILED,
                        RecoveryOutcome.RETURNED,
                        RecoveryOutcome.RETURNED);
        assertThat(row(jobs.get(0))).containsEntry("attempts", 0).containsEntry("last_error", RECOVERED);
        assertThat(recoverers).containsExactly(worker.id());
        assertThat(row(jobs.get(1))).containsEntry("attempts", 0);
        assertThat(row(jobs.get(2))).containsEntry("attempts", 7);
        assertThat(runAt(jobs.get(1))).isEqualTo(at);
        assertThat(runAt(jobs.get(2))).isEqualTo(at);
        assertThat(row(jobs.get(3))).containsEntry("attempts", 1);
        assertThat((String) row(jobs.get(3)).get("last_error")).startsWith("WorkerCrashed: worker dead died");
        assertThat(row(jobs.get(4))).containsEntry("attempts", 1).containsEntry("locked_by", "dead");
        assertThat(row(jobs.get(5))).containsEntry("attempts", 0).containsEntry("last_error", RECOVERED);
        assertThat(row(jobs.get(6))).containsEntry("attempts", 0).containsEntry("last_error", RECOVERED);
    }

    @Test
    void aDryRunFindsAndChangesNothing() {
        Job job = claimedBy("dead");
        register("dead", "6 minutes");

        SweepResult result = db.operations().sweep(new SweepOptions(null, null, true));

        assertThat(result).isEqualTo(new SweepResult(true, List.of("dead"), 0));
        assertThat(row(job)).containsEntry("locked_by", "dead");
        assertThat(workers()).containsExactly("dead");
    }

    @Test
    void optionsOfAManualSweepReplaceTheSettings() {
        Job job = claimedBy("dead");
        register("dead", "1 minute");

        assertThat(db.operations().sweep(SweepOptions.DEFAULT).workerIds()).isEmpty();
        db.operations().sweep(new SweepOptions(Duration.ofSeconds(50), Duration.ofSeconds(7), false));

        assertThat(delay(job)).isBetween(6.9, 7.1);
    }

    @Test
    void oneSweepWorksAtATimeAndTheOtherSaysSo() throws Exception {
        claimedBy("dead");
        register("dead", "6 minutes");
        try (var connection = db.dataSource().getConnection()) {
            connection.setAutoCommit(false);
            try (var statement = connection.createStatement()) {
                statement.execute(db.schema().in("select {schema}.pgworker_sweeps_alone()"));
                assertThat(connection
                                .createStatement()
                                .executeQuery(
                                        "select from pg_locks where locktype = 'advisory' and objid = x'53574550'::int")
                                .next())
                        .as("The lock of Rust workers: \"GWRS\" and \"SWEP\"")
                        .isTrue();
                assertThat(db.operations().sweep(SweepOptions.DEFAULT)).isEqualTo(new SweepResult(false, List.of(), 0));
            }
            connection.rollback();
        }
        assertThat(db.operations().sweep(SweepOptions.DEFAULT).swept()).isTrue();
    }

    @Test
    void aJobThatSomebodyHoldsIsLeftForTheNextSweep() throws Exception {
        Job job = claimedBy("dead");
        register("dead", "6 minutes");
        try (var connection = db.dataSource().getConnection()) {
            connection.setAutoCommit(false);
            try (var statement = connection.createStatement()) {
                statement.execute(db.schema().in("select * from {schema}._private_jobs for update"));
                assertThat(db.operations().sweep(SweepOptions.DEFAULT).recoveredJobs())
                        .isZero();
            }
            connection.rollback();
        }
        age("6 minutes");
        assertThat(db.operations().sweep(SweepOptions.DEFAULT).recoveredJobs()).isEqualTo(1);
        assertThat(row(job)).containsEntry("locked_by", null);
    }

    @Test
    void aWorkerThatIsStaleSaysSoInTheList() {
        register("old", "2 minutes");

        assertThat(db.queries().activeWorkers()).extracting(ActiveWorker::stale).containsExactly(false);
        assertThat(db.queries().activeWorkers(Duration.ofMinutes(1)))
                .extracting(ActiveWorker::stale)
                .containsExactly(true);
    }

    @Test
    void withoutRecoveryNobodyIsSwept() throws Exception {
        Job job = claimedBy("dead");
        register("dead", "6 minutes");
        CountDownLatch ran = new CountDownLatch(1);
        db.start(db.worker()
                .settings(WorkerSettings.builder()
                        .recovery(RecoverySettings.builder()
                                .enabled(false)
                                .sweepInterval(Duration.ofMillis(1))
                                .build())
                        .build())
                .listener(events)
                .task(WORK, (n, context) -> ran.countDown()));
        events.await(ListenerConnected.class);
        db.scheduler().addJob(WORK, 2);
        ran.await();

        assertThat(row(job)).containsEntry("locked_by", "dead");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"complete_jobs(array[%s])", "permanently_fail_jobs(array[%s])", "reschedule_jobs(array[%s])"})
    void administrationTakesAnOldLockFromADeadWorkerOnly(String call) {
        Job job = claimedBy("w");
        age("5 hours");
        String sql = "select count(*) from {schema}." + String.format(Locale.ROOT, call, job.id());

        register("w", "1 minute");
        assertThat(db.sql(sql).query(Integer.class).single()).isZero();

        register("w", "2 hours");
        assertThat(db.sql(sql).query(Integer.class).single()).isEqualTo(1);
    }

    private WorkerOperations withOrphans() {
        return WorkerClient.workerOperations(
                db.dataSource(),
                db.schema(),
                RecoverySettings.builder().orphans(true).build(),
                List::of,
                List::of);
    }

    private static RecoverySettings.Builder recovery() {
        return RecoverySettings.builder()
                .enabled(true)
                .heartbeatInterval(Duration.ofMillis(100))
                .sweepInterval(Duration.ofMillis(100))
                .sweepThreshold(Duration.ofMinutes(1));
    }

    private Worker start(RecoverySettings.Builder recovery, List<JobRecoveryHandler> handlers) {
        Worker.Builder builder = db.worker()
                .settings(WorkerSettings.builder()
                        .pollInterval(Duration.ofHours(1))
                        .recovery(recovery.build())
                        .build())
                .listener(events)
                .task(WORK, (n, context) -> {});
        handlers.forEach(builder::recoveryHandler);
        return db.start(builder);
    }

    private Job claimedBy(String worker) {
        Job job = db.scheduler().addJob(WORK, 1);
        claimAs(worker);
        return job;
    }

    private void claimAs(String worker) {
        db.sql("select count(*) from " + ClaimSql.claim("?", "50") + " c")
                .param(worker)
                .query(Integer.class)
                .single();
    }

    private void due() {
        db.sql("update {schema}._private_jobs set run_at = now()").update();
    }

    private void crash(String worker) {
        due();
        claimAs(worker);
        register(worker, "6 minutes");
        assertThat(db.operations().sweep(SweepOptions.DEFAULT).recoveredJobs()).isEqualTo(1);
    }

    private void register(String worker, String age) {
        db.sql("""
                        insert into {schema}._private_workers (id, last_heartbeat_at) values (?, now() - ?::interval)
                        on conflict (id) do update set last_heartbeat_at = excluded.last_heartbeat_at""").params(worker, age).update();
    }

    private void age(String age) {
        db.sql("update {schema}._private_jobs set locked_at = now() - ?::interval where locked_at is not null")
                .param(age)
                .update();
        db.sql("update {schema}._private_job_queues set locked_at = now() - ?::interval where locked_at is not null")
                .param(age)
                .update();
    }

    private List<String> workers() {
        return db.sql("select id from {schema}._private_workers")
                .query(String.class)
                .list();
    }

    private Map<String, Object> row(Job job) {
        return db.sql("select attempts, last_error, locked_by from {schema}.jobs where id = ?")
                .param(job.id())
                .query()
                .singleRow();
    }

    private Instant runAt(Job job) {
        return db.sql("select run_at from {schema}.jobs where id = ?")
                .param(job.id())
                .query(Instant.class)
                .single();
    }

    private double delay(Job job) {
        return db.sql("select extract(epoch from run_at - updated_at) from {schema}.jobs where id = ?")
                .param(job.id())
                .query(Double.class)
                .single();
    }
}
