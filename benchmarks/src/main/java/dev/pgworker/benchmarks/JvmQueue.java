package dev.pgworker.benchmarks;

import java.nio.file.Path;
import java.util.List;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

/** A job queue that runs in a JVM, as its own process sees it. */
interface JvmQueue {

    /** Makes a queue on a database; its handler calls {@link Probe#run}. */
    interface Factory {
        JvmQueue open(DataSource dataSource, Probe probe) throws Exception;
    }

    /** Every JVM gets the same heap. */
    static List<String> command(Contender contender, Options options, String jdbcUrl) {
        return List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xms" + options.heapMegabytes() + "m",
                "-Xmx" + options.heapMegabytes() + "m",
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                "-cp",
                System.getProperty("java.class.path"),
                ContenderMain.class.getName(),
                contender.name(),
                jdbcUrl);
    }

    /** Creates what the queue needs in the database. */
    void createTables() throws Exception;

    /** Starts to run jobs; returns when that is under way. */
    void start() throws Exception;

    /** Stops to run jobs, but keeps what is warm. */
    void stop() throws Exception;

    /** Adds one job as an application would, in a transaction of its own. */
    void add(Payload payload, @Nullable Long runAtMicros) throws Exception;

    /**
     * Adds one job as a service with a transaction does.
     *
     * @return when the transaction was told to commit, in microseconds since the epoch; 0 if that is unknown
     */
    default long addAndCommit(Payload payload, @Nullable Long runAtMicros) throws Exception {
        add(payload, runAtMicros);
        return 0;
    }

    /** Adds jobs in one call. */
    void addAll(List<Payload> payloads) throws Exception;
}
