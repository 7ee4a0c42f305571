package dev.pgworker.benchmarks;

import java.sql.SQLException;
import java.util.LinkedHashMap;
import java.util.Map;

/** How much slower a drain is beside many other jobs, or with many priorities. */
final class Growth implements Scenario {

    private static final int FUTURE = 1_000_000;
    private static final int FAILED = 100_000;
    private static final int FOREIGN = 3_000_000;
    private static final int PRIORITIES = 10_000;

    /**
     * One table to drain.
     *
     * @param lying what lies around
     * @param ready the jobs to drain
     */
    private record Case(Trial.Filling lying, Trial.Filling ready) {}

    private static final Trial.Filling NOTHING = (trial, jobs) -> {};

    private static final Map<String, Case> CASES = cases();

    private static Map<String, Case> cases() {
        Map<String, Case> cases = new LinkedHashMap<>();
        cases.put(
                "1,000,000 future",
                new Case((trial, jobs) -> GraphileTables.future(trial.connection(), FUTURE), Growth::ready));
        cases.put(
                "100,000 failed",
                new Case((trial, jobs) -> GraphileTables.failed(trial.connection(), FAILED), Growth::ready));
        cases.put(
                "3,000,000 due of another task",
                new Case((trial, jobs) -> GraphileTables.foreign(trial.connection(), FOREIGN), Growth::ready));
        cases.put(
                "1,000,000 future, 10,000 priorities",
                new Case(
                        (trial, jobs) -> GraphileTables.future(trial.connection(), FUTURE, PRIORITIES), Growth::ready));
        cases.put(
                "ready, 10,000 priorities",
                new Case(NOTHING, (trial, jobs) -> GraphileTables.prioritized(trial.connection(), jobs, PRIORITIES)));
        return cases;
    }

    @Override
    public String title(Options options) {
        return "growth: drain of " + options.jobs() + " jobs beside others, as a part of the rate without";
    }

    @Override
    public boolean suits(Contender contender) {
        return contender.onGraphileTables() && contender.divisor() == 1;
    }

    @Override
    public void run(Contender contender, Options options, Server server, Report report) throws Exception {
        Case nothing = new Case(NOTHING, Growth::ready);
        // The server writes its first log files and fills its caches.
        double unused = measure(contender, options, server, nothing);
        double empty = measure(contender, options, server, nothing);
        report.add(contender.name(), "empty, jobs/s", empty);
        for (Map.Entry<String, Case> named : CASES.entrySet()) {
            double rate = measure(contender, options, server, named.getValue());
            report.add(contender.name(), named.getKey(), rate / empty);
        }
    }

    private static double measure(Contender contender, Options options, Server server, Case table) throws Exception {
        try (Trial trial = new Trial(contender, options, server)) {
            table.lying().fill(trial, options.jobs());
            return trial.drainWarm(table.ready(), options.jobs()).rate();
        }
    }

    private static void ready(Trial trial, int jobs) throws SQLException {
        GraphileTables.ready(trial.connection(), jobs);
    }
}
