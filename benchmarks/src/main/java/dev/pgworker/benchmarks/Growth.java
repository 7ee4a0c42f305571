package dev.pgworker.benchmarks;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.LinkedHashMap;
import java.util.Map;

/** How much slower a drain is when other jobs lie around, or when the jobs have queues. */
final class Growth implements Scenario {

    private static final int FUTURE = 1_000_000;
    private static final int FAILED = 100_000;

    /** Puts rows into the tables. */
    private interface Filling {
        void fill(Connection connection, int jobs) throws SQLException;
    }

    /**
     * One table to drain.
     *
     * @param lying what lies around
     * @param ready the jobs to drain
     * @param queued whether they have queues
     */
    private record Case(Filling lying, Filling ready, boolean queued) {}

    private static final Filling NOTHING = (connection, jobs) -> {};

    private static final Map<String, Case> CASES = cases();

    private static Map<String, Case> cases() {
        Map<String, Case> cases = new LinkedHashMap<>();
        cases.put(
                "1,000,000 future",
                new Case(
                        (connection, jobs) -> GraphileTables.future(connection, FUTURE), GraphileTables::ready, false));
        cases.put(
                "100,000 failed",
                new Case(
                        (connection, jobs) -> GraphileTables.failed(connection, FAILED), GraphileTables::ready, false));
        cases.put("1,000 queues", queues(1_000, 1));
        cases.put("20,000 queues", queues(20_000, 1));
        cases.put("1,000 queues, 20 in a row", queues(1_000, 20));
        return cases;
    }

    private static Case queues(int queues, int consecutive) {
        return new Case(
                NOTHING,
                (connection, jobs) -> GraphileTables.queued(connection, jobs, queues, consecutive, Payload.NOTHING),
                true);
    }

    @Override
    public String title(Options options) {
        return "growth: drain of " + options.jobs()
                + " jobs beside others and with queues, as a part of the rate without";
    }

    @Override
    public boolean suits(Contender contender) {
        return contender.onGraphileTables() && contender.divisor() == 1;
    }

    @Override
    public void run(Contender contender, Options options, Server server, Report report) throws Exception {
        double empty = measure(contender, options, server, new Case(NOTHING, GraphileTables::ready, false));
        report.add(contender.name(), "empty, jobs/s", empty);
        for (Map.Entry<String, Case> named : CASES.entrySet()) {
            if (!named.getValue().queued() || contender.hasQueues()) {
                double rate = measure(contender, options, server, named.getValue());
                report.add(contender.name(), named.getKey(), rate / empty);
            }
        }
    }

    private static double measure(Contender contender, Options options, Server server, Case table) throws Exception {
        try (Trial trial = new Trial(contender, options, server)) {
            table.lying().fill(trial.connection(), options.jobs());
            fillAndDrain(trial, table, Math.max(1, options.jobs() / 5));
            return fillAndDrain(trial, table, options.jobs());
        }
    }

    private static double fillAndDrain(Trial trial, Case table, int jobs) throws Exception {
        trial.vacuum();
        long mark = trial.mark();
        table.ready().fill(trial.connection(), jobs);
        trial.settle();
        return trial.drain(mark, jobs).rate();
    }
}
