package dev.pgworker.benchmarks;

import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Optional;
import javax.sql.DataSource;

import com.zaxxer.hikari.HikariDataSource;
import org.jspecify.annotations.Nullable;
import org.postgresql.ds.PGSimpleDataSource;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionStatus;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.Worker;
import dev.pgworker.WorkerClient;
import dev.pgworker.WorkerSettings;
import dev.pgworker.history.HistorySettings;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;

/** PgWorker. */
record Ours(String name, WorkerSettings settings, boolean direct) implements Contender {

    /** How many jobs the tuned worker claims at most at a time; the plain loop does the same. */
    static final int BATCH = 2_000;

    private static final WorkerSettings TUNED_SETTINGS = tuned().build();

    private static final HistorySettings HISTORY_SETTINGS =
            HistorySettings.builder().enabled(true).build();

    static final Contender DEFAULT = new Ours("ours", WorkerSettings.builder().build(), false);
    static final Contender TUNED = new Ours("ours-tuned", TUNED_SETTINGS, false);

    /** With a direct task. */
    static final Contender DIRECT = new Ours("ours-direct", TUNED_SETTINGS, true);

    /** Each of them in a schema that keeps a history. */
    static final Contender HISTORY = new Ours(
            "ours-history", WorkerSettings.builder().history(HISTORY_SETTINGS).build(), false);

    static final Contender TUNED_HISTORY =
            new Ours("ours-tuned-history", tuned().history(HISTORY_SETTINGS).build(), false);
    static final Contender DIRECT_HISTORY =
            new Ours("ours-direct-history", tuned().history(HISTORY_SETTINGS).build(), true);

    private static final Task<Payload> TASK = Task.of(GraphileTables.TASK, Payload.class);

    private static WorkerSettings.Builder tuned() {
        return WorkerSettings.builder().concurrency(10).localQueueSize(BATCH);
    }

    /** Returns whether the schema keeps a history. */
    boolean keepsHistory() {
        return Boolean.TRUE.equals(settings.history().enabled());
    }

    @Override
    public boolean addsItsOwnWay() {
        return this == DEFAULT;
    }

    @Override
    public boolean onGraphileTables() {
        return true;
    }

    @Override
    public boolean hasQueues() {
        return true;
    }

    @Override
    public String mark() {
        return GraphileTables.MARK;
    }

    @Override
    public String unfinished() {
        return GraphileTables.UNFINISHED;
    }

    @Override
    public List<String> command(Options options, String jdbcUrl) {
        return JvmQueue.command(this, options, jdbcUrl);
    }

    @Override
    public Optional<JvmQueue.Factory> jvmQueue() {
        return Optional.of((dataSource, probe) -> new Queue(settings, direct, dataSource, probe));
    }

    private static final class Queue implements JvmQueue {

        private final DataSource dataSource;
        private final Worker worker;
        private final JobScheduler scheduler;
        private final PlatformTransactionManager transactions;

        Queue(WorkerSettings settings, boolean direct, DataSource dataSource, Probe probe) {
            this.dataSource = dataSource;
            transactions = new DataSourceTransactionManager(dataSource);
            worker = Worker.builder(dataSource)
                    .privateDataSource(own(dataSource))
                    .settings(settings)
                    .tasks(List.of(TaskRegistration.<Payload>of(TASK, (payload, context) -> probe.run(payload))
                            .with(TaskOptions.DEFAULT.withDirect(direct))))
                    .build();
            scheduler = WorkerClient.jobScheduler(dataSource, WorkerSchema.DEFAULT, new PayloadCodec(new JsonMapper()));
        }

        /** What the starter gives the worker. */
        private static DataSource own(DataSource pool) {
            PGSimpleDataSource own = new PGSimpleDataSource();
            own.setURL(((HikariDataSource) pool).getJdbcUrl());
            return own;
        }

        @Override
        public void createTables() {
            new SchemaMigrator(dataSource, WorkerSchema.DEFAULT).migrate();
        }

        @Override
        public void start() {
            worker.start();
        }

        @Override
        public void stop() {
            worker.stop();
        }

        @Override
        public void add(Payload payload, @Nullable Long runAtMicros) {
            scheduler.addJob(
                    TASK,
                    payload,
                    runAtMicros == null
                            ? JobSpec.DEFAULT
                            : JobSpec.builder()
                                    .runAt(Instant.EPOCH.plus(runAtMicros, ChronoUnit.MICROS))
                                    .build());
        }

        @Override
        public long addAndCommit(Payload payload, @Nullable Long runAtMicros) {
            TransactionStatus transaction = transactions.getTransaction(null);
            add(payload, runAtMicros);
            long commit = Probe.nowMicros();
            transactions.commit(transaction);
            return commit;
        }

        @Override
        public void addAll(List<Payload> payloads) {
            scheduler.addJobs(TASK, payloads);
        }
    }
}
