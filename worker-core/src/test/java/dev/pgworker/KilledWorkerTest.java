package dev.pgworker;

import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.DisabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobLost;
import dev.pgworker.event.WorkerEvent.JobRecovered;
import dev.pgworker.event.WorkerEvent.JobStarted;
import dev.pgworker.event.WorkerEvent.ListenerConnected;
import dev.pgworker.event.WorkerEvent.WorkersRecovered;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.recovery.RecoverySettings;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testing.WorkerProcess;

import static org.assertj.core.api.Assertions.assertThat;

/** Real processes that are killed, or paused for longer than the threshold. */
@DisabledOnOs(value = OS.WINDOWS, disabledReason = "needs the signals of kill")
@Tag("any-postgres")
@Tag("thorough")
class KilledWorkerTest {

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final RecordingListener events = new RecordingListener();

    @BeforeEach
    void createLedger() {
        WorkerProcess.createLedger(db);
    }

    @Test
    void jobsOfAKilledProcessRunElsewhereWithinThresholdSweepIntervalAndDelay() throws Exception {
        try (WorkerProcess process = WorkerProcess.start(db.schema(), "killed")) {
            Job job = add(60_000, JobSpec.builder().queueName("q").build());
            Job behind = add(
                    0,
                    JobSpec.builder().queueName("q").runIn(Duration.ofMillis(1)).build());
            awaitLedger("start", 1);
            startHere();

            process.kill();
            long killed = System.nanoTime();
            db.sql("update {schema}._private_jobs set payload = '0'").update();

            JobStarted started = events.await(JobStarted.class, e -> e.job().id() == job.id());
            Duration took = Duration.ofNanos(System.nanoTime() - killed);
            RecoverySettings recovery = WorkerProcess.recovery();
            Duration bound =
                    recovery.sweepThreshold().plus(recovery.sweepInterval()).plus(recovery.recoveryDelay());
            System.out.println("Recovered after " + took.toMillis() + " ms of at most " + bound.toMillis());
            assertThat(took).isLessThan(bound.multipliedBy(20));
            assertThat(started.job().attempts()).isEqualTo(1);
            events.await(JobCompleted.class, e -> e.job().id() == behind.id());
            assertThat(events.await(JobRecovered.class, 1)).hasSize(1);
        }
    }

    @Test
    void aProcessPausedForLongerThanTheThresholdChangesNothingWhenItComesBack() throws Exception {
        try (WorkerProcess process = WorkerProcess.start(db.schema(), "paused")) {
            // Fast jobs first, so that the next ones are claimed ahead of the handler.
            db.scheduler().addJobs(Collections.nCopies(400, JobRequest.of(WorkerProcess.NOTHING, 0)));
            Awaitility.await().until(() -> db.jobs() == 0);
            // Claimed in halves, they may start in another order than they were added.
            db.scheduler().addJobs(Collections.nCopies(21, JobRequest.of(WorkerProcess.SLEEP, 60_000)));
            awaitLedger("start", 1);
            Awaitility.await("jobs that wait for the handler")
                    .until(() -> db.sql("select count(*) from {schema}.jobs where locked_by is not null")
                                    .query(Integer.class)
                                    .single()
                            > 1);
            process.pause();
            long running =
                    db.sql("select job from {schema}.ledger").query(Long.class).single();
            String paused = db.sql("select locked_by from {schema}.jobs where id = ?")
                    .param(running)
                    .query(String.class)
                    .single();
            db.sql("update {schema}._private_jobs set payload = '0'").update();
            startHere();
            events.await(WorkersRecovered.class, e -> e.deadWorkerIds().contains(paused));
            events.await(JobCompleted.class, 21);

            process.resume();

            awaitLedger("interrupted", 1);
            Awaitility.await()
                    .until(() -> db.sql("select count(*) from {schema}._private_workers where id <> ?")
                                    .param(paused)
                                    .query(Integer.class)
                                    .single()
                            == 2);
            assertThat(db.sql("select what from {schema}.ledger where job = ? order by id")
                            .param(running)
                            .query(String.class)
                            .list())
                    .containsExactly("start", "start", "end", "interrupted");
            assertThat(db.sql("select count(*) from {schema}.ledger where what = 'start' and worker = ?")
                            .param(paused)
                            .query(Integer.class)
                            .single())
                    .as("jobs started by the paused process after those of the warm-up")
                    .isEqualTo(1);
            assertThat(db.jobs()).isZero();
        }
    }

    @Test
    void processesThatComeBackLeaveAloneWhatOthersRun() throws Exception {
        try (WorkerProcess one = WorkerProcess.start(db.schema(), "back-1");
                WorkerProcess other = WorkerProcess.start(db.schema(), "back-2")) {
            awaitWorkers(2);
            // Each process runs one job at a time: the first job is over when its process comes back, the second is
            // not.
            add(-2_500, JobSpec.builder().queueName("over").build());
            awaitLedger("start", 1);
            add(60_000, JobSpec.builder().queueName("going-on").build());
            awaitLedger("start", 2);
            add(0, JobSpec.builder().queueName("over").build());
            add(0, JobSpec.builder().queueName("going-on").build());
            one.pause();
            other.pause();
            CountDownLatch started = new CountDownLatch(2);
            CountDownLatch end = new CountDownLatch(1);
            Worker here = db.start(db.worker()
                    .settings(WorkerSettings.builder()
                            .concurrency(8)
                            .recovery(WorkerProcess.recovery())
                            .build())
                    .task(WorkerProcess.SLEEP, (millis, context) -> {
                        started.countDown();
                        end.await();
                    })
                    .listener(events));
            assertThat(started.await(120, TimeUnit.SECONDS)).isTrue();
            List<String> held = locks();
            // The jobs of the paused processes wait for the recovery delay: whoever takes them later is not to sleep.
            db.sql("update {schema}._private_jobs set payload = '0'").update();

            one.resume();
            other.resume();

            awaitLedger("interrupted", 1);
            // They start over when they have tried to write what became of their jobs.
            awaitWorkers(3);
            assertThat(held).hasSize(4).allMatch(lock -> lock.endsWith(" by " + here.id()));
            assertThat(locks()).isEqualTo(held);
            end.countDown();
            // The jobs behind may be run by any of the three.
            Awaitility.await().until(() -> db.jobs() == 0);
            assertThat(events.all(JobLost.class)).isEmpty();
        }
    }

    private void awaitWorkers(int count) {
        Awaitility.await()
                .until(() -> db.sql("select count(*) from {schema}._private_workers")
                                .query(Integer.class)
                                .single()
                        == count);
    }

    private List<String> locks() {
        return db.sql("""
                        select 'job ' || id || ', attempt ' || attempts || ' at ' || locked_at || ' by ' || locked_by
                        from {schema}._private_jobs where locked_at is not null
                        union all
                        select 'queue ' || queue_name || ' at ' || locked_at || ' by ' || locked_by
                        from {schema}._private_job_queues where locked_at is not null order by 1""").query(String.class).list();
    }

    private void startHere() {
        db.start(WorkerProcess.worker(db.dataSource(), db.schema()).listener(events));
        events.await(ListenerConnected.class);
    }

    private Job add(int millis, JobSpec spec) {
        return db.scheduler().addJob(WorkerProcess.SLEEP, millis, spec);
    }

    private void awaitLedger(String what, int count) {
        Awaitility.await()
                .pollInterval(Duration.ofMillis(10))
                .until(() -> db.sql("select count(*) from {schema}.ledger where what = ?")
                                .param(what)
                                .query(Integer.class)
                                .single()
                        >= count);
    }
}
