package dev.pgworker.benchmarks;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/** Whether more worker processes make a drain slower. */
final class ScaleOut implements Scenario {

    private static final int[] PROCESSES = {1, 2, 4, 8};
    private static final int DRAINS = 3;

    @Override
    public String title(Options options) {
        return "scale-out: drain of " + options.jobs() + " jobs with " + Arrays.toString(PROCESSES)
                + " worker processes";
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
}
