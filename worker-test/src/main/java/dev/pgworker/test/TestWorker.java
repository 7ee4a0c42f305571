package dev.pgworker.test;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.stream.Stream;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.Worker;
import dev.pgworker.WorkerClient;
import dev.pgworker.WorkerStatus;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.job.ActiveWorker;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobPage;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.Task;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.step.JobSignals;
import dev.pgworker.step.JobStep;
import dev.pgworker.step.StepSettings;
import dev.pgworker.task.PayloadCodec;

/**
 * The worker of an application as its tests use it. It runs due jobs on request and returns how each job ended,
 * shows the jobs, and advances the time.
 *
 * <p>{@link AutoConfigureTestWorker @AutoConfigureTestWorker} makes one a bean; {@link #create} makes one without Spring Boot.
 *
 * <p>It is for a schema that only the test uses: {@link #runDue} runs all jobs that it finds there, and {@link #advance} and
 * {@link #clear} change them all. Tests that share a schema must not run at the same time.
 *
 * @since 0.1.0
 */
public final class TestWorker implements AutoCloseable {

    private static final Duration DEFAULT_TIMEOUT = Duration.ofSeconds(10);
    private static final Duration LONGEST_ADVANCE = Duration.ofDays(36_500);
    private static final int PAGE = 1000;

    /** Twice as old as the heartbeat of a worker usually gets. */
    private static final Duration LIVING = Duration.ofMinutes(1);

    private final Supplier<@Nullable Worker> worker;
    private final Supplier<List<Worker>> neighbours;
    private final JobScheduler jobScheduler;
    private final PayloadCodec codec;
    private final JobQueries queries;
    private final JobSignals signals;
    private final TestSchemaTables tables;
    private final RunRecorder recorder;

    /** Held by what runs jobs on the caller's behalf. */
    private final Lock running = new ReentrantLock();

    /**
     * Creates a test worker.
     *
     * @param neighbours gives the workers of the same application, which may work in the same schema
     */
    TestWorker(
            Supplier<@Nullable Worker> worker,
            Supplier<List<Worker>> neighbours,
            DataSource dataSource,
            WorkerSchema schema,
            PayloadCodec codec,
            JobScheduler jobScheduler,
            RunRecorder recorder) {
        this.worker = worker;
        this.neighbours = neighbours;
        this.jobScheduler = jobScheduler;
        this.codec = codec;
        this.queries = WorkerClient.jobQueries(dataSource, schema);
        this.signals = WorkerClient.jobSignals(dataSource, schema, codec, StepSettings.DEFAULT);
        this.tables = new TestSchemaTables(dataSource, schema);
        this.recorder = recorder;
    }

    /**
     * Returns a test worker for a worker that exists, or will when it is used. The worker must have been built with the {@link
     * #listener} as a direct listener.
     *
     * @param worker gives the worker; null if the application has none
     * @param dataSource the worker's data source
     * @param schema the worker's schema, which is installed
     * @param codec how the application reads and writes payloads
     * @param jobScheduler the application's scheduler
     */
    public static TestWorker of(
            Supplier<@Nullable Worker> worker,
            DataSource dataSource,
            WorkerSchema schema,
            PayloadCodec codec,
            JobScheduler jobScheduler) {
        return new TestWorker(worker, List::of, dataSource, schema, codec, jobScheduler, new RunRecorder());
    }

    /**
     * Returns a test worker with a worker of its own, which is not started. Payloads are read and written by a plain {@code
     * JsonMapper}.
     *
     * @param schema an installed schema
     * @param customizer adds the tasks, and may set anything else but the schema and the codec
     */
    public static TestWorker create(DataSource dataSource, WorkerSchema schema, Consumer<Worker.Builder> customizer) {
        PayloadCodec codec = new PayloadCodec(new JsonMapper());
        JobScheduler scheduler = WorkerClient.jobScheduler(dataSource, schema, codec);
        RunRecorder recorder = new RunRecorder();
        Worker.Builder builder =
                Worker.builder(dataSource).jobScheduler(scheduler).directListener(recorder);
        customizer.accept(builder);
        Worker worker = builder.schema(schema).codec(codec).build();
        return new TestWorker(() -> worker, List::of, dataSource, schema, codec, scheduler, recorder);
    }

    /** Returns what a worker that was built by hand needs as a direct listener. */
    public WorkerEventListener listener() {
        return recorder;
    }

    /** Returns where the test may add jobs. */
    public JobScheduler jobScheduler() {
        return jobScheduler;
    }

