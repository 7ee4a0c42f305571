package dev.pgworker.benchmarks;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Locale;

/**
 * Whether rate, backlog, waits, table size and memory stay flat under a constant load; a line every ten seconds. On request
 * a transaction of somebody's keeps a snapshot meanwhile, after a minute without and before another one.
 */
final class Soak implements Scenario {

    static final int LINE_SECONDS = 10;
    private static final int GAP_MILLIS = 20;
    private static final int PINGS = LINE_SECONDS * 1_000 / GAP_MILLIS;
    private static final int LINES_A_MINUTE = 60 / LINE_SECONDS;

    private final boolean snapshotHeld;

    Soak(boolean snapshotHeld) {
        this.snapshotHeld = snapshotHeld;
    }

    @Override
    public String title(Options options) {
        return (snapshotHeld ? "held-snapshot: " : "soak: ") + options.rate() + " jobs/s for " + options.minutes()
                + " min" + (snapshotHeld ? " while a snapshot is held, a minute before and after" : "")
                + ", a value every " + LINE_SECONDS + " s";
    }

    @Override
    public boolean suits(Contender contender) {
        return contender.onGraphileTables() && contender.wakes();
    }

    @Override
    public void run(Contender contender, Options options, Server server, Report report) throws Exception {
        try (Trial trial = new Trial(contender, options, server);
                ContenderProcess loader = trial.process();
                ContenderProcess pinger = trial.process();
                Connection holder = trial.connect()) {
            trial.start();
            loader.ask("load " + options.rate());
            long pinged = 0;
            long ranBefore = 0;
            long lineStart = System.nanoTime();
            int held = options.minutes() * LINES_A_MINUTE;
            for (int line = 1; line <= held + (snapshotHeld ? 2 * LINES_A_MINUTE : 0); line++) {
                String phase = phase(line, held);
                if (snapshotHeld) {
                    hold(holder, phase.equals("held "));
                }
                pinger.ask("ping " + PINGS + " " + GAP_MILLIS + " 0");
                pinged += PINGS;
                long added = loader.ask("added").asLong() + pinged;
                long ran = trial.ran();
                long now = System.nanoTime();
                double rate = (ran - ranBefore) / ((now - lineStart) / 1e9);
                lineStart = now;
                ranBefore = ran;
                double[] waits = trial.takeWaits();
                double[] values = {
                    rate,
                    added - ran,
                    Report.percentile(waits, 50),
                    Report.percentile(waits, 99),
                    tableMegabytes(trial),
                    trial.heapBytes() / 1048576.0
                };
                put(contender, report, line, phase, values);
            }
            loader.ask("unload");
        }
    }

    private String phase(int line, int held) {
        if (!snapshotHeld) {
            return "";
        }
        return line <= LINES_A_MINUTE ? "before " : line <= LINES_A_MINUTE + held ? "held " : "after ";
    }

    private static void hold(Connection holder, boolean wanted) throws SQLException {
        if (wanted && holder.getAutoCommit()) {
            holder.setAutoCommit(false);
            holder.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            try (Statement statement = holder.createStatement()) {
                statement.execute("select 1");
            }
        } else if (!wanted && !holder.getAutoCommit()) {
            holder.rollback();
            holder.setAutoCommit(true);
        }
    }

    private static void put(Contender contender, Report report, int line, String phase, double[] values) {
        String[] columns = {"jobs/s", "backlog", "wait p50 ms", "wait p99 ms", "table MB", "heap MB"};
        StringBuilder text = new StringBuilder(
                String.format(Locale.ROOT, "%s %s%5d s", contender.name(), phase, line * LINE_SECONDS));
        for (int i = 0; i < columns.length; i++) {
            report.add(contender.name(), phase + columns[i], values[i]);
            text.append(String.format(Locale.ROOT, "  %s %.1f", columns[i], values[i]));
        }
        System.err.println(text);
    }

    private static double tableMegabytes(Trial trial) throws Exception {
        try (Statement statement = trial.connection().createStatement();
                ResultSet row = statement.executeQuery(
                        "select pg_total_relation_size('graphile_worker._private_jobs') / 1048576.0")) {
            row.next();
            return row.getDouble(1);
        }
    }
}
