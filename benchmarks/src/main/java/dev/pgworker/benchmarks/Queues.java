package dev.pgworker.benchmarks;

import java.sql.SQLException;
import java.util.LinkedHashMap;
import java.util.Map;

/** The price of queues: drains of jobs with and without them, in turn, by the same worker processes. */
final class Queues implements Scenario {

    private static final String NONE = "none";
    private static final String RATE = ", jobs/s";

    private static final int ROUNDS = 3;

    private static final Map<String, Trial.Filling> CASES = cases();

    private static Map<String, Trial.Filling> cases() {
        Map<String, Trial.Filling> cases = new LinkedHashMap<>();
        cases.put("1,000 queues", queues(1_000, 1));
        cases.put("20,000 queues", queues(20_000, 1));
        cases.put("1,000 queues, 20 in a row", queues(1_000, 20));
        return cases;
    }

    private static Trial.Filling queues(int queues, int consecutive) {
        return (trial, jobs) -> {
            GraphileTables.forgetQueues(trial.connection());
            GraphileTables.queued(trial.connection(), jobs, queues, consecutive, Payload.NOTHING);
        };
    }

    @Override
    public String title(Options options) {
        return "queues: drain of " + options.jobs() + " jobs with queues, as a part of the rate without, " + ROUNDS
                + " times in turn in each run";
    }

    @Override
    public boolean suits(Contender contender) {
        return contender.onGraphileTables() && contender.divisor() == 1 && contender.hasQueues();
    }

    @Override
    public void run(Contender contender, Options options, Server server, Report report) throws Exception {
        try (Trial trial = new Trial(contender, options, server)) {
            trial.drainWarm(Queues::ready, options.jobs());
            trial.drainWarm(queues(1_000, 1), options.jobs());
            for (int round = 1; round <= ROUNDS; round++) {
                Trial.Drained without = trial.drain(Queues::ready, options.jobs());
                report.add(contender.name(), NONE + RATE, without.rate());
                addCosts(report, contender.name(), NONE, without);
                for (Map.Entry<String, Trial.Filling> named : CASES.entrySet()) {
                    Trial.Drained drained = trial.drain(named.getValue(), options.jobs());
                    report.add(contender.name(), named.getKey(), drained.rate() / without.rate());
                    addCosts(report, contender.name(), named.getKey(), drained);
                }
            }
        }
    }

    private static void addCosts(Report report, String contender, String queues, Trial.Drained drained) {
        report.add(contender, queues + ", server CPU µs a job", drained.serverCpu() / drained.jobs() * 1e6);
        report.add(contender, queues + ", worker CPU µs a job", drained.workerCpu() / drained.jobs() * 1e6);
    }

    private static void ready(Trial trial, int jobs) throws SQLException {
        GraphileTables.ready(trial.connection(), jobs);
    }
}
