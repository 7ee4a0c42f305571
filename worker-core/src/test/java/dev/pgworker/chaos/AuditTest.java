package dev.pgworker.chaos;

import java.sql.Timestamp;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.UUID;

import com.zaxxer.hikari.HikariDataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.datasource.DriverManagerDataSource;

import dev.pgworker.chaos.ChaosJob.Kind;
import dev.pgworker.chaos.Faults.Fault;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

/** The audit of the chaos test sees each kind of violation in a ledger made up for it, and none where nothing is wrong. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@Tag("any-postgres")
class AuditTest {

    private static final Instant BEGIN = Instant.parse("2026-01-01T00:00:00Z");

    /** The number of the process of Node.js. */
    private static final int NODE = 9;

    private final String database = TestSchema.uniqueName().name();
    private final JdbcClient admin = JdbcClient.create(new DriverManagerDataSource(TestPostgres.jdbcUrl()));
    private final List<Fault> faults = new ArrayList<>();
    private HikariDataSource pool;
    private Ledger ledger;

    @BeforeAll
    void createLedger() {
        admin.sql("create database " + database).update();
        pool = new HikariDataSource(
                TestSchema.poolConfig(TestPostgres.jdbcUrl().replaceFirst("/[^/?]*(\\?|$)", "/" + database + "$1"), 2));
        new SchemaMigrator(pool, WorkerSchema.DEFAULT).migrate();
        ledger = new Ledger(pool);
        ledger.create();
    }

    @AfterAll
    void dropLedger() {
        pool.close();
        admin.sql("drop database " + database).update();
    }

    @BeforeEach
    void empty() {
        faults.clear();
        sql("truncate chaos.added, chaos.run, chaos.effect, chaos.lost, chaos.lost_job, chaos.found_dead");
        sql(
                "truncate graphile_worker._private_jobs, graphile_worker._private_job_queues, graphile_worker._private_workers");
    }

    // Nothing is lost.

    @Test
    void jobsThatWereDoneAreFine() {
        add(1);
        run(1).done();
        add(2, Kind.FAILS_ONCE);
        run(2).at(1, 2).how("failed");
        run(2).at(3, 4).attempt(2).done();
        add(3, Kind.TRANSACTIONAL);
        run(3).done();
        effect(3);

        assertThat(problems()).isEmpty();
    }

    @Test
    void aJobThatNeverRanIsLost() {
        add(1);

        assertThat(problems()).singleElement().asString().startsWith("lost: Added[n=1");
    }

    @Test
    void aJobWhoseRunsDidNotGetDoneIsLost() {
        add(1);
        kill(1, 3);
        run(1).at(1, 2).unknownEnd();

        assertThat(problems()).singleElement().asString().startsWith("lost: Added[n=1");
    }

    @Test
    void aJobThatALaterOneWithItsKeyReplacedIsNotLostButTheLaterOneIs() {
        add(1, Kind.KEYED, null, "k");
        add(2, Kind.KEYED, null, "k");
        run(1).done();
        run(2).at(3, 4).how("failed");

        assertThat(problems()).singleElement().asString().startsWith("lost: Added[n=2");
    }

    @Test
    void aRunOfAJobThatWasNotCommittedIsSeen() {
        run(1).done();

        assertThat(problems()).anyMatch(p -> p.startsWith("run without having been committed: Run["));
    }

    // Nothing is left.

    @Test
    void aJobLeftLockedIsSeen() {
        add(1);
        run(1).done();
        left(1, "w1", 1, 1, "failed");

        assertThat(problems()).singleElement().asString().startsWith("left, but neither done nor failed: Left[");
    }

    @Test
    void aJobLeftWaitingIsSeen() {
        add(1);
        run(1).done();
        left(1, null, 1, 25, "failed");

        assertThat(problems()).singleElement().asString().startsWith("left, but neither done nor failed: Left[");
    }

    @Test
    void aJobThatFailedForGoodWithoutATextIsSeen() {
        add(1, Kind.TRANSACTIONAL);
        run(1).how("failed");
        left(1, null, 25, 25, null);

        assertThat(problems()).singleElement().asString().startsWith("left, but neither done nor failed: Left[");
    }

    @Test
    void aJobThatHadNoReasonToFailForGoodIsSeen() {
        add(1);
        run(1).how("failed");
        left(1, null, 25, 25, "failed");

        assertThat(problems()).singleElement().asString().startsWith("failed without a reason: Left[");
    }

    @Test
    void aTransactionMayFailForGoodAndSoMayAReplacedJob() {
        add(1, Kind.TRANSACTIONAL);
        run(1).how("failed");
        left(1, null, 25, 25, "failed");
        add(2, Kind.KEYED, null, "k");
        add(3, Kind.KEYED, null, "k");
        run(3).done();
        left(2, null, 25, 25, "superseded");

        assertThat(problems()).isEmpty();
    }

    @Test
    void aQueueLeftLockedIsSeen() {
        sql(
                "insert into graphile_worker._private_job_queues (queue_name, locked_at, locked_by) values ('q', now(), 'w1')");

        assertThat(problems()).containsExactly("queue left locked: q by w1");
    }

    @Test
    void aWorkerLeftRegisteredIsSeen() {
        sql("insert into graphile_worker._private_workers (id, last_heartbeat_at) values ('w1', now())");

        assertThat(problems()).containsExactly("worker left registered: w1");
    }

    // Effects.

    @Test
    void aMissingEffectIsSeen() {
        add(1, Kind.TRANSACTIONAL);
        run(1).done();

        assertThat(problems()).singleElement().asString().startsWith("0 transactional effects instead of 1: ");
    }

    @Test
    void anEffectTwiceIsSeen() {
        add(1, Kind.TRANSACTIONAL);
        run(1).done();
        effect(1);
        effect(1);

        assertThat(problems()).singleElement().asString().startsWith("2 transactional effects instead of 1: ");
    }

    @Test
    void theEffectOfATransactionThatFailedForGoodIsSeen() {
        add(1, Kind.TRANSACTIONAL);
        run(1).how("failed");
        left(1, null, 25, 25, "failed");
        effect(1);

        assertThat(problems()).singleElement().asString().startsWith("1 transactional effects instead of 0: ");
    }

    // Queues.

    @Test
    void anOverlapInAQueueIsSeen() {
        add(1, Kind.QUEUED, "q", null);
        add(2, Kind.QUEUED, "q", null);
        run(1).at(1, 3).done();
        run(2).at(2, 4).process(2).done();

        assertThat(problems()).singleElement().asString().startsWith("overlap in a queue: Run[");
    }

    @Test
    void runsOfTwoQueuesAndRunsWithoutAQueueMayOverlap() {
        add(1, Kind.QUEUED, "q", null);
        add(2, Kind.QUEUED, "r", null);
        add(3);
        add(4);
        run(1).at(1, 3).done();
        run(2).at(2, 4).done();
        run(3).at(1, 3).done();
        run(4).at(2, 4).done();

        assertThat(problems()).isEmpty();
    }

    @Test
    void aRunThatItsProcessWasAboutToBeginWhenItWasPausedMayOverlap() {
        add(1, Kind.QUEUED, "q", null);
        run(1).at(6, 8).process(2).token("1-1-5").done();
        run(1).at(7.1, 7.2).token("1-1-4").how("interrupted");
        lost("w1");
        fault(Faults.Kind.PAUSE, 1, 2, 7);

        assertThat(problems()).isEmpty();

        faults.clear();
        fault(Faults.Kind.PAUSE, 1, 2, 6);
        assertThat(problems()).anyMatch(p -> p.startsWith("overlap in a queue: Run["));
    }

    @Test
    void aRunThatAPausedProcessBeginsJustBeforeAnotherMayOverlapForAMoment() {
        add(1, Kind.QUEUED, "q", null);
        add(2, Kind.QUEUED, "q", null);
        run(1).at(7.1, 7.3).token("1-1-4").how("interrupted");
        run(2).at(7.2, 8).process(2).token("2-1-6").done();
        run(1).at(9, 10).process(2).token("1-1-9").done();
        lost("w1");
        fault(Faults.Kind.PAUSE, 1, 2, 7);

        assertThat(problems()).isEmpty();

        sql(
                "update chaos.run set started_at = started_at + interval '1 second', ended_at = ended_at + interval '1 second' where process = 2");
        sql("update chaos.run set ended_at = ended_at + interval '2 seconds' where process = 1");
        assertThat(problems()).anyMatch(p -> p.startsWith("overlap in a queue: Run["));
    }

    @Test
    void aTransactionThatWaitsForAConnectionWithoutAnswerMayOverlapButNotBeDone() {
        add(1, Kind.TRANSACTIONAL, "q", null);
        add(2, Kind.QUEUED, "q", null);
        run(1).at(1, 7).how("failed");
        run(2).at(6, 8).process(2).done();
        run(1).at(9, 10).process(2).done();
        effect(1);
        fault(Faults.Kind.HALF_OPEN, 1, 0.5, 7);

        assertThat(problems()).isEmpty();

        sql("update chaos.run set done = true, how = 'done' where n = 1");
        assertThat(problems()).singleElement().asString().startsWith("overlap in a queue: Run[");
    }

    @Test
    void onlyAPauseOfTheFirstProcessDuringItsRunExplainsAnOverlap() {
        add(1, Kind.QUEUED, "q", null);
        add(2, Kind.QUEUED, "q", null);
        run(1).at(1, 8).done();
        run(2).at(7, 9).process(2).done();
        fault(Faults.Kind.PAUSE, 2, 7.5, 12);
        fault(Faults.Kind.PAUSE, 1, 8.5, 12);
        fault(Faults.Kind.CRASH_DATABASE, Fault.ALL, 2, 7.5);

        assertThat(problems()).singleElement().asString().startsWith("overlap in a queue: Run[");

        fault(Faults.Kind.PAUSE, 1, 2, 7.5);
        assertThat(problems()).isEmpty();
    }

    @Test
    void anotherOrderThanThatOfTheAddsIsSeen() {
        add(1, Kind.QUEUED, "q", null);
        add(2, Kind.QUEUED, "q", null);
        run(2).at(1, 2).done();
        run(1).at(3, 4).done();

        assertThat(problems()).singleElement().asString().startsWith("out of order in a queue: Run[");
    }

    @Test
    void aJobThatWasRetriedOrRecoveredHasLostItsPlace() {
        add(1, Kind.QUEUED, "q", null);
        add(2, Kind.QUEUED, "q", null);
        add(3, Kind.FAILS_ONCE, "q", null);
        run(3).at(0.1, 0.2).how("failed");
        run(2).at(1, 2).done();
        run(3).at(2, 3).attempt(2).done();
        run(1).at(3, 4).recoveries(1).done();

        assertThat(problems()).isEmpty();
    }

    // Repetitions.

    @Test
    void aRepetitionOfADoneJobIsSeen() {
        add(1);
        run(1).at(1, 2).done();
        run(1).at(3, 4).process(2).done();

        assertThat(problems()).singleElement().asString().startsWith("repeated without a reason: Run[");
    }

    @Test
    void theFaultsOfOthersAndOfOtherTimesDoNotExplainARepetition() {
        add(1);
        lost("w1");
        kill(2, 1.5);
        fault(Faults.Kind.PAUSE, 2, 0, 6);
        kill(1, 0.5);
        kill(1, 20);
        fault(Faults.Kind.CRASH_DATABASE, Fault.ALL, 21, 22);
        run(1).at(1, 2).done();
        run(1).at(12, 13).process(2).done();

        assertThat(problems()).singleElement().asString().startsWith("repeated without a reason: Run[");
    }

    @Test
    void aKillDuringARunOrJustAfterItExplainsARepetition() {
        add(1);
        run(1).at(1, 2).unknownEnd();
        run(1).at(6, 7).process(2).done();
        add(2);
        run(2).at(0.5, 1).done();
        run(2).at(6, 7).process(2).done();
        kill(1, 1.5);

        assertThat(problems()).isEmpty();
    }

    @Test
    void aKillJustBeforeTheServerWroteTheRowOfARunExplainsARepetitionIfTheRunNeverEnded() {
        add(1);
        run(1).at(1.3, 2).unknownEnd();
        run(1).at(6, 7).process(2).done();
        kill(1, 1.2);

        assertThat(problems()).isEmpty();

        sql("update chaos.run set started_at = started_at + interval '4 s' where how is null");
        assertThat(problems()).singleElement().asString().startsWith("repeated without a reason: Run[");
    }

    @Test
    void aKillLongAfterARunExplainsARepetitionOnlyIfTheOutcomeCouldNotBeWrittenUntilThen() {
        add(1);
        run(1).at(1, 2).done();
        run(1).at(12, 13).process(2).done();
        kill(1, 8);

        assertThat(problems()).singleElement().asString().startsWith("repeated without a reason: Run[");

        fault(Faults.Kind.HALF_OPEN, 1, 1.5, 7.5);
        assertThat(problems()).isEmpty();
    }

    @Test
    void aKillAfterTheRepetitionHadBegunExplainsAnUnknownEndIfAnotherFaultExplainsTheRepetition() {
        add(1);
        run(1).at(1, 2).unknownEnd();
        run(1).at(6, 7).process(2).done();
        kill(1, 8);

        assertThat(problems()).singleElement().asString().startsWith("repeated without a reason: Run[");

        fault(Faults.Kind.PAUSE, 1, 1, 7.5);
        assertThat(problems()).isEmpty();
    }

    @Test
    void anUnknownEndIsExplainedByNothingButAKill() {
        add(1);
        run(1).at(1, 2).unknownEnd();
        run(1).at(6, 7).process(2).done();
        fault(Faults.Kind.CRASH_DATABASE, Fault.ALL, 1, 3);

        assertThat(problems()).singleElement().asString().startsWith("repeated without a reason: Run[");
    }

    @Test
    void aDoneRunOfAWorkerThatStartedOverIsExplainedByAFaultAndTheWorkersKnowledge() {
        add(1);
        run(1).at(1, 6).done();
        run(1).at(5, 7).process(2).done();
        fault(Faults.Kind.PAUSE, 1, 1, 5.5);

        assertThat(problems())
                .as("the worker does not know")
                .singleElement()
                .asString()
                .startsWith("repeated without");

        lost("w1");
        assertThat(problems()).isEmpty();

        faults.clear();
        assertThat(problems()).as("no fault").singleElement().asString().startsWith("repeated without a reason: Run[");
    }

    @Test
    void aWorkerThatStartedOverDoesNotRunAJobTwiceItself() {
        add(1);
        run(1).at(1, 2).done();
        run(1).at(3, 4).done();
        fault(Faults.Kind.PAUSE, 1, 1, 5.5);
        lost("w1");

        assertThat(problems()).singleElement().asString().startsWith("repeated without a reason: Run[");
    }

    @Test
    void anInterruptedRunIsExplainedByTheLossOfItsWorkerOnly() {
        add(1);
        run(1).at(1, 6).how("interrupted");
        run(1).at(5, 7).process(2).done();
        fault(Faults.Kind.PAUSE, 1, 1, 5.5);

        assertThat(problems()).singleElement().asString().startsWith("repeated without a reason: Run[");

        lost("w1");
        assertThat(problems()).isEmpty();
    }

    @Test
    void aRunThatCouldNotWriteItsLedgerNeedsAFault() {
        add(1);
        run(1).at(1, 2).how("snoozed");
        run(1).at(3, 4).done();

        assertThat(problems()).singleElement().asString().startsWith("repeated without a reason: Run[");

        fault(Faults.Kind.END_SESSIONS, Fault.ALL, 1.5, 1.6);
        assertThat(problems()).isEmpty();
    }

    @Test
    void onlyHandlersThatFailMayFailAndOnlyOnce() {
        add(1);
        run(1).at(1, 2).how("failed");
        run(1).at(3, 4).attempt(2).done();
        add(2, Kind.FAILS_ONCE);
        run(2).at(1, 2).how("failed");
        run(2).at(3, 4).attempt(2).how("failed");
        run(2).at(5, 6).attempt(2).done();

        assertThat(problems())
                .filteredOn(p -> p.startsWith("repeated without a reason: Run["))
                .hasSize(2);
    }

    @Test
    void aTransactionMayBeRolledBackByAFaultOnly() {
        add(1, Kind.TRANSACTIONAL);
        run(1).at(1, 2).done();
        run(1).at(3, 4).attempt(2).done();
        effect(1);

        assertThat(problems()).singleElement().asString().startsWith("repeated without a reason: Run[");

        fault(Faults.Kind.CUT, 1, 1.5, 2.5);
        assertThat(problems()).isEmpty();
    }

    // Tokens, attempts, ownership, time.

    @Test
    void aTokenGivenTwiceIsSeen() {
        add(1);
        run(1).at(1, 2).token("1-1-5").unknownEnd();
        run(1).at(6, 7).token("1-1-5").process(2).done();
        kill(1, 1.5);

        assertThat(problems()).singleElement().asString().startsWith("fencing token not greater than the last one");
    }

    @Test
    void aTokenOfALaterRunThatIsNotGreaterIsSeen() {
        add(1);
        run(1).at(1, 2).token("1-1-10").unknownEnd();
        run(1).at(6, 7).token("1-1-9").process(2).done();
        kill(1, 1.5);

        assertThat(problems()).anyMatch(p -> p.startsWith("fencing token not greater than the last one"));
    }

    @Test
    void anAttemptThatARecoveryShouldNotHaveCostIsSeen() {
        add(1);
        run(1).at(1, 2).unknownEnd();
        run(1).at(6, 7).process(2).attempt(2).recoveries(1).done();
        kill(1, 1.5);

        assertThat(problems()).singleElement().asString().startsWith("attempt 2 of at most 1: Run[");
    }

    @Test
    void recoveriesBeyondTheMostThatAreFreeCostAttempts() {
        add(1);
        run(1).at(1, 2).attempt(3).recoveries(ChaosWorker.MAX_RECOVERIES + 2).done();

        assertThat(problems()).isEmpty();
    }

    @Test
    void aDirectBatchThatBreaksLosesJobsThatRunOn() {
        add(1, Kind.DIRECT);
        run(1).at(1, 4).done();
        lostJob("w1", 1, 1, 4);

        assertThat(problems()).singleElement().asString().startsWith("job taken from a living worker: LostJob[");

        fault(Faults.Kind.CUT, 1, 1.5, 1.6);
        assertThat(problems()).as("its connection was cut while it ran").isEmpty();
    }

    @Test
    void aJobTakenFromAWorkerThatLivesIsSeen() {
        add(1);
        run(1).at(1, 2).done();
        lostJob("w1", 1, 1, 2);
        fault(Faults.Kind.PAUSE, 1, 1, 2);
        fault(Faults.Kind.CUT, 2, 1, 2);

        assertThat(problems()).singleElement().asString().startsWith("job taken from a living worker: LostJob[");

        lost("w1");
        assertThat(problems()).as("it knows to have been declared dead").isEmpty();
    }

    @Test
    void anOutcomeMayBeWrittenTwiceByAWorkerWhoseConnectionBroke() {
        add(1);
        run(1).at(1, 2).done();
        lostJob("w1", 1, 1, 2.5);
        fault(Faults.Kind.CUT, 1, 2, 2.1);

        assertThat(problems()).isEmpty();
    }

    @Test
    void aRecoveryThatTookTooLongIsSeenWhereNothingHinderedIt() {
        add(1);
        run(1).at(1, 2).unknownEnd();
        run(1).at(43, 44).process(2).done();
        add(2);
        run(2).at(0, 0.5).process(2).done();
        kill(1, 1.5);
        foundDead("w1", 42);

        assertThat(problems()).singleElement().asString().startsWith("a killed process was found dead after PT40.5S");

        fault(Faults.Kind.PAUSE, 2, 2, 41);
        assertThat(problems()).as("the only other worker was paused").isEmpty();

        faults.remove(faults.size() - 1);
        fault(Faults.Kind.CRASH_DATABASE, Fault.ALL, 2, 3);
        assertThat(problems()).as("the database was away").isEmpty();
    }

    @Test
    void aProcessThatIsGoneAndNodeFindNobodyDead() {
        add(1);
        run(1).at(21, 22).unknownEnd();
        run(1).at(33, 34).process(2).done();
        add(2);
        run(2).at(0, 0.5).process(2).done();
        add(3);
        run(3).at(0, 0.5).process(3).done();
        add(4);
        run(4).at(0, 0.5).process(NODE).done();
        kill(3, 1);
        kill(1, 21.5);
        fault(Faults.Kind.PAUSE, 2, 22, 31);
        foundDead("w1", 32);

        assertThat(problems()).isEmpty();
    }

    @Test
    void aRecoveryInTimeIsFine() {
        add(1);
        run(1).at(1, 2).unknownEnd();
        run(1).at(7, 8).process(2).done();
        add(2);
        run(2).at(0, 0.5).process(2).done();
        kill(1, 1.5);
        foundDead("w1", 6.4);

        assertThat(problems()).isEmpty();
    }

    // Node.js.

    @Test
    void whatNodeLeavesLockedWhenTheDatabaseGoesAwayRunsAgainAtTheCostOfAnAttempt() {
        add(1);
        run(1).at(1, 2).process(NODE).done();
        run(1).at(9, 10).attempt(2).done();
        kill(NODE, 8);

        assertThat(problems()).singleElement().asString().startsWith("repeated without a reason: Run[");

        fault(Faults.Kind.CRASH_DATABASE, Fault.ALL, 2, 3);
        assertThat(problems()).isEmpty();
    }

    @Test
    void nodeMayTakeJobsOfAQueueInAnotherOrderButNotAtTheSameTime() {
        add(1, Kind.QUEUED, "q", null);
        add(2, Kind.QUEUED, "q", null);
        run(2).at(1, 2).process(NODE).done();
        run(1).at(3, 4).done();

        assertThat(problems()).isEmpty();

        add(3, Kind.QUEUED, "q", null);
        run(3).at(3.5, 5).process(NODE).done();
        assertThat(problems()).singleElement().asString().startsWith("overlap in a queue: Run[");
    }

    @Test
    void aJobOfNodeMayBeginAgainOnlyInAProcessThatClaimedItBeforeAndWasPaused() {
        add(1);
        add(2);
        run(1).at(7, 7.5).process(NODE).done();
        run(1).at(8, 8.1).token("1-1-" + micros(1)).done();
        run(2).at(7, 7.5).process(NODE).done();
        run(2).at(8, 8.1).token("2-1-" + micros(7.6)).done();

        assertThat(problems()).hasSize(2).allMatch(p -> p.startsWith("repeated without a reason: Run["));

        fault(Faults.Kind.PAUSE, 1, 2, 7.9);
        assertThat(problems()).singleElement().asString().contains("token=2-1-");
    }

    private static long micros(double seconds) {
        return ChronoUnit.MICROS.between(Instant.EPOCH, instant(seconds));
    }

    private List<String> problems() {
        return new Audit(ledger, faults, Set.of(NODE)).problems();
    }

    private void add(int n) {
        add(n, Kind.PLAIN);
    }

    private void add(int n, Kind kind) {
        add(n, kind, null, null);
    }

    private void add(int n, Kind kind, String queue, String key) {
        ledger.sql()
                .sql("insert into chaos.added values (?, ?, ?, ?, ?, ?)")
                .params(n, kind.name(), queue, key, n, timestamp(0))
                .update();
    }

    private ForgedRun run(int n) {
        return new ForgedRun(n);
    }

    private void left(int n, String lockedBy, int attempts, int maxAttempts, String lastError) {
        ledger.sql()
                .sql("""
                        insert into graphile_worker._private_jobs
                          (task_id, payload, locked_by, locked_at, attempts, max_attempts, last_error)
                        values (1, json_build_object('n', ?::int), ?::text, case when ?::text is not null then now() end, ?, ?, ?)""")
                .params(n, lockedBy, lockedBy, attempts, maxAttempts, lastError)
                .update();
    }

    private void effect(int n) {
        ledger.sql().sql("insert into chaos.effect values (?)").param(n).update();
    }

    private void lost(String worker) {
        ledger.sql()
                .sql("insert into chaos.lost values (?, 'forged')")
                .param(worker)
                .update();
    }

    private void lostJob(String worker, int process, long job, double at) {
        ledger.sql()
                .sql("insert into chaos.lost_job values (?, ?, ?, ?)")
                .params(worker, process, job, timestamp(at))
                .update();
    }

    private void foundDead(String worker, double at) {
        ledger.sql()
                .sql("insert into chaos.found_dead values (?, ?)")
                .params(worker, timestamp(at))
                .update();
    }

    private void kill(int process, double at) {
        fault(Faults.Kind.KILL, process, at, at);
    }

    private void fault(Faults.Kind kind, int process, double from, double to) {
        faults.add(new Fault(kind, process, instant(from), instant(to)));
    }

    private void sql(String statement) {
        ledger.sql().sql(statement).update();
    }

    private static Timestamp timestamp(double seconds) {
        return Timestamp.from(instant(seconds));
    }

    private static Instant instant(double seconds) {
        return BEGIN.plusMillis(Math.round(seconds * 1_000));
    }

    /** A run to be written when its end is given; of process 1 and its worker w1, first attempt, from second 1 to 2. */
    private final class ForgedRun {

        private final int n;
        private int process = 1;
        private int attempt = 1;
        private int recoveries;
        private double from = 1;
        private double to = 2;
        private String token;

        private ForgedRun(int n) {
            this.n = n;
        }

        ForgedRun at(double from, double to) {
            this.from = from;
            this.to = to;
            return this;
        }

        ForgedRun process(int process) {
            this.process = process;
            return this;
        }

        ForgedRun attempt(int attempt) {
            this.attempt = attempt;
            return this;
        }

        ForgedRun recoveries(int recoveries) {
            this.recoveries = recoveries;
            return this;
        }

        ForgedRun token(String token) {
            this.token = token;
            return this;
        }

        void done() {
            how("done");
        }

        void unknownEnd() {
            how(null);
        }

        void how(String how) {
            String time = Long.toString(Math.round(from * 1_000));
            ledger.sql()
                    .sql("""
                            insert into chaos.run (id, token, n, job, queue, worker, process, attempt, recoveries, run_at,
                              started_at, done, ended_at, how)
                            values (?, ?, ?, ?, (select queue from chaos.added where n = ?), ?, ?, ?, ?, ?, ?, ?, ?, ?)""")
                    .params(
                            UUID.randomUUID(),
                            token == null ? n + "-" + attempt + "-" + time : token,
                            n,
                            n,
                            n,
                            "w" + process,
                            process,
                            attempt,
                            recoveries,
                            timestamp(0),
                            timestamp(from),
                            "done".equals(how),
                            how == null ? null : timestamp(to),
                            how)
                    .update();
        }
    }
}
