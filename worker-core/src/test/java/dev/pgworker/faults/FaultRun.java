package dev.pgworker.faults;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;

import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.AppenderBase;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import org.slf4j.LoggerFactory;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;

import dev.pgworker.Worker;
import dev.pgworker.WorkerClient;
import dev.pgworker.WorkerSettings;
import dev.pgworker.WorkerStatus;
import dev.pgworker.faults.FaultyCallbacks.Work;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

/**
 * A worker that runs a few jobs while everything around it fails for a moment. When the faults have stopped, each job must
 * end by its own doing, and nothing that the worker had at its start may be missing.
 */
final class FaultRun {

    /** How long jobs may take to end when the faults have stopped: less than until the next look of every minute. */
    private static final Duration LIMIT = Duration.ofSeconds(45);

    private static final Duration REGULAR_LOOK = Duration.ofSeconds(70);

    /** How much longer to look whether something is late or never comes. */
    private static final Duration LATE = Duration.ofSeconds(Integer.getInteger("pgworker.faults.late-seconds", 3));

    /** Threads that start when they are first needed. */
    private static final Set<String> ON_DEMAND =
            Set.of("worker-timeout", "worker-flags", "worker-hand-over", "worker-claim-cancel", "worker-vacuum-cancel");

    private static final Duration GRACE = Duration.ofMillis(200);
    private static final Task<Integer> BLOCKING = Task.of("blocking", Integer.class);
    private static final int MOST_FAULTS = 100;
    private static final int MOST_OVERLAPS = 5;
    private static final int LONGEST_LINE = 300;

    private final long seed;
    private final WorkerSchema schema;
    private final HikariDataSource clean;
    private final FaultPlan plan;
    private final SplittableRandom random;
    private final Runs runs = new Runs();
    private final List<String> problems = new ArrayList<>();
    private final Map<Long, String> added = new TreeMap<>();
    private final List<String> laps = new ArrayList<>();
    private long lapAt = System.nanoTime();
    private final LogLines log = new LogLines();
    private final Set<Thread> threadsBefore =
            new HashSet<>(Thread.getAllStackTraces().keySet());

    private final int concurrency;
    private final boolean ownThreads;
    private final boolean stoppedUnderFaults;

    /** Whether the tasks that are not transactional are direct. */
    private final boolean direct;

    private final WorkerSettings settings;

    private final AtomicInteger blocked = new AtomicInteger();
    private final CountDownLatch allBlocked;
    private final CountDownLatch release = new CountDownLatch(1);

    /**
     * Prepares a run.
     *
     * @param clean connections that do not fail
     */
    FaultRun(long seed, WorkerSchema schema, HikariDataSource clean) {
        this.seed = seed;
        this.schema = schema;
        this.clean = clean;
        plan = new FaultPlan(seed);
        random = new SplittableRandom(~seed);
        concurrency = 1 + random.nextInt(5);
        ownThreads = random.nextInt(4) == 0;
        stoppedUnderFaults = random.nextInt(5) == 0;
        direct = random.nextBoolean();
        settings = WorkerSettings.builder()
                .concurrency(concurrency)
                .localQueueSize(oneOf(0, 5, 500))
                .localQueueTtl(Duration.ofMillis(oneOf(50, 300, 1_000)))
                .queueRunLimit(oneOf(1, 3, 100))
                .pollInterval(Duration.ofMillis(oneOf(100, 500, 2_000)))
                .shutdownGracePeriod(GRACE)
                .interruptedJobRetryDelay(Duration.ZERO)
                .vacuum(random.nextInt(4) == 0)
                .build();
        allBlocked = new CountDownLatch(concurrency);
    }

    private int oneOf(int... values) {
        return values[random.nextInt(values.length)];
    }

