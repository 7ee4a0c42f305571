package dev.pgworker.internal.recovery;

import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Locale;
import java.util.Map;

import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import io.micrometer.observation.ObservationRegistry;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.slf4j.LoggerFactory;

import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.lifecycle.Lease;
import dev.pgworker.internal.lifecycle.PeriodicTasks;
import dev.pgworker.internal.store.Claim;
import dev.pgworker.internal.store.JobStore;
import dev.pgworker.internal.store.RenewedLocks.RowLock;
import dev.pgworker.internal.store.SweepStore;
import dev.pgworker.internal.store.WorkerStore;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobSpec;
import dev.pgworker.recovery.RecoverySettings;
import dev.pgworker.testing.ClaimSql;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** Locks of more than four hours. */
class OldLocksTest {

    @RegisterExtension
    final TestSchema db = new TestSchema();

    @ParameterizedTest
    @CsvSource({
        "gone, 5 hours, , true",
        "gone, 3 hours, , false",
        "pool-1, 5 hours, , true",
        "alive, 5 hours, 1 minute, false",
        "stale, 5 hours, 2 hours, true"
    })
    void areReleasedUnlessTheirWorkerLives(String worker, String age, String heartbeat, boolean released)
            throws Exception {
        Job job = db.scheduler()
                .addJob("work", 1, JobSpec.builder().queueName("q").build());
        lock(worker, age);
        if (heartbeat != null) {
            db.sql("insert into {schema}._private_workers (id, last_heartbeat_at) values (?, now() - ?::interval)")
                    .params(worker, heartbeat)
                    .update();
        }

        assertThat(workers().releaseOldLocks().released()).isEqualTo(released ? 1 : 0);

        assertThat(row(job)).containsEntry("attempts", 1).containsEntry("locked_by", released ? null : worker);
        assertThat(db.sql("select coalesce(locked_by, 'nobody') from {schema}._private_job_queues")
                        .query(String.class)
                        .single())
                .isEqualTo(released ? "nobody" : worker);
    }

    @Test
    void theLastAttemptAndASupersededJobSayWhatHappened() throws Exception {
        Job last = db.scheduler()
                .addJob("work", 1, JobSpec.builder().maxAttempts(1).build());
        JobSpec keyed = JobSpec.builder().jobKey("k").build();
        Job superseded = db.scheduler().addJob("work", 2, keyed);
        lock("gone", "3 hours");
        db.scheduler().addJob("work", 3, keyed);
        age("gone", "5 hours");

        assertThat(workers().releaseOldLocks().released()).isEqualTo(2);

        assertThat(row(last)).containsEntry("last_error", "Job unlocked during its last attempt");
        assertThat(row(superseded))
                .containsEntry("attempts", 25)
                .containsEntry(
                        "last_error", "Superseded by a newer job with the same key while running; its worker died");
    }

    @Test
    void aWorkerRenewsTheLocksOfItsLongJobsAndTheirQueues() throws Exception {
        Job held = db.scheduler()
                .addJob("work", 1, JobSpec.builder().queueName("q").build());
        lock("me", "5 hours");
        Job other = db.scheduler().addJob("work", 2);
        lock("other", "5 hours");
        Claim mine = claim(held);
        Claim theirs = claim(other);

        new JobStore(db.dataSource(), db.schema(), "me")
                .holdings()
                .renew(
                        List.of(mine, theirs),
                        claim -> new RowLock(claim.lockedAt(), claim.lockedAt().plus(Duration.ofHours(5))));

        assertThat(workers().releaseOldLocks().released()).isEqualTo(1);
        assertThat(row(held)).containsEntry("locked_by", "me");
        assertThat(row(other)).containsEntry("locked_by", null);
        assertThat(db.sql("select locked_at > now() - interval '1 minute' from {schema}._private_job_queues")
                        .query(Boolean.class)
                        .single())
                .isTrue();
    }

    @ParameterizedTest
    @CsvSource({
        "pool-1, , pool-1",
        "otpool-1, , otpool-1",
        "rusty, '{\"pid\": 7}', rusty",
        "ours, '{\"heartbeatIntervalMillis\": 1000}', ",
        "unknown, , "
    })
    void aWorkerOfNodeOrRustIsToldWhereTheIndexThatItFetchesWithIsMissing(String worker, String metadata, String told)
            throws Exception {
        db.scheduler().addJob("work", 1);
        lock(worker, "1 second");
        if (metadata != null) {
            db.sql(
                            "insert into {schema}._private_workers (id, last_heartbeat_at, metadata) values (?, now(), ?::jsonb)")
                    .params(worker, metadata)
                    .update();
        }
        assertThat(workers().releaseOldLocks().unindexedPeer()).isEqualTo(told);

        db.sql(workers().peerIndex()).update();
        assertThat(workers().releaseOldLocks().unindexedPeer()).isNull();
    }

