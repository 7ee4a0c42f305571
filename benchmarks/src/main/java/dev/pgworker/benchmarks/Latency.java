package dev.pgworker.benchmarks;

/**
 * How long a job that one process adds waits for the first line of its handler in another process: when nothing else
 * happens, when the box is half busy, and, for a job with {@code run_at} in the future, after that instant.
 *
 * <p>Half busy is half of the rate at which this contender, in the same run, could add jobs in bulk and run them.
 */
final class Latency implements Scenario {

    private static final int GAP_MILLIS = 20;
    private static final int LEAD_MILLIS = 1_000;
    private static final int BULK = 1_000;

    @Override
    public String title(Options options) {
        return "latency: from the call that adds a job to the first line of its handler, " + options.pings()
                + " jobs, ms";
    }

    @Override
    public boolean suits(Contender contender) {
        return contender.wakes();
    }

    @Override
    public void run(Contender contender, Options options, Server server, Report report) throws Exception {
        int jobs = Math.max(1, options.jobs() / contender.divisor());
        try (Trial trial = new Trial(contender, options, server);
                ContenderProcess adder = trial.process()) {
            double[] adding = {0};
            Trial.Drained drained = trial.drainWarm(
                    (same, count) ->
                            adding[0] = adder.ask("bulk " + count + " " + BULK).asDouble(),
                    jobs);
            long ranBefore = trial.ran();
            trial.start();
            // The adding process is warm for bulks only.
            adder.ask("ping 200 4 0");
            await(trial, ranBefore + 200, options);
            trial.takeWaits();
            long ran = trial.ran();
            ran += ping(trial, adder, options, 0, ran);
            put(report, contender, "idle", trial.takeWaits());
            ran += ping(trial, adder, options, LEAD_MILLIS, ran);
            put(report, contender, "run_at", trial.takeWaits());
            int rate = (int) (jobs / (adding[0] + drained.seconds()) / 2);
            adder.ask("load " + rate);
            Thread.sleep(2_000);
            adder.ask(pings(options, 0));
            long added = adder.ask("unload").asLong();
            await(trial, ran + options.pings() + added, options);
            put(report, contender, "half busy", trial.takeWaits());
            report.add(contender.name(), "busy with jobs/s", rate);
        }
    }

    private static int ping(Trial trial, ContenderProcess adder, Options options, int leadMillis, long ran)
            throws Exception {
        adder.ask(pings(options, leadMillis));
        await(trial, ran + options.pings(), options);
        return options.pings();
    }

    private static String pings(Options options, int leadMillis) {
        return "ping " + options.pings() + " " + GAP_MILLIS + " " + leadMillis;
    }

    private static void await(Trial trial, long ran, Options options) throws InterruptedException {
        long deadline = System.nanoTime() + options.timeoutSeconds() * 1_000_000_000L;
        while (trial.ran() < ran) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("only " + trial.ran() + " of " + ran + " jobs ran in time");
            }
            Thread.sleep(50);
        }
    }

    private static void put(Report report, Contender contender, String column, double[] waits) {
        report.add(contender.name(), column + " p50", Report.percentile(waits, 50));
        report.add(contender.name(), column + " p99", Report.percentile(waits, 99));
    }
}
