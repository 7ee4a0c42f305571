package dev.pgworker.benchmarks;

import java.sql.SQLException;

/** What a small heap costs a drain of jobs with payloads of 1 KB. */
final class Memory implements Scenario {

    private static final int SMALL = 64;
    private static final int PAYLOAD_BYTES = 1_000;

    @Override
    public String title(Options options) {
        return "memory: drain of " + options.jobs() + " jobs with payloads of 1 KB, with heaps of "
                + options.heapMegabytes() + " and " + SMALL + " MB";
    }

    /** Fills the tables with SQL, and sets the heap of a JVM with handlers. */
    @Override
    public boolean suits(Contender contender) {
        return contender.onGraphileTables()
                && contender.jvmQueue().isPresent()
                && contender.wakes()
                && contender.processes() == 1;
    }

    @Override
    public void run(Contender contender, Options options, Server server, Report report) throws Exception {
        Trial.Drained usual = drain(contender, options, server);
        Trial.Drained small = drain(contender, options.withHeap(SMALL), server);
        report.add(contender.name(), "jobs/s", usual.rate());
        report.add(contender.name(), "jobs/s, " + SMALL + " MB", small.rate());
        report.add(contender.name(), "ratio", small.rate() / usual.rate());
        report.add(contender.name(), "RSS MB", usual.residentMegabytes());
        report.add(contender.name(), "RSS MB, " + SMALL + " MB", small.residentMegabytes());
    }

    private static Trial.Drained drain(Contender contender, Options options, Server server) throws Exception {
        try (Trial trial = new Trial(contender, options, server)) {
            return trial.drainWarm(Memory::fill, options.jobs());
        }
    }

    private static void fill(Trial trial, int jobs) throws SQLException {
        GraphileTables.ready(trial.connection(), jobs, new Payload(0, 0, "x".repeat(PAYLOAD_BYTES)));
    }
}
