package dev.pgworker.benchmarks;

import java.util.Locale;

/** How fast jobs are added by one thread, one by one with a commit each and in bulk, while nobody works. */
final class Enqueue implements Scenario {

    private static final int BULK = 1_000;

    @Override
    public String title(Options options) {
        return "enqueue: " + options.jobs() + " jobs, " + BULK + " in a call, or one tenth of them one by one";
    }

    @Override
    public boolean suits(Contender contender) {
        return contender.addsItsOwnWay();
    }

    @Override
    public void run(Contender contender, Options options, Server server, Report report) throws Exception {
        int bulk = options.jobs();
        int single = Math.max(1, options.jobs() / 10);
        try (Trial trial = new Trial(contender, options, server)) {
            report.add(contender.name(), "one by one, jobs/s", rate(trial, "add %d", single));
            report.add(contender.name(), "in bulk, jobs/s", rate(trial, "bulk %d " + BULK, bulk));
        }
    }

    private static double rate(Trial trial, String command, int jobs) throws Exception {
        trial.first().ask(String.format(Locale.ROOT, command, Math.max(1, jobs / 5)));
        trial.settle();
        return jobs
                / trial.first().ask(String.format(Locale.ROOT, command, jobs)).asDouble();
    }
}
