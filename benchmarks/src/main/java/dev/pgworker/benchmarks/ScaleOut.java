package dev.pgworker.benchmarks;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Whether more worker processes make a drain slower, and what a worker costs that has nothing to do. */
final class ScaleOut implements Scenario {

    private static final int[] PROCESSES = {1, 2, 4, 8};
    private static final int DRAINS = 3;
    private static final int SETTLE_SECONDS = 20;

    @Override
    public String title(Options options) {
        return "scale-out: drain of " + options.jobs() + " jobs with " + Arrays.toString(PROCESSES)
                + " worker processes, and a worker that is idle for " + options.idleSeconds() + " s";
    }

    @Override
    public boolean suits(Contender contender) {
        return contender.onGraphileTables() && contender.wakes() && contender.processes() == 1;
    }

    @Override
    public void run(Contender contender, Options options, Server server, Report report) throws Exception {
        Map<Integer, Double> rates = new LinkedHashMap<>();
        for (int processes : PROCESSES) {
            try (Trial trial = new Trial(contender, options, server, processes)) {
                rates.put(processes, rate(trial, options, Math.max(1, options.jobs() / contender.divisor())));
            }
        }
        double best =
                rates.values().stream().mapToDouble(Double::doubleValue).max().orElseThrow();
        rates.forEach((processes, rate) -> report.add(contender.name(), processes + ", jobs/s", rate));
        rates.forEach((processes, rate) -> report.add(contender.name(), processes + " of best", rate / best));
        idle(contender, options, server, report);
    }

    /** The same processes run on from the first warm-up on: those that start late would find little to do. */
    private static double rate(Trial trial, Options options, int jobs) throws Exception {
        trial.start();
        double warm = 0;
        while (warm < options.warmUpSeconds() * trial.processes()) {
            warm += trial.drainRunning(jobs);
        }
        double[] seconds = new double[DRAINS];
        for (int i = 0; i < DRAINS; i++) {
            seconds[i] = trial.drainRunning(jobs);
        }
        trial.stop();
        return jobs / Report.percentile(seconds, 50);
    }

    private static void idle(Contender contender, Options options, Server server, Report report) throws Exception {
        try (Trial trial = new Trial(contender, options, server);
                ContenderProcess worker = trial.process()) {
            worker.ask("start");
            Thread.sleep(Math.min(SETTLE_SECONDS, options.idleSeconds()) * 1_000L);
            long transactions = transactions(trial.connection());
            double cpu = Usage.cpuOf(List.of(worker));
            long start = System.nanoTime();
            Thread.sleep(options.idleSeconds() * 1_000L);
            double seconds = (System.nanoTime() - start) / 1e9;
            double used = Usage.cpuOf(List.of(worker)) - cpu;
            // One of them has read the number before.
            long seen = transactions(trial.connection()) - transactions - 1;
            report.add(contender.name(), "idle, % of a core", 100 * used / seconds);
            report.add(contender.name(), "idle, transactions/s", Math.max(0, seen) / seconds);
        }
    }

    private static long transactions(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery("select xact_commit + xact_rollback from pg_stat_database"
                        + " where datname = current_database()")) {
            row.next();
            return row.getLong(1);
        }
    }
}
