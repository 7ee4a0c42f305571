package dev.pgworker.benchmarks;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;

/** How long a new process takes to run its first job, how much slower it is before it is warm, and what it costs while it has no jobs. */
final class StartUp implements Scenario {

    private static final int MOST_SETTLE_SECONDS = 20;

    @Override
    public String title(Options options) {
        return "start-up: a new process and one waiting job, its first and a later drain of " + options.jobs() / 5
                + " jobs, and a process idle for " + options.idleSeconds() + " s";
    }

    /** A bare loop has no process to start. */
    @Override
    public boolean suits(Contender contender) {
        return !(contender instanceof Bare) && contender.processes() == 1;
    }

    @Override
    public void run(Contender contender, Options options, Server server, Report report) throws Exception {
        try (Trial trial = new Trial(contender, options, server)) {
            trial.first().ask("bulk 1 1");
            long start = System.nanoTime();
            try (ContenderProcess worker = trial.process()) {
                worker.ask("start");
                while (worker.ask("ran").asLong() == 0) {
                    if (System.nanoTime() - start > options.timeoutSeconds() * 1_000_000_000L) {
                        throw new IllegalStateException("the first job did not run in time");
                    }
                    Thread.sleep(1);
                }
                report.add(contender.name(), "first job, s", (System.nanoTime() - start) / 1e9);
                idle(contender, trial.connection(), worker, options, report);
            }
        }
        int jobs = Math.max(1, options.jobs() / contender.divisor() / 5);
        try (Trial trial = new Trial(contender, options, server)) {
            double first = trial.drain(Drain::bulk, jobs).rate();
            double warm = trial.drainWarm(Drain::bulk, jobs).rate();
            report.add(contender.name(), "first drain, jobs/s", first);
            report.add(contender.name(), "warm, jobs/s", warm);
        }
    }

    private static void idle(
            Contender contender, Connection connection, ContenderProcess worker, Options options, Report report)
            throws SQLException, InterruptedException {
        Thread.sleep(Math.min(MOST_SETTLE_SECONDS, options.idleSeconds()) * 1_000L);
        long transactions = transactions(connection);
        double cpu = Usage.cpuOf(List.of(worker));
        double serverCpu = Usage.cpuOfTree(Usage.postmaster(connection));
        long start = System.nanoTime();
        Thread.sleep(options.idleSeconds() * 1_000L);
        double seconds = (System.nanoTime() - start) / 1e9;
        double used = Usage.cpuOf(List.of(worker)) - cpu;
        double serverUsed = Usage.cpuOfTree(Usage.postmaster(connection)) - serverCpu;
        // Two of them are from here.
        long seen = transactions(connection) - transactions - 2;
        report.add(contender.name(), "idle, % of a core", 100 * used / seconds);
        report.add(contender.name(), "idle, server % of a core", 100 * serverUsed / seconds);
        report.add(contender.name(), "idle, transactions/s", Math.max(0, seen) / seconds);
        report.add(contender.name(), "idle, RSS MB", Usage.residentMegabytes(List.of(worker)));
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