    /** Returns where the test may send signals to jobs that wait for them; {@link #runDue} runs those that have one. */
    public JobSignals signals() {
        return signals;
    }

    /**
     * Returns what is recorded of the steps of a job, in the order in which they began, with their results. Of a job that has ended only while
     * the worker is not started, or the history has it.
     *
     * @param job only its id counts
     */
    public List<JobStep> steps(Job job) {
        return queries.steps(job.id(), true);
    }

    /** Returns which steps an attempt ran, and which earlier attempts had recorded; of the same jobs as {@link #steps(Job)}. */
    public RunSteps steps(JobRun run) {
        List<String> ran = new ArrayList<>();
        List<String> recorded = new ArrayList<>();
        for (JobStep step : steps(run.job())) {
            if (step.claimedAt().equals(run.job().lockedAt())) {
                ran.add(step.name());
            } else if (step.claimedAt()
                    .isBefore(Objects.requireNonNull(run.job().lockedAt()))) {
                recorded.add(step.name());
            }
        }
        return new RunSteps(ran, recorded);
    }

    /** As {@link #runDue(Duration)}, for at most ten seconds. */
    public JobRuns runDue() {
        return runDue(DEFAULT_TIMEOUT);
    }

    /**
     * Runs every due job that the worker has a handler for, and returns when none is left. This includes jobs that
     * become due during the call. A handler that fails does not fail the call: {@code assertThat(runs).allCompleted()} does.
     *
     * @param timeout how long that may take, positive
     * @return how each attempt ended, none if nothing was due
     * @throws AssertionError if the time is over; the message names the jobs that still run
     * @throws IllegalStateException if there is no worker, if it is started, or in a transaction, whose jobs no worker sees
     */
    public JobRuns runDue(Duration timeout) {
        requirePositive(timeout);
        requireNoTransaction("run jobs");
        Worker used = worker();
        running.lock();
        try {
            if (used.isRunning()) {
                throw new IllegalStateException(
                        "The worker is started and runs due jobs by itself: wait for one with await,"
                                + " or leave the start to the test with pgworker.auto-startup=false");
            }
            long before = recorder.total();
            long ran = runOnce(used, timeout);
            long recorded = recorder.total() - before;
            if (ran > 0 && recorded == 0) {
                throw new IllegalStateException("The worker has run " + ran + " jobs without a word to this TestWorker:"
                        + " build it with TestWorker.listener() as a direct listener");
            }
            List<JobRun> all = recorder.runs();
            int first = (int) Math.max(0, all.size() - recorded);
            return withNext(all.subList(first, all.size()));
        } finally {
            running.unlock();
        }
    }

    /** On a thread of its own, which can be interrupted when the time is over. */
    private long runOnce(Worker used, Duration timeout) {
        FutureTask<Long> pass = new FutureTask<>(used::runOnce);
        Thread thread = new Thread(pass, "test-worker");
        thread.setDaemon(true);
        thread.start();
        try {
            return pass.get(timeout.toNanos(), TimeUnit.NANOSECONDS);
        } catch (TimeoutException e) {
            String message = "Jobs were still being run after " + timeout + ": " + recorder.running() + "; " + runs();
            end(thread);
            throw new AssertionError(message, e);
        } catch (InterruptedException e) {
            end(thread);
            Thread.currentThread().interrupt();
            throw new IllegalStateException("Interrupted while jobs were run", e);
        } catch (ExecutionException e) {
            if (e.getCause() instanceof RuntimeException failure) {
                throw failure;
            } else if (e.getCause() instanceof Error failure) {
                throw failure;
            }
            throw new IllegalStateException("The jobs could not be run", e.getCause());
        }
    }

