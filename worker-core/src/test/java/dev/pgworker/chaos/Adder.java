package dev.pgworker.chaos;

import java.time.Duration;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;

import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.TransactionException;
import org.springframework.transaction.support.TransactionTemplate;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.WorkerClient;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.PayloadCodec;

/** Adds jobs of all kinds until it is stopped; each together with its row of the ledger, or not at all. */
final class Adder {

    private static final int QUEUES = 4;
    private static final int KEYS = 10;

    private final JobScheduler scheduler;
    private final TransactionTemplate transaction;
    private final Ledger ledger;
    private final Random random;
    private final long pauseMillis;
    private final Thread thread = new Thread(this::run, "adder");
    private final AtomicInteger numbers = new AtomicInteger();
    private volatile boolean stopped;

    Adder(DataSource dataSource, Random random, long pauseMillis) {
        scheduler = WorkerClient.jobScheduler(dataSource, WorkerSchema.DEFAULT, new PayloadCodec(new JsonMapper()));
        transaction = new TransactionTemplate(new JdbcTransactionManager(dataSource));
        ledger = new Ledger(dataSource);
        this.random = random;
        this.pauseMillis = pauseMillis;
    }

    void start() {
        thread.start();
    }

    void stop() throws InterruptedException {
        stopped = true;
        thread.join();
    }

    private void run() {
        while (!stopped) {
            ChaosJob job = job(numbers.getAndIncrement());
            add(job, spec(job));
            try {
                TimeUnit.MILLISECONDS.sleep(pauseMillis);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    /**
     * Adds a long job that starts before others, if possible; every second one with others behind it in its queue, which
     * begin too early if the queue is freed too early. May be called by any thread.
     *
     * @param millis how long it takes
     * @return the number of the long job
     */
    int addLong(int millis) {
        int n = numbers.getAndIncrement();
        ChaosJob job = new ChaosJob(n, ChaosJob.Kind.LONG, millis);
        JobSpec.Builder spec = JobSpec.builder().priority(-1);
        if (n % 2 == 1) {
            add(job, spec.build());
            return n;
        }
        String queue = "long-" + n;
        add(job, spec.queueName(queue).build());
        for (int i = 0; i < 3; i++) {
            add(
                    new ChaosJob(numbers.getAndIncrement(), ChaosJob.Kind.QUEUED, 30),
                    JobSpec.builder().queueName(queue).build());
        }
        return n;
    }

    private void add(ChaosJob job, JobSpec spec) {
        try {
            transaction.executeWithoutResult(status -> addWithLedger(job, spec));
        } catch (DataAccessException | TransactionException e) {
            // Whether the job has been added, the ledger knows.
        }
    }

    private void addWithLedger(ChaosJob job, JobSpec spec) {
        Task<ChaosJob> task = switch (job.kind()) {
            case TRANSACTIONAL -> ChaosWorker.TRANSACTIONAL;
            case LONG -> ChaosWorker.LONG;
            case DIRECT -> ChaosWorker.DIRECT;
            default -> ChaosWorker.WORK;
        };
        Job added = scheduler.addJob(task, job, spec);
        ledger.added(job, added);
    }

    private ChaosJob job(int n) {
        int percent = random.nextInt(100);
        ChaosJob.Kind kind = percent < 15
                ? ChaosJob.Kind.PLAIN
                : percent < 30
                        ? ChaosJob.Kind.DIRECT
                        : percent < 65
                                ? ChaosJob.Kind.QUEUED
                                : percent < 80
                                        ? ChaosJob.Kind.TRANSACTIONAL
                                        : percent < 90 ? ChaosJob.Kind.FAILS_ONCE : ChaosJob.Kind.KEYED;
        // A queue that is held up by a fault has to be able to catch up.
        boolean slow = random.nextInt(kind == ChaosJob.Kind.QUEUED ? 80 : 20) == 0;
        return new ChaosJob(n, kind, slow ? 1_000 + random.nextInt(2_000) : random.nextInt(30));
    }

    private JobSpec spec(ChaosJob job) {
        JobSpec.Builder spec = JobSpec.builder();
        boolean queued = switch (job.kind()) {
            case QUEUED -> true;
            case TRANSACTIONAL, FAILS_ONCE -> random.nextInt(3) == 0;
            default -> false;
        };
        if (queued) {
            spec.queueName("queue-" + random.nextInt(QUEUES));
        }
        if (job.kind() == ChaosJob.Kind.KEYED) {
            spec.jobKey("key-" + random.nextInt(KEYS)).runIn(Duration.ofMillis(random.nextInt(500)));
        }
        return spec.build();
    }
}
