package dev.pgworker.internal.engine.run;

import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Objects;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.UncategorizedSQLException;
import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.jdbc.support.SQLStateSQLExceptionTranslator;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionStatus;
import org.springframework.transaction.support.DefaultTransactionDefinition;

import dev.pgworker.internal.argument.AsciiJson;
import dev.pgworker.internal.failure.Backoff;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.store.Claim;
import dev.pgworker.internal.store.RenewedLocks;
import dev.pgworker.internal.store.StepStore;
import dev.pgworker.internal.store.StepStore.Ended;
import dev.pgworker.internal.store.StepStore.Outcome;
import dev.pgworker.internal.store.StepStore.Recorded;
import dev.pgworker.job.Job;
import dev.pgworker.step.JobSteps.Transaction;
import dev.pgworker.task.JobControlException;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.task.PayloadException;

/** Reads and writes the records of steps, fenced by the claims of their jobs. Thread-safe. */
public final class StepRuns {

    /** How long a record is tried to be written of work that has been done, while the database cannot be used. */
    private static final Duration LONGEST_TRY = Duration.ofSeconds(30);

    private final StepStore store;
    private final RenewedLocks locks;
    private final PayloadCodec codec;
    private final int mostBytes;
    private final DataSource dataSource;
    private final @Nullable PlatformTransactionManager transactionManager;

    /**
     * Creates what serves the steps of one worker.
     *
     * @param mostBytes how long a result may be, as UTF-8
     * @param transactionManager manages transactions on the data source; null if there is none
     */
    public StepRuns(
            StepStore store,
            RenewedLocks locks,
            PayloadCodec codec,
            int mostBytes,
            DataSource dataSource,
            @Nullable PlatformTransactionManager transactionManager) {
        this.store = store;
        this.locks = locks;
        this.codec = codec;
        this.mostBytes = mostBytes;
        this.dataSource = dataSource;
        this.transactionManager = transactionManager;
    }

    PayloadCodec codec() {
        return codec;
    }

    /** Returns the steps that are recorded of a job, by name. */
    Map<String, Recorded> recorded(Job job) {
        try {
            return store.recorded(job.id());
        } catch (SQLException e) {
            throw translate("read the steps of " + job, e);
        }
    }

    /** Returns the result of a step that is recorded with one; null if it is null. */
    @Nullable String result(Job job, Recorded step) {
        if (!step.large()) {
            return step.result();
        }
        try {
            return store.result(job.id(), step.name());
        } catch (SQLException e) {
            throw translate("read step \"" + step.name() + "\" of " + job, e);
        }
    }

    /** Returns a result as it is recorded; null if it is null. */
    @Nullable String encode(Job job, String name, @Nullable Object result) {
        if (result == null) {
            return null;
        }
        String what = "The result of step \"" + name + "\" of " + job;
        String json;
        try {
            json = codec.encodeResult(job.taskIdentifier(), result, mostBytes);
        } catch (PayloadException e) {
            throw JobControlException.failPermanently(
                    what + " cannot be recorded, and the step would run again: " + e.getMessage(), e);
        }
        if (json == null) {
            throw JobControlException.failPermanently(what + " has more than " + mostBytes
                    + " bytes, so that the step cannot be recorded. Have it return less, such as the place where it has put the rest, or raise"
                    + " pgworker.steps.max-result-size");
        }
        return AsciiJson.escape(json);
    }

    /** Records a step whose work is done; tries again while the database cannot be used. */
    void end(Job job, Ended step) {
        long until = System.nanoTime() + LONGEST_TRY.toNanos();
        Backoff backoff = new Backoff();
        while (true) {
            try {
                require(job, step.name(), store.end(Claim.of(job), locks, step));
                return;
            } catch (SQLException e) {
                boolean hopeless = DatabaseFailure.of(e) == DatabaseFailure.REFUSED
                        || DatabaseFailure.of(e) == DatabaseFailure.INTERNAL;
                if (hopeless || System.nanoTime() - until > 0 || !pause(backoff)) {
                    throw translate(
                            "record step \"" + step.name() + "\" of " + job
                                    + ", which has been done and will be done again",
                            e);
                }
            }
        }
    }

    private static boolean pause(Backoff backoff) {
        try {
            Thread.sleep(backoff.next().toMillis());
            return true;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    private static void require(Job job, String name, Outcome outcome) {
        if (outcome != Outcome.WRITTEN) {
            throw new IllegalStateException("Step \"" + name + "\" of " + job + " is not recorded: "
                    + (outcome == Outcome.LOST
                            ? "this worker no longer holds the job"
                            : "another attempt has recorded it meanwhile"));
        }
    }

    /** What a step with a transaction of its own does, and how what it returned is recorded. */
    interface Recording<T extends @Nullable Object> {
        Ended of(T result);
    }

    /** Does work in a transaction that also records its step. */
    <T extends @Nullable Object, E extends Exception> T inTransaction(
            Job job, Transaction<T, E> work, Recording<T> recording) throws E {
        PlatformTransactionManager manager = transactionManager;
        if (manager == null) {
            throw new IllegalStateException(
                    "A step in a transaction needs a transaction manager of the worker's data source, and there is none");
        }
        TransactionStatus status = manager.getTransaction(new DefaultTransactionDefinition());
        T result;
        try {
            result = work.run();
            if (status.isRollbackOnly()) {
                throw new IllegalStateException("The step marked its transaction as rollback-only");
            }
            record(job, recording.of(result));
        } catch (Throwable e) {
            rollBack(manager, status, e);
            throw e;
        }
        manager.commit(status);
        return result;
    }

    private void record(Job job, Ended step) {
        Connection connection = DataSourceUtils.getConnection(dataSource);
        try {
            if (!DataSourceUtils.isConnectionTransactional(connection, dataSource) || connection.getAutoCommit()) {
                throw new IllegalStateException(
                        "The transaction manager does not manage the worker's data source, so that a step in a transaction cannot be"
                                + " recorded");
            }
            require(job, step.name(), store.end(connection, Claim.of(job), locks, step));
        } catch (SQLException e) {
            throw translate("record step \"" + step.name() + "\" of " + job, e);
        } finally {
            DataSourceUtils.releaseConnection(connection, dataSource);
        }
    }

    private static void rollBack(PlatformTransactionManager manager, TransactionStatus status, Throwable cause) {
        try {
            if (!status.isCompleted()) {
                manager.rollback(status);
            }
        } catch (RuntimeException | Error e) {
            if (e != cause) {
                cause.addSuppressed(e);
            }
        }
    }

    /**
     * Has a job wait, or continues a wait that has begun.
     *
     * @param signal what it waits for; null for the time alone
     */
    Recorded await(Job job, String name, @Nullable String signal, @Nullable Duration time, @Nullable Instant until) {
        try {
            Recorded wait = store.await(Claim.of(job), locks, name, signal, time, until);
            if (wait == null) {
                require(job, name, Outcome.LOST);
            }
            return Objects.requireNonNull(wait);
        } catch (SQLException e) {
            throw translate("have " + job + " wait at step \"" + name + "\"", e);
        }
    }

    private static DataAccessException translate(String task, SQLException e) {
        DataAccessException translated = new SQLStateSQLExceptionTranslator().translate(task, null, e);
        return translated == null ? new UncategorizedSQLException(task, null, e) : translated;
    }
}