    /** Waits for handlers to give in, so that the next test does not meet them, but not for those that ignore interrupts. */
    private static void end(Thread thread) {
        thread.interrupt();
        try {
            thread.join(DEFAULT_TIMEOUT.toMillis());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** As {@link #await(Job, Duration)}, for at most ten seconds. */
    public JobRun await(Job job) {
        return await(job, DEFAULT_TIMEOUT);
    }

    /**
     * Waits until an attempt of a job has ended, and returns how; of several the last. If the worker is not started, the due
     * jobs are run first.
     *
     * @param job as it was when it was added; only its id counts
     * @param timeout how long to wait, positive
     * @throws AssertionError if no attempt has ended; the message says in what state the job is, and why
     * @throws IllegalStateException as {@link #runDue}
     */
    public JobRun await(Job job, Duration timeout) {
        if (job.isSkipped()) {
            throw new IllegalArgumentException("The job was not added: a ScheduleInterceptor kept it out");
        }
        return await(
                run -> run.job().id() == job.id(),
                timeout,
                used -> job + " has not been run, because "
                        + new JobDiagnosis(queries, tables, used).of(job.id(), jobs()));
    }

    /** As {@link #await(Task, Duration)}, for at most ten seconds. */
    public JobRun await(Task<?> task) {
        return await(task, DEFAULT_TIMEOUT);
    }

    /**
     * Waits until an attempt of a job of this task has ended since the test began, and returns how; of several the last. If the
     * worker is not started, the due jobs are run first.
     *
     * @param timeout how long to wait, positive
     * @throws AssertionError if no attempt has ended; the message says in what state the jobs are
     * @throws IllegalStateException as {@link #runDue}
     */
    public JobRun await(Task<?> task, Duration timeout) {
        return await(task.identifier(), timeout);
    }

    /** As {@link #await(String, Duration)}, for at most ten seconds. */
    public JobRun await(String identifier) {
        return await(identifier, DEFAULT_TIMEOUT);
    }

    /** As {@link #await(Task, Duration)}, by the identifier of the task. */
    public JobRun await(String identifier, Duration timeout) {
        return await(run -> run.job().taskIdentifier().equals(identifier), timeout, used -> {
            EnqueuedJobs jobs = jobs();
            String served = used.tasks().contains(identifier)
                    ? ""
                    : ", and this worker has no handler for it, only for " + used.tasks();
            return jobs.of(identifier).list().stream()
                    .findFirst()
                    .map(job -> job + " has not been run, because "
                            + new JobDiagnosis(queries, tables, used).of(job.id(), jobs))
                    .orElseGet(() -> "No job of task \"" + identifier + "\" has been run"
                            + ", and there is none that is committed" + served + ". In all, " + jobs);
        });
    }

    private JobRun await(Predicate<JobRun> which, Duration timeout, Function<Worker, String> reason) {
        requirePositive(timeout);
        requireNoTransaction("wait for a job");
        Worker used = worker();
        if (used.isRunning()) {
            await(() -> last(which) != null, timeout);
        } else {
            runDue(timeout);
        }
        JobRun found = last(which);
        if (found == null) {
            throw new AssertionError(reason.apply(used) + (used.isRunning() ? ". Waited for " + timeout : ""));
        }
        return withNext(List.of(found)).list().get(0);
    }

    private @Nullable JobRun last(Predicate<JobRun> which) {
        List<JobRun> runs = recorder.runs();
        for (int i = runs.size() - 1; i >= 0; i--) {
            if (which.test(runs.get(i))) {
                return runs.get(i);
            }
        }
        return null;
    }

    /** Returns the attempts that have ended since the test began, in that order. */
    public JobRuns runs() {
        return new JobRuns(recorder.runs());
    }

    /** Adds to the last run of each job what the database has of it. */
    private JobRuns withNext(List<JobRun> runs) {
        List<JobRun> described = new ArrayList<>(runs);
        Set<Long> seen = new HashSet<>();
        for (int i = described.size() - 1; i >= 0; i--) {
            JobRun run = described.get(i);
            if (run.outcome() != JobRun.Outcome.COMPLETED && seen.add(run.job().id())) {
                described.set(i, run.withNext(queries.find(run.job().id()).orElse(null)));
            }
        }
        return new JobRuns(described);
    }

    /**
     * Returns the jobs there are, those included that the test's own transaction has added and not yet committed: those that
     * wait, run or have failed. Completed ones are deleted, and stand in {@link #runs}.
     */
    public EnqueuedJobs jobs() {
        List<Job> jobs = new ArrayList<>();
        Long after = null;
        do {
            JobPage page =
                    queries.list(JobQuery.builder().pageSize(PAGE).after(after).build());
            jobs.addAll(page.jobs());
            after = page.next();
        } while (after != null);
        Collections.reverse(jobs);
        return new EnqueuedJobs(jobs, codec, tables.now(), runs());
    }

    /**
     * Advances the time for the jobs. It moves every time of the schema so far into the past: when jobs are due, were
     * locked or failed, when workers last sent a heartbeat, and, by whole minutes, when recurring jobs were last
     * executed. The clocks of the database and of this JVM stay as they are.
     *
     * <p>A worker of the application that is started is stopped before and started again afterwards. To recurring jobs this looks as if it had not
     * run for that time: those with a fill are made up for.
     *
     * @param duration how much time passes, to the millisecond; not negative, at most 36,500 days
     * @throws IllegalStateException if another worker lives in the schema, or in a transaction
     */
    public void advance(Duration duration) {
        if (duration.isNegative() || duration.compareTo(LONGEST_ADVANCE) > 0) {
            throw new IllegalArgumentException(
                    "duration must be between 0 and " + LONGEST_ADVANCE.toDays() + " days, but is " + duration);
        }
        change("advance", () -> tables.advance(duration));
    }

    /**
     * Deletes all jobs of the schema, its queues, registrations of workers, and what is known of recurring jobs, and forgets the
     * {@link #runs}. A worker of the application that is started is stopped before and started again afterwards.
     *
     * @throws IllegalStateException if another worker lives in the schema, or in a transaction
     */
    public void clear() {
        change("clear", () -> {
            tables.clear();
            recorder.clear();
        });
    }

    private void change(String action, Runnable change) {
        requireNoTransaction(action);
        running.lock();
        try {
            Worker own = worker.get();
            if (own != null && own.isRunning()) {
                awaitStarted(own);
            }
            List<Worker> started = Stream.concat(Stream.ofNullable(own), neighbours.get().stream())
                    .distinct()
                    .filter(Worker::isRunning)
                    .toList();
            started.forEach(Worker::stop);
            try {
                requireNoOtherWorker(action);
                change.run();
            } finally {
                started.forEach(Worker::start);
            }
            if (own != null && own.isRunning()) {
                awaitStarted(own);
            }
        } finally {
            running.unlock();
        }
    }

    private void requireNoOtherWorker(String action) {
        List<String> others = queries.activeWorkers(LIVING).stream()
                .filter(other -> !other.stale())
                .map(ActiveWorker::id)
                .toList();
        if (!others.isEmpty()) {
            throw new IllegalStateException(
                    "Cannot " + action + ": the schema has other workers, which sent a heartbeat within"
                            + " the last minute: " + others
                            + ". Give the test a schema of its own with pgworker.schema.name, or wait"
                            + " until a worker that was killed is forgotten");
        }
    }

    /** Forgets the runs, as before each test. */
    void forgetRuns() {
        recorder.clear();
    }

    /** Starts the worker, which then runs jobs by itself, and returns when it {@linkplain Worker#awaitStarted has started}. */
    public void start() {
        Worker used = worker();
        used.start();
        awaitStarted(used);
    }

    private static void awaitStarted(Worker used) {
        try {
            boolean started = used.awaitStarted(DEFAULT_TIMEOUT);
            WorkerStatus status = used.status();
            if (!started && status != null) {
                throw new AssertionError("The worker has not started in " + DEFAULT_TIMEOUT + ": " + status.starting()
                        + (status.outage() ? ". It cannot use the database" : ""));
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("Interrupted while waiting for the worker", e);
        }
    }

    /** Stops the worker and returns when its handlers have ended; does nothing if it is not started or there is none. */
    public void stop() {
        Worker used = worker.get();
        if (used != null) {
            used.stop();
        }
    }

    /** As {@link #stop}. */
    @Override
    public void close() {
        stop();
    }

    private Worker worker() {
        return Objects.requireNonNullElseGet(worker.get(), () -> {
            throw new IllegalStateException(
                    "There is no Worker, so that no job can be run: pgworker.enabled is false, or there is no DataSource");
        });
    }

    private static void requireNoTransaction(String action) {
        if (TransactionSynchronizationManager.isActualTransactionActive()) {
            throw new IllegalStateException(
                    "Cannot " + action + " in a transaction, whose jobs no worker sees before it is"
                            + " committed. End it before with TestTransaction.flagForCommit() and end(), or annotate the test with"
                            + " @Transactional(propagation = Propagation.NOT_SUPPORTED); jobs() shows the jobs of the transaction");
        }
    }

    private static void requirePositive(Duration timeout) {
        if (timeout.isNegative() || timeout.isZero() || timeout.compareTo(Duration.ofDays(1)) > 0) {
            throw new IllegalArgumentException("timeout must be positive and at most a day, but is " + timeout);
        }
    }

    private boolean await(BooleanSupplier condition, Duration timeout) {
        try {
            return recorder.await(condition, timeout.toNanos());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("Interrupted while waiting for the worker", e);
        }
    }
}