    /** Runs, and returns what went wrong with all that is needed to understand it; null if nothing did. */
    String problems() throws Exception {
        empty();
        log.attach();
        HikariConfig config = TestSchema.poolConfig(TestPostgres.jdbcUrl(), concurrency + (direct ? 10 : 6));
        config.setAutoCommit(random.nextInt(4) > 0);
        String report = null;
        try (HikariDataSource pool = new HikariDataSource(config);
                FaultyExecutor executor = new FaultyExecutor(plan)) {
            FaultyDataSource faulty = new FaultyDataSource(pool, plan);
            Worker worker = worker(faulty, executor);
            try {
                work(worker, faulty);
                if (problems.isEmpty()) {
                    end(worker, faulty);
                }
                runs.overlaps().stream().limit(MOST_OVERLAPS).forEach(problems::add);
                report = report(faulty);
            } finally {
                plan.end();
                release.countDown();
                worker.stop();
            }
            if (!executor.end() && problems.isEmpty()) {
                problems.add("a thread of the handler executor does not end");
                report = report(faulty);
            }
        } finally {
            log.detach();
        }
        return report;
    }

    private void work(Worker worker, FaultyDataSource faulty) throws Exception {
        lap("preparation");
        boolean fromTheStart = random.nextBoolean();
        addJobs(10);
        if (fromTheStart) {
            plan.begin();
        }
        worker.start();
        Set<String> threadsAtStart = new TreeSet<>(workerThreads());
        plan.begin();
        addJobs(20);
        // One that had just been started may not have shown.
        threadsAtStart.addAll(workerThreads());
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(oneOf(60, 120, 250));
        await(Duration.ofNanos(until - System.nanoTime()), () -> unfinished() == 0);
        if (stoppedUnderFaults) {
            stopUnderFaults(worker, faulty);
            worker.start();
        } else {
            plan.end();
        }
        lap("faults");
        String id = worker.id();
        require(() -> unfinished() == 0 && lockedQueues() == 0, "jobs or queues have not ended by themselves");
        if (!problems.isEmpty()) {
            return;
        }
        lap("drain");
        checkEnds();
        check(
                runs.mostActive() <= concurrency + (direct ? 2 : 0),
                "so many handlers ran at once: " + runs.mostActive());
        require(() -> free(worker), "slots are not free: " + worker.status());
        lap("slots");
        block();
        lap("blocking");
        require(
                () -> List.copyOf(threadsAtStart).equals(workerThreads()),
                "threads are not " + threadsAtStart + " as at the start");
        require(
                () -> worker.scheduledTasks().stream().allMatch(task -> task.nextExecution() != null),
                "periodic tasks have ended");
        require(
                () -> faulty.borrowers().stream()
                                .filter(borrower ->
                                        borrower.equals("worker-listen") || borrower.startsWith("worker-direct-"))
                                .count()
                        == faulty.borrowers().size(),
                "connections have not been given back");
        lap("connections");
        check(worker.id() != null && worker.id().equals(id), "the worker has started over");
    }

    private boolean free(Worker worker) {
        WorkerStatus status = worker.status();
        return status != null
                && status.running() == 0
                && status.waiting() == 0
                && status.deadThreads().isEmpty();
    }

