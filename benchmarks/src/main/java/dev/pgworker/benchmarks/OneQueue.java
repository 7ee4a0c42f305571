package dev.pgworker.benchmarks;

/** How fast a single serial queue is: with jobs that take a while, and with jobs that do nothing. */
final class OneQueue implements Scenario {

    private static final int SLOW_JOBS = 200;
    private static final Payload SLOW = new Payload(0, 20);

    @Override
    public String title(Options options) {
        return "one queue: " + SLOW_JOBS + " jobs of 20 ms, and " + options.jobs() / 10 + " that do nothing, jobs/s";
    }

    @Override
    public boolean suits(Contender contender) {
        return contender.hasQueues();
    }

    @Override
    public void run(Contender contender, Options options, Server server, Report report) throws Exception {
        int jobs = Math.max(1, options.jobs() / 10 / contender.divisor());
        try (Trial trial = new Trial(contender, options, server)) {
            double idle = trial.drainWarm(queued(Payload.NOTHING), jobs).rate();
            double slow = trial.drain(queued(SLOW), Math.min(SLOW_JOBS, options.jobs()))
                    .rate();
            report.add(contender.name(), "jobs of 20 ms", slow);
            report.add(contender.name(), "jobs that do nothing", idle);
        }
    }

    private static Trial.Filling queued(Payload payload) {
        return (trial, jobs) -> GraphileTables.queued(trial.connection(), jobs, 1, 1, payload);
    }
}
