package dev.pgworker.dashboard;

import java.util.function.Supplier;
import javax.sql.DataSource;

import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

import dev.pgworker.autoconfigure.WorkerInstance;
import dev.pgworker.job.JobAdmin;

/** What the dashboard reads of one worker: each time in a transaction that changes nothing and takes a bounded time. */
final class Source {

    private static final int SECONDS = 5;

    private final WorkerInstance instance;
    private final JobAdmin admin;
    private final TransactionTemplate reading;
    private final TransactionTemplate readingPrimary;

    /**
     * Creates a source.
     *
     * @param admin reads from the given data source
     * @param primary the data source of the worker
     */
    Source(WorkerInstance instance, JobAdmin admin, DataSource dataSource, DataSource primary) {
        this.instance = instance;
        this.admin = admin;
        this.reading = transactions(dataSource);
        this.readingPrimary = dataSource == primary ? reading : transactions(primary);
    }

    private static TransactionTemplate transactions(DataSource dataSource) {
        TransactionTemplate template = new TransactionTemplate(new JdbcTransactionManager(dataSource));
        template.setReadOnly(true);
        template.setTimeout(SECONDS);
        return template;
    }

    WorkerInstance instance() {
        return instance;
    }

    /** Returns whether the worker of this application records figures. */
    boolean recordsStatistics() {
        return instance.settings().statistics();
    }

    /** Returns the administration to read with, inside {@link #read}. */
    JobAdmin admin() {
        return admin;
    }

    <T> T read(Supplier<T> work) {
        return execute(reading, work);
    }

    /** Reads where the worker itself reads, as what is known of recurring jobs. */
    <T> T readPrimary(Supplier<T> work) {
        return execute(readingPrimary, work);
    }

    private static <T> T execute(TransactionTemplate template, Supplier<T> work) {
        return template.execute(status -> work.get());
    }
}
