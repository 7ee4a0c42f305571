package dev.pgworker.benchmarks;

import java.io.IOException;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/** One contender in a fresh database, with its processes. */
final class Trial implements AutoCloseable {

    private final Contender contender;
    private final Options options;
    private final Server server;
    private final String url;
    private final Connection connection;
    private final List<ContenderProcess> workers = new ArrayList<>();

    Trial(Contender contender, Options options, Server server) throws SQLException, IOException, InterruptedException {
        this(contender, options, server, contender.processes());
    }

    /** Starts another number of processes than the contender says. */
    Trial(Contender contender, Options options, Server server, int processes)
            throws SQLException, IOException, InterruptedException {
        this.contender = contender;
        this.options = options;
        this.server = server;
        url = server.createDatabase();
        connection = DriverManager.getConnection(url);
        try {
            for (int i = 0; i < processes; i++) {
                workers.add(process());
            }
            first().ask("create");
        } catch (IllegalStateException e) {
            close();
            throw e;
        }
    }

    /** Starts one more process, which the caller closes. */
    ContenderProcess process() throws IOException {
        return new ContenderProcess(contender.name(), contender.command(options, url));
    }

    /** Returns the process that adds jobs while nobody works. */
    ContenderProcess first() {
        return workers.get(0);
    }

    Connection connection() {
        return connection;
    }

    /** Opens one more connection to the database, which the caller closes. */
    Connection connect() throws SQLException {
        return DriverManager.getConnection(url);
    }

    void start() throws InterruptedException {
        for (ContenderProcess worker : workers) {
            worker.ask("start");
        }
    }

    void stop() throws InterruptedException {
        for (ContenderProcess worker : workers) {
            worker.ask("stop");
        }
    }

    /** Returns how many jobs have run. */
    long ran() throws InterruptedException {
        long ran = 0;
        for (ContenderProcess worker : workers) {
            ran += worker.ask("ran").asLong();
        }
        return ran;
    }

    /** Takes the waits of stamped jobs, in milliseconds. */
    double[] takeWaits() throws InterruptedException {
        return waits().values().stream().mapToDouble(Double::doubleValue).toArray();
    }

    /** Takes the waits of stamped jobs, in milliseconds, by their stamps. */
    Map<Long, Double> waits() throws InterruptedException {
        Map<Long, Double> waits = new HashMap<>();
        for (ContenderProcess worker : workers) {
            worker.ask("waits")
                    .forEach(wait -> waits.put(wait.get(0).asLong(), wait.get(1).asDouble() / 1000));
        }
        return waits;
    }

    long heapBytes() throws InterruptedException {
        return first().ask("heap").asLong();
    }

