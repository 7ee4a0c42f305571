package dev.pgworker.chaos;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.support.JdbcTransactionManager;

import dev.pgworker.Worker;
import dev.pgworker.WorkerSettings;
import dev.pgworker.event.WorkerEvent.JobLost;
import dev.pgworker.event.WorkerEvent.WorkerLost;
import dev.pgworker.event.WorkerEvent.WorkersRecovered;
import dev.pgworker.job.Task;
import dev.pgworker.recovery.RecoverySettings;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.JobControlException;
import dev.pgworker.task.RetryDelay;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testing.TestSchema;

/**
 * The main class of the worker processes. Arguments: the worker's JDBC URL, the one it listens on, that of the ledger, the
 * number of the process, and the time of day at which {@link System#nanoTime} is 0, in nanoseconds since 1970. Stops when its standard input ends; a line there is a number of milliseconds for which to take every connection
 * of the pool.
 */
final class ChaosWorker {

    static final Task<ChaosJob> WORK = Task.of("work", ChaosJob.class);
    /** Not served by Node.js, as little as the direct and transactional ones. */
    static final Task<ChaosJob> LONG = Task.of("long", ChaosJob.class);

    static final Task<ChaosJob> DIRECT = Task.of("direct", ChaosJob.class);
    static final Task<ChaosJob> TRANSACTIONAL = Task.of("transactional", ChaosJob.class);
    static final Duration THRESHOLD = Duration.ofSeconds(4);
    static final Duration SWEEP_INTERVAL = Duration.ofSeconds(1);
    static final int MAX_RECOVERIES = 3;
    static final int CONCURRENCY = 4;

    private static final int POOL = 10;
    private static final Duration RETRY = Duration.ofMillis(200);

    private final HikariDataSource pool;
    private final HikariDataSource listenPool;
    private final Ledger ledger;
    private final int process;

    private ChaosWorker(String url, String listenUrl, String ledgerUrl, int process, long origin) {
        pool = pool(url, POOL);
        listenPool = url.equals(listenUrl) ? pool : pool(listenUrl, 1);
        ledger = new Ledger(pool(ledgerUrl, POOL), () -> Instant.EPOCH.plusNanos(origin + System.nanoTime()));
        this.process = process;
    }

    public static void main(String[] args) throws Exception {
        new ChaosWorker(args[0], args[1], args[2], Integer.parseInt(args[3]), Long.parseLong(args[4])).run();
    }

    /** Returns a pool that may be opened while the server is away. */
    static HikariDataSource pool(String url, int size) {
        HikariConfig config = TestSchema.poolConfig(url, size);
        config.setConnectionTimeout(2_000);
        config.setInitializationFailTimeout(-1);
        // A pool that has to ask for it is of no use for good if the connection breaks that it asks first.
        config.setTransactionIsolation("TRANSACTION_READ_COMMITTED");
        return new HikariDataSource(config);
    }

    private void run() throws Exception {
        ledger.startNotes();
        Worker worker = worker();
        worker.start();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            exhaust(Duration.ofMillis(Long.parseLong(line)));
        }
        worker.stop();
        ledger.finishNotes();
        System.exit(0);
    }

    private Worker worker() {
        TaskOptions options = TaskOptions.DEFAULT.withRetryDelay(RetryDelay.fixed(RETRY));
        return Worker.builder(pool)
                .listenDataSource(listenPool)
                .transactionManager(new JdbcTransactionManager(pool))
                .settings(WorkerSettings.builder()
                        .concurrency(CONCURRENCY)
                        .pollInterval(Duration.ofSeconds(1))
                        .interruptedJobRetryDelay(RETRY)
                        .recovery(recovery())
                        .build())
                .tasks(List.of(
                        TaskRegistration.of(WORK, this::handle).with(options),
                        TaskRegistration.of(LONG, this::handle).with(options),
                        TaskRegistration.of(DIRECT, this::handle).with(options.withDirect(true)),
                        TaskRegistration.of(TRANSACTIONAL, this::handle).with(options.withTransactional(true))))
                .listener(event -> {
                    if (event instanceof WorkerLost lost) {
                        ledger.lost(lost.workerId(), lost.reason());
                    } else if (event instanceof JobLost lost) {
                        ledger.lostJob(lost.workerId(), process, lost.job().id());
                    } else if (event instanceof WorkersRecovered recovered) {
                        recovered.deadWorkerIds().forEach(ledger::foundDead);
                    }
                })
                .build();
    }

    private static RecoverySettings recovery() {
        return RecoverySettings.builder()
                .enabled(true)
                .heartbeatInterval(Duration.ofSeconds(1))
                .sweepInterval(SWEEP_INTERVAL)
                .sweepThreshold(THRESHOLD)
                .recoveryDelay(Duration.ZERO)
                .maxRecoveries(MAX_RECOVERIES)
                .build();
    }

    private void handle(ChaosJob job, JobContext context) throws Exception {
        UUID run = UUID.randomUUID();
        String how = "snoozed";
        try {
            // The row may be there although its answer was lost: such a run has an end, too.
            orSnooze(() -> ledger.started(run, job, process, context));
            how = "failed";
            work(job, context);
            how = "snoozed";
            orSnooze(() -> ledger.done(run));
            how = "done";
        } catch (InterruptedException e) {
            how = "interrupted";
            throw e;
        } finally {
            ledger.ended(run, how);
        }
    }

    private void work(ChaosJob job, JobContext context) throws InterruptedException {
        TimeUnit.MILLISECONDS.sleep(job.millis());
        switch (job.kind()) {
            case FAILS_ONCE -> {
                if (context.attempt() == 1) {
                    throw new IllegalStateException("Fails once");
                }
            }
            case TRANSACTIONAL ->
                JdbcClient.create(pool)
                        .sql("insert into chaos.effect values (?)")
                        .param(job.n())
                        .update();
            default -> {}
        }
    }

    /** A run that cannot be written into the ledger is none: it must not count as an attempt either. */
    private static void orSnooze(Runnable write) {
        try {
            write.run();
        } catch (DataAccessException e) {
            throw JobControlException.snoozeFor(RETRY);
        }
    }

    private void exhaust(Duration time) throws InterruptedException {
        List<Connection> taken = new ArrayList<>();
        try {
            while (taken.size() < POOL - 1) {
                taken.add(pool.getConnection());
            }
        } catch (SQLException e) {
            // The server is away, or the engine has the others: there is nothing more to take.
        }
        TimeUnit.NANOSECONDS.sleep(time.toNanos());
        taken.forEach(pool::evictConnection);
    }
}
