package dev.pgworker.chaos;

import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.stream.Collectors;

import com.zaxxer.hikari.HikariDataSource;
import org.awaitility.Awaitility;
import org.awaitility.core.ConditionTimeoutException;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.DisabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.springframework.dao.DataAccessException;

import dev.pgworker.chaos.Ledger.Left;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Worker processes that are killed, paused and cut off while they work, on a server that crashes. What must hold then is
 * checked against a ledger of all that was added and run. Minutes, workers and seed can be given: see
 * docs/fault-tests.md.
 */
@DisabledOnOs(value = OS.WINDOWS, disabledReason = "needs the signals of kill")
@Tag("any-postgres")
@Tag("thorough")
class ChaosTest {

    private static final Duration SHORT = Duration.ofSeconds(8);
    private static final Duration DRAIN = Duration.ofMinutes(2);

    private final long seed = Long.getLong("chaos.seed", new Random().nextLong());
    private final int workers = Integer.getInteger("chaos.workers", 3);
    private final String nodeFolder = System.getProperty("chaos.node-dir");
    private final String minutes = System.getProperty("chaos.minutes");
    private final Duration time = minutes == null ? SHORT : Duration.ofMinutes(Integer.parseInt(minutes));

    @Test
    void nothingIsLostOrDoneTwiceWithoutAReasonAndQueuesNeverOverlap() throws Exception {
        assertThat(workers).as("chaos.workers").isGreaterThanOrEqualTo(2);
        String repeat = "-Dchaos.seed=" + seed + " -Dchaos.workers=" + workers;
        System.out.println("Chaos for " + time.toSeconds() + " s: " + repeat);
        try (ChaosDatabase database = new ChaosDatabase();
                HikariDataSource pool = ChaosWorker.pool(Fleet.url(database.port()), 5)) {
            new SchemaMigrator(pool, WorkerSchema.DEFAULT).migrate();
            Ledger ledger = new Ledger(pool);
            ledger.create();
            try (Fleet fleet = new Fleet(database, "chaos-" + Long.toHexString(seed) + "-", workers, nodeFolder);
                    Faults faults = new Faults(database, ledger, fleet, seed)) {
                List<String> problems = run(pool, ledger, fleet, faults);

                assertThat(problems)
                        .as("what went wrong; the same faults again with " + repeat)
                        .isEmpty();
                Set<Faults.Kind> kinds =
                        faults.done().stream().map(Faults.Fault::kind).collect(Collectors.toSet());
                assertThat(kinds).containsExactlyInAnyOrder(Faults.Kind.values());
            }
        }
    }

    private List<String> run(HikariDataSource pool, Ledger ledger, Fleet fleet, Faults faults) throws Exception {
        Awaitility.await().until(() -> ledger.registeredWorkers().size() == workers);
        Adder adder = new Adder(pool, new Random(seed), 15);
        adder.start();
        faults.inject(time, adder);
        adder.stop();
        String unfinished = awaitDrain(ledger, fleet);

        List<Integer> stuck = fleet.stop();
        Audit audit = new Audit(ledger, faults.done(), fleet.nodes());
        List<String> problems = audit.problems();
        System.out.println(audit.summary());
        if (unfinished != null) {
            problems.add(unfinished);
        }
        stuck.forEach(process -> problems.add("does not stop: process " + process));
        return problems;
    }

    /** Waits until only failed jobs are left, every process works, and the dead are forgotten; returns null then. */
    private static String awaitDrain(Ledger ledger, Fleet fleet) {
        try {
            Awaitility.await()
                    .atMost(DRAIN)
                    .pollInterval(Duration.ofMillis(100))
                    .ignoreExceptionsInstanceOf(DataAccessException.class)
                    .until(() -> ledger.retryCrashedNow()
                            && ledger.leftJobs().stream().allMatch(ChaosTest::isFailed)
                            && ledger.registeredWorkers().size() == fleet.workers());
            return null;
        } catch (ConditionTimeoutException e) {
            return "not recovered after " + DRAIN.toSeconds() + " s: jobs " + ledger.leftJobs() + " and workers "
                    + ledger.registeredWorkers() + " of " + fleet.workers() + " processes";
        }
    }

    private static boolean isFailed(Left job) {
        return job.lockedBy() == null && job.attempts() >= job.maxAttempts();
    }
}