    /** Nothing may stay locked by a worker that has ended and is not registered: no sweep would find it. */
    private void stopUnderFaults(Worker worker, FaultyDataSource faulty) {
        long begin = System.nanoTime();
        Thread ending = new Thread(
                () -> {
                    LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(100));
                    plan.end();
                },
                "rig-end-of-faults");
        ending.start();
        try {
            worker.stop();
        } catch (RuntimeException | Error e) {
            problems.add("a stop threw " + e + " at " + List.of(e.getStackTrace()));
        }
        // A listener that the stop called may have interrupted it.
        boolean unused = Thread.interrupted();
        long millis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begin);
        plan.end();
        check(
                millis < settings.stopLimit().plus(LIMIT).toMillis(),
                "a stop while everything failed took " + millis + " ms");
        require(this::allStopped, "threads are left after a stop");
        require(() -> faulty.borrowers().isEmpty(), "connections are left after a stop");
        List<String> unregistered = jdbc("select distinct locked_by from"
                        + " (select locked_by from {schema}._private_jobs union all"
                        + " select locked_by from {schema}._private_job_queues) held"
                        + " where locked_by is not null"
                        + " and locked_by not in (select id from {schema}._private_workers)")
                .query(String.class)
                .list();
        check(unregistered.isEmpty(), "a worker has deregistered and still holds jobs or queues");
        jdbc("select {schema}.force_unlock_workers(array(select id from {schema}._private_workers))")
                .query()
                .listOfRows();
        jdbc("delete from {schema}._private_workers").update();
    }

    private void end(Worker worker, FaultyDataSource faulty) {
        long begin = System.nanoTime();
        worker.stop();
        lap("stop");
        long millis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begin);
        check(millis < LIMIT.toMillis(), "a stop took " + millis + " ms");
        require(this::allStopped, "threads are left after the stop");
        require(() -> faulty.borrowers().isEmpty(), "connections are left after the stop");
        check(count("select count(*) from {schema}._private_workers") == 0, "the worker is still registered");
    }

    private Worker worker(FaultyDataSource faulty, FaultyExecutor executor) {
        Worker.Builder builder = Worker.builder(faulty)
                .schema(schema)
                .settings(settings)
                .transactionManager(new DataSourceTransactionManager(faulty))
                .handlerExecutor(ownThreads ? null : executor)
                .task(BLOCKING, (number, context) -> {
                    blocked.incrementAndGet();
                    allBlocked.countDown();
                    release.await();
                });
        new FaultyCallbacks(plan, runs, schema, faulty).give(builder, direct);
        return builder.build();
    }

    private void addJobs(int amount) {
        JobScheduler scheduler = scheduler();
        for (int i = 0; i < amount; i++) {
            Work work = new Work(random.nextInt(1_000));
            JobSpec.Builder spec = JobSpec.builder().priority(oneOf(0, 0, 0, -1, 5));
            if (random.nextInt(5) < 2) {
                spec.queueName("queue-" + random.nextInt(3));
            }
            if (random.nextInt(6) == 0) {
                spec.jobKey("key-" + random.nextInt(3))
                        .jobKeyMode(List.of(JobKeyMode.values()).get(random.nextInt(3)));
            }
            if (random.nextInt(4) == 0) {
                spec.maxAttempts(oneOf(1, 2, 3));
            }
            if (random.nextInt(10) == 0) {
                spec.runIn(Duration.ofMillis(oneOf(20, 100)));
            }
            if (random.nextInt(8) == 0) {
                spec.flags("some");
            }
            Job job = switch (random.nextInt(8)) {
                case 0, 1 -> scheduler.addJob(FaultyCallbacks.TRANSACTIONAL, work, spec.build());
                case 2 ->
                    scheduler.addBatchJob(FaultyCallbacks.BATCH, List.of(work, new Work(1), new Work(2)), spec.build());
                case 3 -> scheduler.addJob(FaultyCallbacks.TIMED, work, spec.build());
                case 4 -> scheduler.addJob(FaultyCallbacks.ADDING, work, spec.build());
                default -> scheduler.addJob(FaultyCallbacks.PLAIN, work, spec.build());
            };
            added.put(job.id(), job.taskIdentifier());
        }
    }

    private JobScheduler scheduler() {
        return WorkerClient.jobScheduler(
                clean, schema, new PayloadCodec(tools.jackson.databind.json.JsonMapper.shared()));
    }

    /** Runs as many jobs at once as the worker has slots: all of them have to be there. */
    private void block() throws InterruptedException {
        JobScheduler scheduler = scheduler();
        for (int i = 0; i < concurrency + 2; i++) {
            scheduler.addJob(BLOCKING, i);
        }
        boolean all = allBlocked.await(LIMIT.toMillis(), TimeUnit.MILLISECONDS);
        check(all, "slots are missing: of " + concurrency + " jobs run at once " + blocked.get());
        check(blocked.get() <= concurrency, "there are more than " + concurrency + " slots: " + blocked.get());
        release.countDown();
        require(() -> unfinished() == 0, "blocking jobs have not ended");
    }

    /** Every job was deleted because it succeeded, or is left because its attempts are used up. */
    private void checkEnds() {
        Map<Long, Row> left = new TreeMap<>();
        rows().forEach(row -> left.put(row.id(), row));
        added.forEach((id, task) -> {
            Row row = left.get(id);
            if (row == null) {
                check(runs.hasSucceeded(id), "deleted although it never succeeded: " + id + " " + task);
            }
            if (task.equals("transactional") || task.equals("adding")) {
                int expected = row == null && !runs.wasSkipped(id) ? 1 : 0;
                long traces = traces(id);
                check(
                        traces == expected || (runs.wasSkipped(id) && traces <= 1),
                        "effects of " + task + " job " + id + ": " + traces + " instead of " + expected);
            }
        });
    }

    private long traces(long jobId) {
        return jdbc("select count(*) from {schema}.traces where job_id = ?")
                .param(jobId)
                .query(Long.class)
                .single();
    }

    /** Counts the jobs that have not ended; a job that waits for a later time is made due. */
    private long unfinished() {
        jdbc("select {schema}.reschedule_jobs(array(select id from {schema}._private_jobs"
                        + " where locked_at is null and attempts < max_attempts"
                        + " and run_at > now() + interval '1 s'), run_at => now())")
                .query()
                .listOfRows();
        jdbc("select pg_notify('jobs:insert', '') where exists (select from {schema}._private_jobs"
                        + " where locked_at is null and attempts < max_attempts and revision > 0)")
                .query()
                .listOfRows();
        return count(
                "select count(*) from {schema}._private_jobs where locked_at is not null or attempts < max_attempts");
    }

    private long lockedQueues() {
        return count("select count(*) from {schema}._private_job_queues where locked_by is not null");
    }

    /** A row of a job. */
    record Row(
            long id,
            String task,
            String queue,
            int attempts,
            int maxAttempts,
            String runAt,
            String lockedBy,
            String key) {}

    private List<Row> rows() {
        return jdbc("select id, task_identifier, queue_name, attempts, max_attempts, run_at::text, locked_by, key"
                        + " from {schema}.jobs order by id")
                .query((row, number) -> new Row(
                        row.getLong(1),
                        row.getString(2),
                        row.getString(3),
                        row.getInt(4),
                        row.getInt(5),
                        row.getString(6),
                        row.getString(7),
                        row.getString(8)))
                .list();
    }

    private void empty() {
        jdbc("truncate {schema}._private_jobs, {schema}._private_job_queues, {schema}._private_workers, {schema}.traces")
                .update();
    }

    private JdbcClient.StatementSpec jdbc(String sql) {
        return JdbcClient.create(clean).sql(schema.in(sql));
    }

    private long count(String sql) {
        return jdbc(sql).query(Long.class).single();
    }

    private void check(boolean fine, String problem) {
        if (!fine) {
            problems.add(problem);
        }
    }

    /**
     * Demands that something is so within the limit, and says whether it comes later or not at all. Nobody has a reason to
     * doubt a claim that was made twice without a word: it is found by the look of every minute.
     */
    private void require(BooleanSupplier condition, String problem) {
        if (!await(LIMIT, condition) && !(plan.hasRepeatedClaims() && await(REGULAR_LOOK, condition))) {
            long begin = System.nanoTime();
            boolean late = await(LATE, condition);
            problems.add(problem + " after " + LIMIT.toSeconds() + " s"
                    + (late
                            ? ", but " + TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begin) + " ms later"
                            : " nor " + LATE.toSeconds() + " s later"));
        }
    }

    /** Notes how long a part of the run took. */
    private void lap(String part) {
        long time = System.nanoTime();
        laps.add(part + " " + TimeUnit.NANOSECONDS.toMillis(time - lapAt));
        lapAt = time;
    }

    private static boolean await(Duration limit, BooleanSupplier condition) {
        long deadline = System.nanoTime() + limit.toNanos();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - deadline >= 0) {
                return false;
            }
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(10));
        }
        return true;
    }

    /** Returns the names of the worker's threads, but for those that come and go with jobs, and those of periodic tasks. */
    private List<String> workerThreads() {
        // Names first: a new thread of the pool takes the name of a task only when its stack shows the pool.
        Map<Thread, String> names = new HashMap<>();
        threads().forEach(thread -> names.put(thread, thread.getName()));
        Map<Thread, StackTraceElement[]> stacks = Thread.getAllStackTraces();
        return names.entrySet().stream()
                .filter(thread -> stacks.containsKey(thread.getKey()) && !isOfPool(stacks.get(thread.getKey())))
                .map(Map.Entry::getValue)
                .filter(name -> name.startsWith("worker-")
                        && !name.startsWith("worker-job")
                        && !name.startsWith("worker-schedule-")
                        && !ON_DEMAND.contains(name))
                .sorted()
                .toList();
    }

    /** A thread of a pool has the name of a periodic task while it executes one. */
    private static boolean isOfPool(StackTraceElement[] stack) {
        return Arrays.stream(stack)
                .anyMatch(frame -> frame.getClassName().startsWith("java.util.concurrent.ThreadPoolExecutor"));
    }

    private boolean allStopped() {
        return threads().stream().noneMatch(thread -> thread.getName().startsWith("worker-"));
    }

    private List<Thread> threads() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> !threadsBefore.contains(thread))
                .toList();
    }

    private String report(FaultyDataSource faulty) {
        if (problems.isEmpty()) {
            return null;
        }
        StringBuilder text = new StringBuilder(10_000);
        text.append("Seed ").append(seed).append(" (-Dpgworker.faults.seed=").append(seed);
        text.append(" -Dpgworker.faults.runs=1)\n");
        problems.forEach(problem -> text.append("  PROBLEM ").append(problem).append('\n'));
        text.append("  ").append(settings).append(ownThreads ? ", own threads" : ", faulty executor");
        text.append(stoppedUnderFaults ? ", stopped under faults\n" : "\n");
        text.append("  ").append(plan).append('\n');
        text.append("  milliseconds: ").append(laps).append('\n');
        text.append("Jobs left:\n");
        rows().forEach(row -> text.append("  ").append(row).append('\n'));
        text.append("Queues locked:\n");
        jdbc("select queue_name, locked_by from {schema}._private_job_queues where locked_by is not null")
                .query()
                .listOfRows()
                .forEach(row -> text.append("  ").append(row).append('\n'));
        text.append("Workers registered: ")
                .append(jdbc("select id from {schema}._private_workers")
                        .query(String.class)
                        .list())
                .append("\nConnections out:\n");
        faulty.borrowings().forEach(taken -> appendStack(text, taken.getMessage(), taken.getStackTrace()));
        text.append("Faults:\n");
        List<String> done = plan.done();
        done.subList(Math.max(0, done.size() - MOST_FAULTS), done.size())
                .forEach(fault -> text.append("  ").append(fault).append('\n'));
        text.append("Log:\n");
        log.lines().forEach(line -> text.append("  ").append(line).append('\n'));
        text.append("Threads:\n");
        threads().stream()
                .filter(FaultRun::isOfInterest)
                .forEach(thread ->
                        appendStack(text, thread.getName() + " " + thread.getState(), thread.getStackTrace()));
        return text.toString();
    }

    private static boolean isOfInterest(Thread thread) {
        return (thread.getName().startsWith("worker-") || thread.getName().startsWith("rig-"))
                && Arrays.stream(thread.getStackTrace())
                        .noneMatch(frame -> frame.getMethodName().equals("getTask"));
    }

    private static void appendStack(StringBuilder text, String title, StackTraceElement[] stack) {
        text.append("  ").append(title).append('\n');
        Arrays.stream(stack)
                .limit(12)
                .forEach(frame -> text.append("      ").append(frame).append('\n'));
    }

    /** Keeps what is logged first and last, and keeps it off the console. */
    private final class LogLines extends AppenderBase<ILoggingEvent> {

        private static final int EACH = 40;

        private final List<String> first = new ArrayList<>();
        private final Deque<String> last = new ArrayDeque<>();
        private final List<Logger> loggers = Stream.of("dev.pgworker", "com.zaxxer", "org.springframework")
                .map(name -> (Logger) LoggerFactory.getLogger(name))
                .toList();

        void attach() {
            start();
            loggers.forEach(logger -> {
                logger.setAdditive(false);
                logger.addAppender(this);
            });
        }

        void detach() {
            loggers.forEach(logger -> {
                logger.detachAppender(this);
                logger.setAdditive(true);
            });
            stop();
        }

        @Override
        protected void append(ILoggingEvent event) {
            String line = "+" + plan.millis() + " ms " + event.getLevel() + " [" + event.getThreadName() + "] "
                    + event.getFormattedMessage();
            if (event.getThrowableProxy() != null) {
                line += " <- " + event.getThrowableProxy().getClassName();
            }
            keep(line.length() > LONGEST_LINE ? line.substring(0, LONGEST_LINE) : line);
        }

        private synchronized void keep(String line) {
            if (first.size() < EACH) {
                first.add(line);
                return;
            }
            last.add(line);
            if (last.size() > EACH) {
                last.removeFirst();
            }
        }

        synchronized List<String> lines() {
            List<String> lines = new ArrayList<>(first);
            lines.add("...");
            lines.addAll(last);
            return lines;
        }
    }
}
