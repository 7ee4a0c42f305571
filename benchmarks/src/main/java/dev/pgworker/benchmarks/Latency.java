package dev.pgworker.benchmarks;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;

import tools.jackson.databind.JsonNode;

/**
 * How long a job that one process adds in a transaction waits for the first line of its handler in another process: when
 * nothing else happens, for a job with {@code run_at} in the future after that instant, when the box is half busy, and under
 * a load that is the same for all. A third process makes the load.
 *
 * <p>The time counts from the commit, and, in columns of their own, from the begin of the transaction; from the latter only
 * for contenders that add in a way of their own.
 *
 * <p>Half busy is half of the rate at which this contender, in the same run, could add jobs in bulk and run them.
 */
final class Latency implements Scenario {

    private static final int GAP_MILLIS = 20;
    private static final int LEAD_MILLIS = 1_000;
    private static final int BULK = 1_000;

    /** The adding process is warm for bulks only, and the working one for large claims; C2 compiles for most of a minute. */
    private static final int WARM_UP_PINGS = 10_000;

    private static final int WARM_UP_GAP_MILLIS = 4;
    private static final int STEADY_RATE = 3_000;
    private static final int SETTLE_MILLIS = 5_000;

    @Override
    public String title(Options options) {
        return "latency: from the commit of a job to the first line of its handler, " + options.pings() + " jobs, ms";
    }

    @Override
    public boolean suits(Contender contender) {
        return contender.wakes();
    }

    @Override
    public void run(Contender contender, Options options, Server server, Report report) throws Exception {
        int jobs = Math.max(1, options.jobs() / contender.divisor());
        try (Trial trial = new Trial(contender, options, server);
                ContenderProcess loader = trial.process();
                ContenderProcess adder = trial.process()) {
            double[] adding = {0};
            Trial.Drained drained = trial.drainWarm(
                    (same, count) ->
                            adding[0] = loader.ask("bulk " + count + " " + BULK).asDouble(),
                    jobs);
            int half = (int) (jobs / (adding[0] + drained.seconds()) / 2);
            Pings pings = new Pings(trial, adder, options);
            trial.start();
            pings.make(WARM_UP_PINGS, WARM_UP_GAP_MILLIS, 0);
            pings.make(options.pings(), GAP_MILLIS, 0).put(report, contender, "idle");
            pings.make(options.pings(), GAP_MILLIS, LEAD_MILLIS).putDue(report, contender);
            pings.underLoad(loader, half).put(report, contender, "half busy");
            report.add(contender.name(), "busy with jobs/s", half);
            pings.underLoad(loader, STEADY_RATE).put(report, contender, STEADY_RATE + "/s");
        }
    }

    /** Jobs that are stamped when they are added. */
    private record Pings(Trial trial, ContenderProcess adder, Options options) {

        Waits underLoad(ContenderProcess loader, int rate) throws Exception {
            loader.ask("load " + rate);
            Thread.sleep(SETTLE_MILLIS);
            Waits waits = make(options.pings(), GAP_MILLIS, 0);
            loader.ask("unload");
            return waits;
        }

        /** Adds jobs, and waits until all have begun. */
        Waits make(int count, int gapMillis, int leadMillis) throws Exception {
            JsonNode commits = adder.ask("ping " + count + " " + gapMillis + " " + leadMillis);
            Map<Long, Double> waits = trial.waits();
            long deadline = System.nanoTime() + options.timeoutSeconds() * 1_000_000_000L;
            while (waits.size() < count) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException("only " + waits.size() + " of " + count + " jobs ran in time");
                }
                Thread.sleep(50);
                waits.putAll(trial.waits());
            }
            List<Double> afterCommit = new ArrayList<>();
            for (JsonNode commit : commits) {
                double wait = Objects.requireNonNull(waits.get(commit.get(0).asLong()));
                afterCommit.add(wait - commit.get(1).asDouble() / 1000);
            }
            return new Waits(afterCommit, List.copyOf(waits.values()));
        }
    }

    /** Milliseconds. */
    private record Waits(List<Double> fromCommit, List<Double> fromCall) {

        void put(Report report, Contender contender, String load) {
            put(report, contender, load, fromCommit, "");
            put(report, contender, load, fromCall, " from call");
        }

        void putDue(Report report, Contender contender) {
            put(report, contender, "run_at", fromCall, "");
        }

        private static void put(Report report, Contender contender, String load, List<Double> waits, String from) {
            double[] values = waits.stream().mapToDouble(Double::doubleValue).toArray();
            report.add(contender.name(), load + " p50" + from, Report.percentile(values, 50));
            report.add(contender.name(), load + " p99" + from, Report.percentile(values, 99));
        }
    }
}
