package dev.pgworker.dashboard;

import java.util.List;
import java.util.function.Predicate;
import java.util.function.Supplier;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.TransactionException;
import org.springframework.transaction.support.TransactionTemplate;

import dev.pgworker.autoconfigure.WorkerInstance;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.job.JobQueries;
import dev.pgworker.schedule.RecurringJob;
import dev.pgworker.schedule.RecurringQuery;

/** What the dashboard reads of one worker: each time in a transaction that changes nothing and takes a bounded time. */
final class Source {

    private static final Logger log = WorkerLog.of(Source.class);

    private static final int SECONDS = 5;
    private static final int SECONDS_BESIDE = 2;

    private final WorkerInstance instance;
    private final JobQueries queries;
    private final TransactionTemplate reading;
    private final TransactionTemplate readingPrimary;
    private final TransactionTemplate nested;
    private final TransactionTemplate nestedPrimary;
    private final TransactionTemplate beside;
    private final TransactionTemplate changing;
    private final List<WorkerInstance> siblings;

    /**
     * Creates a source.
     *
     * @param queries read from the given data source
     * @param primary the data source of the worker
     * @param siblings the other workers of the application on the same data source and schema
     */
    Source(
            WorkerInstance instance,
            JobQueries queries,
            DataSource dataSource,
            DataSource primary,
            List<WorkerInstance> siblings) {
        this.instance = instance;
        this.queries = queries;
        this.reading = transactions(dataSource);
        this.readingPrimary = dataSource == primary ? reading : transactions(primary);
        this.nested = transactions(dataSource);
        nested.setPropagationBehavior(TransactionDefinition.PROPAGATION_NESTED);
        this.nestedPrimary = dataSource == primary ? nested : readingPrimary;
        this.beside = transactions(dataSource);
        beside.setTimeout(SECONDS_BESIDE);
        this.changing = new TransactionTemplate(new JdbcTransactionManager(primary));
        this.siblings = List.copyOf(siblings);
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

    /** Returns the other workers of the application on the same data source and schema. */
    List<WorkerInstance> siblings() {
        return siblings;
    }

    /** Returns whether the worker of this application records figures. */
    boolean recordsStatistics() {
        return instance.settings().statistics();
    }

    /** Returns what to read with, inside {@link #read}. */
    JobQueries queries() {
        return queries;
    }

    <T> T read(Supplier<T> work) {
        return execute(reading, work);
    }

    /** Reads where the worker itself reads, as what is known of recurring jobs. */
    <T> T readPrimary(Supplier<T> work) {
        return execute(readingPrimary, work);
    }

    /** Changes something with the worker's own data source: all of it or nothing. */
    <T> T change(Supplier<T> work) {
        return execute(changing, work);
    }

    /**
     * What a page can do without.
     *
     * @param value null if it may not be read
     * @param error why it may not be read; null if it may
     */
    record Part<T>(@Nullable T value, @Nullable String error) {}

    /** Reads, inside {@link #read}, what the database user may have no right to, without spoiling the rest. */
    <T> Part<T> part(String what, Supplier<T> work) {
        return part(nested, what, work, Failures::isLackOfRight);
    }

    /**
     * Reads, outside {@link #read}, what the database user may have no right to, or others may have locked: for a shorter time, so
     * that there is some left for the rest.
     */
    <T> Part<T> partBeside(String what, Supplier<T> work) {
        return part(beside, what, work, failure -> Failures.isLackOfRight(failure) || Failures.isLackOfTime(failure));
    }

    /** Reads, outside {@link #readPrimary}, what the database user may have no right to. */
    <T> Part<T> partPrimary(String what, Supplier<T> work) {
        return part(readingPrimary, what, work, Failures::isLackOfRight);
    }

    private static <T> Part<T> part(
            TransactionTemplate template, String what, Supplier<T> work, Predicate<RuntimeException> dispensable) {
        try {
            return new Part<>(execute(template, work), null);
        } catch (RuntimeException e) {
            if (!dispensable.test(e)) {
                throw e;
            }
            return new Part<>(null, what + ". " + Failures.explain(e).sentence());
        }
    }

    /**
     * Returns schedules that are not executed because something is wrong with them, inside {@link #read}; none if they cannot
     * be read, which the page of recurring jobs says. They are read where the worker itself reads, which may be away while a
     * replica answers.
     */
    List<RecurringJob> schedulesWithProblem(int limit) {
        RecurringQuery query = new RecurringQuery(null, null, null, true, RecurringQuery.SCHEDULES, null, limit);
        try {
            return execute(nestedPrimary, () -> instance.recurringJobs().list(query));
        } catch (DataAccessException | TransactionException e) {
            log.debug("Schedules cannot be read", e);
            return List.of();
        }
    }

    private static <T> T execute(TransactionTemplate template, Supplier<T> work) {
        return template.execute(status -> work.get());
    }
}
