package dev.pgworker.internal.store;

import java.time.Duration;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.jdbc.AnswerLimit;
import dev.pgworker.schema.WorkerSchema;

/** The statements of one worker about jobs, by what they are for. Thread-safe. */
public final class JobStore {

    /** Far more than any of these statements usually takes, and little for a caller that waits after a failover. */
    private static final Duration USUAL_LIMIT = Duration.ofSeconds(10);

    /** For a statement that needs more: less than an operator waits. */
    private static final Duration LONGEST_LIMIT = Duration.ofSeconds(60);

    private final ClaimStore claims;
    private final OutcomeStore outcomes;
    private final HoldingStore holdings;
    private final DirectStore direct;
    private final StepStore steps;

    /** Creates the store of the worker with this id. */
    public JobStore(DataSource dataSource, WorkerSchema schema, String workerId) {
        this(dataSource, null, schema, workerId);
    }

    /**
     * Creates the store of the worker with this id.
     *
     * @param privateDataSource where sessions of direct batches come from; null for the other data source
     */
    public JobStore(
            DataSource dataSource, @Nullable DataSource privateDataSource, WorkerSchema schema, String workerId) {
        this(new JobSql(dataSource, schema, workerId, new AnswerLimit(USUAL_LIMIT, LONGEST_LIMIT)), privateDataSource);
    }

    JobStore(DataSource dataSource, WorkerSchema schema, String workerId, AnswerLimit answerLimit) {
        this(new JobSql(dataSource, schema, workerId, answerLimit), null);
    }

    private JobStore(JobSql sql, @Nullable DataSource privateDataSource) {
        claims = new ClaimStore(sql);
        outcomes = new OutcomeStore(sql);
        holdings = new HoldingStore(sql);
        direct = new DirectStore(sql, privateDataSource);
        steps = new StepStore(sql);
    }

    /** Returns what claims jobs. */
    public ClaimStore claims() {
        return claims;
    }

    /** Returns what writes the outcomes of claimed jobs. */
    public OutcomeStore outcomes() {
        return outcomes;
    }

    /** Returns what reads and renews what the worker holds. */
    public HoldingStore holdings() {
        return holdings;
    }

    /** Returns what locks, and deletes, jobs in transactions of their own. */
    public DirectStore direct() {
        return direct;
    }

    /** Returns what reads and writes the records of steps. */
    public StepStore steps() {
        return steps;
    }
}