    @Test
    void theSweepNamesTheStatementThatMakesTheIndex() throws Exception {
        db.scheduler().addJob("work", 1);
        lock("pool-1", "1 second");
        Logger logger = (Logger) LoggerFactory.getLogger(OldLocks.class);
        ListAppender<ILoggingEvent> log = new ListAppender<>();
        log.start();
        logger.addAppender(log);
        Sweep sweep = sweep();
        PeriodicTasks tasks = new PeriodicTasks("test", ObservationRegistry.NOOP);
        try {
            tasks.start(sweep);
            Awaitility.await().until(() -> !log.list.isEmpty());
        } finally {
            tasks.stop(Duration.ofSeconds(20));
            logger.detachAppender(log);
        }
        assertThat(log.list.get(0).getFormattedMessage())
                .contains(
                        "pool-1",
                        "pgworker.schema.peer-indexes=always",
                        workers().peerIndex());
    }

    private Claim claim(Job job) {
        return db.sql("select locked_at from {schema}._private_jobs where id = ?")
                .param(job.id())
                .query((row, number) -> new Claim(
                        job.id(), row.getObject(1, OffsetDateTime.class).toInstant()))
                .single();
    }

    @Test
    void theSweepReleasesThoughRecoveryIsDisabledAndItsStopWaitsForThat() throws Exception {
        Job job = db.scheduler()
                .addJob("work", 2, JobSpec.builder().queueName("q").build());
        lock("gone", "5 hours");
        Sweep sweep = sweep();
        PeriodicTasks tasks = new PeriodicTasks("test", ObservationRegistry.NOOP);
        try (var connection = db.dataSource().getConnection()) {
            connection.setAutoCommit(false);
            try (var statement = connection.createStatement()) {
                statement.execute(db.schema().in("lock table {schema}._private_jobs in exclusive mode"));
            }
            tasks.start(sweep);
            Awaitility.await()
                    .until(() -> db.sql("""
                            select count(*) from pg_stat_activity
                            where wait_event_type = 'Lock' and query like '%' || ? || '%pgworker_release_old_locks%'""")
                                    .param(db.schema().name())
                                    .query(Integer.class)
                                    .single()
                            == 1);

            Thread stop = new Thread(() -> sweep.stop(Duration.ofSeconds(20)));
            stop.start();
            Awaitility.await().until(() -> stop.getState() == Thread.State.TIMED_WAITING);
            assertThat(row(job)).containsEntry("locked_by", "gone");
            connection.rollback();
            stop.join();
        } finally {
            tasks.stop(Duration.ofSeconds(20));
        }

        assertThat(row(job)).containsEntry("locked_by", null);
    }

    /** The job of a worker that lives is its own however old the lock: administration and adds under its key go around it. */
    @ParameterizedTest
    @CsvSource({"alive, 1 minute, true", "stale, 2 hours, false"})
    void protectTheirJobsAsLongAsTheirWorkerLives(String worker, String heartbeat, boolean is) {
        JobSpec keyed = JobSpec.builder().jobKey("k").build();
        Job job = db.scheduler().addJob("work", 1, keyed);
        lock(worker, "5 hours");
        db.sql("insert into {schema}._private_workers (id, last_heartbeat_at) values (?, now() - ?::interval)")
                .params(worker, heartbeat)
                .update();

        assertThat(changed("reschedule_jobs(array[%s], now(), attempts => 1)", job))
                .isEqualTo(is ? 0 : 1);
        assertThat(changed("permanently_fail_jobs(array[%s], 'test')", job)).isEqualTo(is ? 0 : 1);
        assertThat(changed("complete_jobs(array[%s])", job)).isEqualTo(is ? 0 : 1);
        assertThat(db.jobs()).isEqualTo(is ? 1 : 0);
        if (is) {
            db.sql("select {schema}.remove_job('k')").query().listOfRows();
            assertThat(row(job)).containsEntry("locked_by", worker).containsEntry("attempts", 25);
        }
    }

    private int changed(String call, Job job) {
        return db.sql("select count(*) from {schema}." + String.format(Locale.ROOT, call, job.id()))
                .query(Integer.class)
                .single();
    }

    private Sweep sweep() {
        return new Sweep(
                "me",
                RecoverySettings.DEFAULT,
                new SweepStore(db.dataSource(), db.schema(), List.of()),
                new OldLocks(workers(), Duration.ZERO),
                new Lease(Duration.ofMinutes(5), Duration.ofMinutes(5)),
                new WorkerEvents("w", List.of(), List.of()),
                new Outage());
    }

    private WorkerStore workers() {
        return new WorkerStore(db.dataSource(), db.schema());
    }

    private void lock(String worker, String age) {
        db.sql("select count(*) from " + ClaimSql.claim("?", "50") + " c")
                .param(worker)
                .query(Integer.class)
                .single();
        age(worker, age);
    }

    private void age(String worker, String age) {
        db.sql("update {schema}._private_jobs set locked_at = now() - ?::interval where locked_by = ?")
                .params(age, worker)
                .update();
        db.sql("update {schema}._private_job_queues set locked_at = now() - ?::interval where locked_by = ?")
                .params(age, worker)
                .update();
    }

    private Map<String, Object> row(Job job) {
        return db.sql("select attempts, last_error, locked_by from {schema}.jobs where id = ?")
                .param(job.id())
                .query()
                .singleRow();
    }
}
