package dev.pgworker.benchmarks;

import java.util.List;

/** How fast ready jobs that do nothing are run, and what that costs. */
final class Drain implements Scenario {

    private static final int BULK = 5_000;

    @Override
    public String title(Options options) {
        return "drain: " + options.jobs() + " ready jobs that do nothing";
    }

    @Override
    public boolean suits(Contender contender) {
        return true;
    }

    @Override
    public void run(Contender contender, Options options, Server server, Report report) throws Exception {
        int jobs = Math.max(1, options.jobs() / contender.divisor());
        try (Trial trial = new Trial(contender, options, server)) {
            Trial.Drained drained = trial.drainWarm(Drain::bulk, jobs);
            report.add(contender.name(), "jobs", jobs);
            report.add(contender.name(), "jobs/s", drained.rate());
            report.add(contender.name(), "worker CPU s per 1,000", drained.workerCpu() / drained.jobs() * 1_000);
            report.add(contender.name(), "server CPU s per 1,000", drained.serverCpu() / drained.jobs() * 1_000);
            report.add(contender.name(), "WAL bytes per job", drained.walBytes() / drained.jobs());
            report.add(contender.name(), "worker RSS MB", drained.residentMegabytes());
            if (Double.isNaN(drained.serverCpu())) {
                report.note("CPU and memory are known on Linux only, those of the server if it runs on this machine.");
            }
            if (drained.cutOff()) {
                report.note(contender.name() + " was cut off after " + options.timeoutSeconds() + " s.");
            }
        }
    }

    /** Adds jobs with the contender's own call. */
    static void bulk(Trial trial, int jobs) throws Exception {
        trial.first().ask("bulk " + jobs + " " + BULK);
    }

    @Override
    public void finish(Report report) {
        List.of("bare-2", "peer-loop", "held-loop").forEach(loop -> report.compare("jobs/s", loop));
    }
}
