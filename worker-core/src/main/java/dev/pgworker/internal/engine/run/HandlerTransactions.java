package dev.pgworker.internal.engine.run;

import java.sql.Connection;
import java.util.Objects;
import java.util.function.Supplier;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionStatus;
import org.springframework.transaction.support.DefaultTransactionDefinition;

import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.store.Claim;
import dev.pgworker.internal.store.HeldClaim;
import dev.pgworker.internal.store.OutcomeStore;
import dev.pgworker.internal.store.RenewedLocks;
import dev.pgworker.internal.store.RunRecord;
import dev.pgworker.job.Job;

/**
 * Runs handlers in transactions that also complete their jobs, so that both happen or neither. The job stays locked by a
 * committed claim while the handler runs; only its deletion belongs to the handler's transaction.
 */
public final class HandlerTransactions {

    private static final Logger log = WorkerLog.of(HandlerTransactions.class);

    private final PlatformTransactionManager transactionManager;
    private final DataSource dataSource;
    private final OutcomeStore store;
    private final RenewedLocks locks;
    private final Ownership ownership;

    /**
     * Creates what runs them.
     *
     * @param transactionManager manages transactions on the data source
     */
    public HandlerTransactions(
            PlatformTransactionManager transactionManager,
            DataSource dataSource,
            OutcomeStore store,
            RenewedLocks locks,
            Ownership ownership) {
        this.transactionManager = transactionManager;
        this.dataSource = dataSource;
        this.store = store;
        this.locks = locks;
        this.ownership = ownership;
    }

    /** The work of a handler. */
    @FunctionalInterface
    interface Work {
        JobOutcome run() throws Exception;
    }

    /**
     * Runs the work on the calling thread. Rolls back unless it succeeds and the job is still this worker's.
     *
     * @param ran returns, when the work has succeeded, what the history gets of it
     * @throws DatabaseException if it is the database that keeps the transaction from beginning, or from ending as the work has
     * @throws Exception what the work throws, or a failure to commit
     */
    JobOutcome run(Job job, Work work, Supplier<@Nullable RunRecord> ran) throws Exception {
        TransactionStatus status = begin();
        JobOutcome outcome;
        try {
            outcome = work.run();
            if (outcome instanceof JobOutcome.Success && status.isRollbackOnly()) {
                throw new IllegalStateException("The handler marked its transaction as rollback-only");
            }
        } catch (Throwable e) {
            rollback(status, e);
            throw e;
        }
        if (!(outcome instanceof JobOutcome.Success)) {
            transactionManager.rollback(status);
            return withAllItems(outcome);
        }
        return complete(job, status, ran.get());
    }

    /** The database failed, and not the work: no kind of exception that the work may throw. */
    static final class DatabaseException extends Exception {

        private static final long serialVersionUID = 1L;

        private DatabaseException(Throwable cause) {
            super(cause);
        }

        /** Returns what has happened. */
        Throwable failure() {
            return Objects.requireNonNull(getCause());
        }
    }

    private TransactionStatus begin() throws DatabaseException {
        try {
            return transactionManager.getTransaction(new DefaultTransactionDefinition());
        } catch (Throwable e) {
            throw new DatabaseException(e);
        }
    }

    /** What the database refuses, such as a row that a deferred constraint does not let in, is the doing of the work. */
    private static void requireUsable(Throwable e) throws DatabaseException {
        DatabaseFailure failure = DatabaseFailure.of(e);
        if (failure != DatabaseFailure.REFUSED && failure != DatabaseFailure.INTERNAL) {
            throw new DatabaseException(e);
        }
    }

    /** The items of a batch that succeeded have been rolled back with those that failed. */
    private static JobOutcome withAllItems(JobOutcome outcome) {
        if (outcome instanceof JobOutcome.Failure failure) {
            return new JobOutcome.Failure(
                    failure.error(), failure.permanently(), failure.when(), null, failure.maxAttempts());
        }
        return outcome instanceof JobOutcome.Returned returned
                ? new JobOutcome.Returned(returned.started(), null)
                : outcome;
    }

    private JobOutcome complete(Job job, TransactionStatus status, @Nullable RunRecord ran) throws Exception {
        boolean completed;
        try {
            Connection connection = DataSourceUtils.getConnection(dataSource);
            try {
                if (!DataSourceUtils.isConnectionTransactional(connection, dataSource) || connection.getAutoCommit()) {
                    throw new IllegalStateException(
                            "The transaction manager does not manage the worker's data source, so that a transactional"
                                    + " handler cannot complete its job");
                }
                store.awaitRow(connection, job);
                completed = store.complete(connection, claimOf(job), ran);
            } finally {
                DataSourceUtils.releaseConnection(connection, dataSource);
            }
        } catch (Throwable e) {
            rollback(status, e);
            requireUsable(e);
            throw e;
        }
        if (!completed) {
            transactionManager.rollback(status);
            return JobOutcome.Lost.INSTANCE;
        }
        commit(job, status);
        return JobOutcome.Committed.INSTANCE;
    }

    /** What fails after the commit does not undo it: the database shows whether the job has been deleted. */
    private void commit(Job job, TransactionStatus status) throws Exception {
        try {
            transactionManager.commit(status);
        } catch (Throwable e) {
            rollback(status, e);
            if (ownership.isHeld(job)) {
                requireUsable(e);
                throw e;
            }
            log.warn(
                    "{} has succeeded and its transaction is committed, but a callback after the commit failed",
                    job,
                    e);
        }
    }

    /** The queue is freed after the commit, by the completer: its row may be locked, or more of its jobs are here. */
    private HeldClaim claimOf(Job job) {
        return new HeldClaim(job.id(), locks.current(Claim.of(job)), null);
    }

    private void rollback(TransactionStatus status, Throwable cause) {
        if (status.isCompleted()) {
            return;
        }
        try {
            transactionManager.rollback(status);
        } catch (RuntimeException | Error e) {
            log.debug("A transaction could not be rolled back", e);
            if (e != cause) {
                cause.addSuppressed(e);
            }
        }
    }
}