    private long mark() throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(contender.mark())) {
            row.next();
            return row.getLong(1);
        }
    }

    /** Makes the planner know the rows, and lets no run pay for the pages that an earlier one wrote. */
    void settle() throws SQLException {
        execute("analyze");
        try {
            execute("checkpoint");
        } catch (SQLException e) {
            System.err.println("No checkpoint before the run: " + e.getMessage());
        }
    }

    private void execute(String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    /** Puts ready jobs into the database. */
    interface Filling {
        void fill(Trial trial, int jobs) throws Exception;
    }

    /**
     * Drains a number of jobs by workers that are warm: before, they have drained fifths of that number for a while, the
     * same while for each process of all contenders. If not even a fifth was done in time, that is the result.
     */
    Drained drainWarm(Filling filling, int jobs) throws Exception {
        double warm = 0;
        while (warm < options.warmUpSeconds() * workers.size()) {
            Drained drained = drain(filling, Math.max(1, jobs / 5));
            if (drained.cutOff()) {
                return drained;
            }
            warm += drained.seconds();
        }
        return drain(filling, jobs);
    }

    /** Drains a number of jobs that are added before. */
    Drained drain(Filling filling, int jobs) throws Exception {
        // What earlier jobs have left behind.
        execute("vacuum");
        long mark = mark();
        filling.fill(this, jobs);
        settle();
        return drain(mark, jobs);
    }

    /**
     * What a drain took.
     *
     * @param jobs how many jobs were done
     * @param cutOff whether these were not all, because the time was up
     * @param seconds from the word to go until no job was left in the database; from the first job for contenders that poll
     * @param workerCpu CPU seconds of all worker processes
     * @param serverCpu CPU seconds of the server
     * @param residentMegabytes memory of all worker processes at the end
     * @param walBytes what the whole server wrote to its log meanwhile
     */
    record Drained(
            long jobs,
            boolean cutOff,
            double seconds,
            double workerCpu,
            double serverCpu,
            double residentMegabytes,
            double walBytes) {
        double rate() {
            return jobs / seconds;
        }
    }

    /**
     * Starts the workers, which are idle, waits until the jobs after the mark are done, and stops the workers.
     *
     * @throws IllegalStateException if the handlers did not run exactly as often as there were jobs
     */
    private Drained drain(long mark, long jobs) throws SQLException, InterruptedException {
        OptionalLong postmaster = Usage.postmaster(connection);
        long ranBefore = ran();
        double workerCpu = Usage.cpuOf(workers);
        double serverCpu = Usage.cpuOfTree(postmaster);
        double wal = walBytes();
        long start = System.nanoTime();
        long deadline = start + options.timeoutSeconds() * 1_000_000_000L;
        start();
        while (contender.polls() && ran() == ranBefore && System.nanoTime() < deadline) {
            Thread.sleep(1);
            start = System.nanoTime();
        }
        // Handlers count for nothing until the database shows the result; they only say when to begin to look.
        while (ran() - ranBefore < jobs && System.nanoTime() < deadline) {
            Thread.sleep(5);
        }
        while (unfinished(mark) && System.nanoTime() < deadline) {
            Thread.sleep(1);
        }
        long end = System.nanoTime();
        boolean cutOff = end >= deadline;
        Drained drained = new Drained(
                cutOff ? ran() - ranBefore : jobs,
                cutOff,
                (end - start) / 1e9,
                Usage.cpuOf(workers) - workerCpu,
                Usage.cpuOfTree(postmaster) - serverCpu,
                Usage.residentMegabytes(workers),
                walBytes() - wal);
        stop();
        if (!cutOff && ran() - ranBefore != jobs) {
            throw new IllegalStateException(
                    contender.name() + " ran " + (ran() - ranBefore) + " times for " + jobs + " jobs");
        }
        return drained;
    }

    /**
     * Adds jobs with one SQL statement while the workers run, and waits until they are done.
     *
     * @return the seconds since the jobs could be seen
     * @throws IllegalStateException if the handlers did not run exactly as often as there were jobs
     */
    double drainRunning(int jobs) throws SQLException, InterruptedException {
        execute("vacuum");
        settle();
        long mark = mark();
        long ranBefore = ran();
        connection.setAutoCommit(false);
        GraphileTables.ready(connection, jobs);
        execute("notify \"jobs:insert\"");
        long start = System.nanoTime();
        connection.commit();
        connection.setAutoCommit(true);
        long deadline = start + options.timeoutSeconds() * 1_000_000_000L;
        while (ran() - ranBefore < jobs || unfinished(mark)) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("only " + (ran() - ranBefore) + " of " + jobs + " jobs ran in time");
            }
            Thread.sleep(5);
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        if (ran() - ranBefore != jobs) {
            throw new IllegalStateException(
                    contender.name() + " ran " + (ran() - ranBefore) + " times for " + jobs + " jobs");
        }
        return seconds;
    }

    int processes() {
        return workers.size();
    }

    private double walBytes() throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery("select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')")) {
            row.next();
            return row.getDouble(1);
        }
    }

    private boolean unfinished(long mark) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(contender.unfinished())) {
            statement.setLong(1, mark);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getBoolean(1);
            }
        }
    }

    @Override
    public void close() throws SQLException {
        workers.forEach(ContenderProcess::close);
        connection.close();
        server.dropDatabase(url);
    }
}
