package dev.pgworker;

import java.io.PrintWriter;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import javax.sql.DataSource;

import org.awaitility.Awaitility;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.util.PSQLException;
import org.postgresql.util.ServerErrorMessage;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;

import dev.pgworker.event.WorkerEvent.ClaimsReconciled;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobErrored;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.event.WorkerEvent.JobLost;
import dev.pgworker.event.WorkerEvent.JobSnoozed;
import dev.pgworker.event.WorkerEvent.JobSuperseded;
import dev.pgworker.event.WorkerEvent.WorkerStarted;
import dev.pgworker.internal.engine.complete.JobCompleter;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.task.JobControlException;
import dev.pgworker.task.RetryDelay;
import dev.pgworker.task.TaskHandler;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testing.InterceptedDataSource;
import dev.pgworker.testing.LogCapture;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** An outcome that cannot be expressed, or that the database refuses, is that job's own trouble. */
@Tag("thorough")
@Tag("any-postgres")
class HostileOutcomeTest {

    private static final Task<String> WORK = Task.of("work", String.class);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final RecordingListener events = new RecordingListener();

    /** Overrides what exceptions do when they are asked. */
    @SuppressWarnings({"OverrideThrowableToString", "ToStringReturnsNull"}) // on purpose
    private static class Hostile extends RuntimeException {

        private static final long serialVersionUID = 1L;

        static final Map<String, Hostile> ALL = Map.of(
                "message null",
                new Hostile() {
                    @Override
                    public @Nullable String getMessage() {
                        return null;
                    }
                },
                "text null",
                new Hostile() {
                    @Override
                    public @Nullable String toString() {
                        return null;
                    }
                },
                "message throws",
                new Hostile() {
                    @Override
                    public String getMessage() {
                        throw new IllegalStateException("on purpose");
                    }
                },
                "message overflows the stack",
                new Hostile() {
                    @Override
                    @SuppressWarnings("InfiniteRecursion")
                    public String getMessage() {
                        return getMessage();
                    }
                },
                "text throws an Error",
                new Hostile() {
                    @Override
                    public String toString() {
                        throw new AssertionError("on purpose");
                    }
                },
                "trace throws",
                new Hostile() {
                    @Override
                    public void printStackTrace(PrintWriter writer) {
                        throw new IllegalStateException("on purpose");
                    }

                    @Override
                    public StackTraceElement[] getStackTrace() {
                        throw new IllegalStateException("on purpose");
                    }
                },
                "cause throws",
                new Hostile() {
                    @Override
                    public synchronized Throwable getCause() {
                        throw new IllegalStateException("on purpose");
                    }
                },
                "huge message",
                new Hostile() {
                    @Override
                    public String getMessage() {
                        return "\ud800 and \0 ".repeat(500_000);
                    }
                });
    }

    @Test
    void exceptionsWhoseMethodsFailHurtTheirOwnJobsOnly() {
        start((name, context) -> {
            Hostile hostile = Hostile.ALL.get(name);
            if (hostile != null) {
                throw hostile;
            } else if (name.equals("snoozes")) {
                throw JobControlException.snoozeFor(Duration.ofHours(1));
            } else if (name.equals("fails")) {
                throw new IllegalStateException("plainly");
            }
        });
        Hostile.ALL.keySet().forEach(this::add);
        add("snoozes");
        add("fails");
        add("succeeds");

        events.await(JobCompleted.class);
        events.await(JobSnoozed.class);
        List<JobFailed> failed = events.await(JobFailed.class, Hostile.ALL.size() + 1);

        assertThat(failed).noneMatch(JobFailed::permanently);
        assertThat(db.sql("select count(*) from {schema}.jobs where locked_at is null and run_at > now()")
                        .query(Integer.class)
                        .single())
                .isEqualTo(Hostile.ALL.size() + 2);
        assertThat(errors())
                .hasSize(Hostile.ALL.size() + 1)
                .allSatisfy(error -> assertThat(error).isNotBlank());
        assertThat(errors()).anySatisfy(error -> assertThat(error).contains("plainly"));
    }

    /** Delays in the words of {@link Duration}; the usual back-off where the database cannot hold one. */
    @Test
    void delaysOfAnySizeAreKeptOrTheUsualBackOffIsTaken() {
        Map<String, Duration> delays = Map.of(
                "for ever", ChronoUnit.FOREVER.getDuration(),
                "301 years", Duration.ofDays(301 * 365),
                "2^41 s", Duration.ofSeconds(1L << 41),
                "2^53 s", Duration.ofSeconds(1L << 53),
                "least", Duration.ofSeconds(Long.MIN_VALUE),
                "negative", Duration.ofSeconds(-1),
                "a nanosecond", Duration.ofNanos(1));
        RetryDelay policy = (job, error) -> {
            String name = job.payload().replace("\"", "");
            if (name.equals("throws an Error")) {
                throw new AssertionError("on purpose");
            }
            // Null, too: a policy may lie.
            return delays.get(name);
        };
        start(TaskOptions.DEFAULT.withRetryDelay(policy), (name, context) -> {
            throw new IllegalStateException("on purpose");
        });
        delays.keySet().forEach(this::addOnce);
        addOnce("throws an Error");
        addOnce("null");

        // Whose delay is over already fails a second time, maybe before the others have failed once.
        List<String> atOnce = List.of("a nanosecond");
        events.await(JobFailed.class, delays.size() + 2 + atOnce.size());

        for (String name : atOnce) {
            assertThat(runInYears(name)).as(name).isBetween(-1e-5, 1e-5);
        }
        assertThat(runInYears("301 years")).isBetween(300.0, 302.0);
        assertThat(runInYears("2^41 s")).isGreaterThan(69_000);
        for (String usual : List.of("for ever", "2^53 s", "least", "negative", "throws an Error", "null")) {
            assertThat(runInYears(usual)).as(usual).isBetween(-1e-5, 1e-5);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"+12345-06-07T08:09:10.123456Z", "+294276-12-31T23:59:59Z", "-4711-01-01T00:00:00Z"})
    void aTimeOfAnyYearThatTheDatabaseKnowsIsKept(String instant) {
        Instant at = Instant.parse(instant);
        start(TaskOptions.DEFAULT, (name, context) -> {
            throw context.attempt() > 1
                    ? JobControlException.failPermanently("enough")
                    : JobControlException.retryAt(at, "later", null);
        });
        addOnce("work");

        events.await(JobFailed.class);

        assertThat(db.sql("select run_at from {schema}.jobs")
                        .query((row, number) ->
                                row.getObject(1, java.time.OffsetDateTime.class).toInstant())
                        .single())
                .isEqualTo(at);
    }

    @ParameterizedTest
    @ValueSource(ints = {-32768, -746, 0, 32766})
    void aJobWithAnyNumberOfAttemptsFailsAndIsPutOff(int attempts) {
        Job job = db.scheduler()
                .addJob(WORK, "x", JobSpec.builder().maxAttempts(32767).build());
        db.sql("update {schema}._private_jobs set attempts = ? where id = ?")
                .params(attempts, job.id())
                .update();

        start((name, context) -> {
            throw new IllegalStateException("on purpose");
        });

        assertThat(events.await(JobFailed.class).permanently()).isEqualTo(attempts == 32766);
        assertThat(db.sql("select attempts from {schema}.jobs where locked_at is null")
                        .query(Integer.class)
                        .single())
                .isEqualTo(attempts + 1);
    }

    @Test
    void aJobThatHasBeenDueForEverRunsAndOneThatNeverIsHarmsNobody() {
        Job never = add("never");
        Job always = add("always");
        db.sql("update {schema}._private_jobs set run_at = 'infinity' where id = ?")
                .params(never.id())
                .update();
        db.sql("update {schema}._private_jobs set run_at = '-infinity' where id = ?")
                .params(always.id())
                .update();
        start((name, context) -> {
            if (name.equals("always") && context.attempt() == 1) {
                throw new IllegalStateException("on purpose");
            }
        });

        events.await(JobFailed.class);
        add("later");
        events.await(JobCompleted.class);
        assertThat(db.queries().backlog().ready()).isZero();
        assertThat(events.all(WorkerStarted.class)).hasSize(1);
    }

    /** A trigger of somebody's refuses to let one job be deleted, with an error that may also mean something else. */
    @ParameterizedTest
    @ValueSource(strings = {"P0001", "23514", "40001", "57014", "42P01"})
    void anOutcomeThatTheDatabaseRefusesIsPutAwayAndItsNeighboursAreWritten(String errorCode) throws Exception {
        Job job = endsWhenRefused("delete", errorCode);

        events.await(JobCompleted.class, 8);
        assertThat(events.await(JobFailed.class).job().id()).isEqualTo(job.id());
        assertThat(errors())
                .singleElement()
                .satisfies(error ->
                        assertThat(error).contains("could not be written").contains("not this one"));
    }

    /** A trigger that keeps rows says nothing: jobs that are archived instead of deleted, for instance. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void anOutcomeThatATriggerDropsIsPutAwayAndItsNeighboursAreWritten(boolean succeeds) throws Exception {
        db.sql("""
                create function {schema}.refuse() returns trigger language plpgsql as $$
                begin
                  if old.payload::text = '"refused"' and (tg_op = 'DELETE' or new.last_error like '%on purpose%') then
                    return null;
                  end if;
                  return case when tg_op = 'DELETE' then old else new end;
                end $$;
                create trigger refuse before delete or update on {schema}._private_jobs
                  for each row execute function {schema}.refuse()
                """).update();
        start((name, context) -> {
            if (name.equals("refused") && !succeeds) {
                throw new IllegalStateException("on purpose");
            }
        });
        Job job = add("refused");
        add("accepted");

        events.await(JobCompleted.class);
        assertThat(events.await(JobFailed.class).job().id()).isEqualTo(job.id());
        assertThat(errors())
                .singleElement()
                .satisfies(error ->
                        assertThat(error).contains("could not be written").contains("A trigger keeps"));
    }

    /** Failures wait for no success that cannot be written, and nobody waits for long once it is known which one that is. */
    @ParameterizedTest
    @ValueSource(strings = {"53100", "57014"})
    void aSuccessThatTheDatabaseRefusesKeepsNoFailureUnwritten(String errorCode) throws Exception {
        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch mayEnd = new CountDownLatch(1);
        start((name, context) -> {
            if (name.equals("refused")) {
                started.countDown();
                mayEnd.await();
            } else if (name.equals("fails")) {
                throw new IllegalStateException("on purpose");
            }
        });
        Job job = add("refused");
        started.await();
        db.sql("""
                create function {schema}.refuse() returns trigger language plpgsql as $$
                begin
                  if old.id = %s then raise exception 'not this one' using errcode = '%s'; end if;
                  return old;
                end $$;
                create trigger refuse before delete on {schema}._private_jobs for each row execute function {schema}.refuse()
                """.formatted(job.id(), errorCode)).update();
        mayEnd.countDown();
        for (int i = 1; i <= 3; i++) {
            Job failing = add("fails");
            events.await(JobFailed.class, e -> e.job().id() == failing.id());
        }
    }

    /** As where the disk is full: it may have room again. */
    @Test
    void anOutcomeForWhichTheServerLacksResourcesWaitsAndItsNeighboursAreWritten() throws Exception {
        endsWhenRefused("delete", "53100");

        events.await(JobCompleted.class, 8);
        db.sql("drop trigger refuse on {schema}._private_jobs").update();
        events.await(JobCompleted.class, 9);
        assertThat(events.all(JobFailed.class)).isEmpty();
    }

    /** The server says so of itself, which a trigger cannot: no outcome is given up, whether others fit in or none. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void anOutcomeForWhichTheDiskHasNoRoomWaitsForHoweverLong(boolean othersFit) {
        AtomicInteger tries = new AtomicInteger();
        AtomicInteger runs = new AtomicInteger();
        DataSource full = new InterceptedDataSource(db.dataSource(), (call, proceed) -> {
            try {
                return proceed.proceed();
            } catch (PSQLException e) {
                if (!"53100".equals(e.getSQLState())) {
                    throw e;
                }
                tries.incrementAndGet();
                throw new PSQLException(new ServerErrorMessage(
                        "SERROR\0C53100\0Mcould not extend file: No space left on device\0Fmd.c\0L447\0Rmdextend\0"));
            }
        });
        db.sql("""
                create function {schema}.refuse() returns trigger language plpgsql as $$
                begin
                  if old.payload::text = '"refused"' or not %s then
                    raise exception 'disk full' using errcode = '53100';
                  end if;
                  return old;
                end $$;
                create trigger refuse before delete on {schema}._private_jobs for each row execute function {schema}.refuse()
                """.formatted(othersFit)).update();
        Worker worker = start(Worker.builder(full).schema(db.schema()), TaskOptions.DEFAULT, 10, (name, context) -> {
            if (name.equals("refused")) {
                runs.incrementAndGet();
            }
        });
        add("refused");
        for (int i = 0; i < 4; i++) {
            add("accepted");
        }

        if (othersFit) {
            events.await(JobCompleted.class, 4);
        }
        // Six times as long as other outcomes are tried.
        Awaitility.await().pollDelay(Duration.ofSeconds(3)).until(() -> tries.get() >= 8);
        assertThat(worker.status().outage()).isTrue();
        assertThat(events.all(ClaimsReconciled.class)).isEmpty();
        db.sql("drop trigger refuse on {schema}._private_jobs").update();
        events.await(JobCompleted.class, 5);
        Awaitility.await().until(() -> !worker.status().outage());
        assertThat(runs).hasValue(1);
        assertThat(events.all(ClaimsReconciled.class)).isEmpty();
        assertThat(events.all(JobFailed.class)).isEmpty();
    }

    @Test
    void anOutcomeThatCannotEvenBePutAwayIsLeftToTheAudit() throws Exception {
        try (LogCapture log = new LogCapture(JobCompleter.class)) {
            endsWhenRefused("delete or update", "P0001");

            events.await(JobCompleted.class, 8);
            // Its outcome is refused for as long as the trigger is there.
            add("accepted");
            events.await(JobCompleted.class, 9);
            Awaitility.await()
                    .until(() -> log.messages().stream()
                            .anyMatch(line -> line.contains("cannot be marked as failed either")));
        }
        db.sql("drop trigger refuse on {schema}._private_jobs").update();
        assertThat(events.await(ClaimsReconciled.class).jobs()).isEqualTo(1);
        events.await(JobCompleted.class, 10);
    }

    /** As many as there are slots, and then again: neither can their outcomes be written nor can they be put away. */
    @ParameterizedTest
    @ValueSource(strings = {"P0001", "53100", "57014", "42501", "57P01", "25006"})
    void outcomesThatTheDatabaseRefusesKeepNoSlotForEver(String errorCode) {
        db.sql("""
                create function {schema}.refuse() returns trigger language plpgsql as $$
                begin
                  if old.payload::text = '"refused"' and old.locked_at is not null then
                    raise exception 'not this one' using errcode = '%s';
                  end if;
                  return case when tg_op = 'DELETE' then old else new end;
                end $$;
                create trigger refuse before update or delete on {schema}._private_jobs
                  for each row execute function {schema}.refuse()
                """.formatted(errorCode)).update();
        for (int i = 0; i < 10; i++) {
            add("refused");
        }
        for (int i = 0; i < 100; i++) {
            add("accepted");
        }
        start((name, context) -> {});

        events.await(JobCompleted.class, 100);
        assertThat(db.sql("select count(*) from {schema}.jobs where locked_at is not null")
                        .query(Integer.class)
                        .single())
                .isEqualTo(10);
        db.sql("drop trigger refuse on {schema}._private_jobs").update();
        events.await(JobCompleted.class, 110);
    }

    private Job endsWhenRefused(String operations, String errorCode) throws Exception {
        CountDownLatch started = new CountDownLatch(9);
        CountDownLatch mayEnd = new CountDownLatch(1);
        start(TaskOptions.DEFAULT, 10, (name, context) -> {
            started.countDown();
            mayEnd.await();
        });
        for (int i = 0; i < 8; i++) {
            add("accepted");
        }
        Job job = add("refused");
        started.await();
        db.sql("""
                create function {schema}.refuse() returns trigger language plpgsql as $$
                begin
                  if old.id = %s and (tg_op = 'DELETE' or old.locked_at is not null and new.locked_at is null) then
                    raise exception 'not this one' using errcode = '%s';
                  end if;
                  return case when tg_op = 'DELETE' then old else new end;
                end $$;
                create trigger refuse before %s on {schema}._private_jobs for each row execute function {schema}.refuse()
                """.formatted(job.id(), errorCode, operations)).update();
        mayEnd.countDown();
        return job;
    }

    @Test
    void aSourceOfForbiddenFlagsThatFailsKeepsNoOutcomeUnwritten() throws Exception {
        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch mayEnd = new CountDownLatch(1);
        AtomicInteger failing = new AtomicInteger();
        Worker.Builder builder = db.worker().forbiddenFlags(() -> {
            if (failing.get() > 0) {
                throw new AssertionError("on purpose");
            }
            return List.of();
        });
        start(builder, TaskOptions.DEFAULT, 1, (name, context) -> {
            started.countDown();
            mayEnd.await();
        });
        JobSpec queued = JobSpec.builder().queueName("q").build();
        db.scheduler().addJob(WORK, "first", queued);
        db.scheduler().addJob(WORK, "second", queued);
        started.await();
        failing.set(1);

        mayEnd.countDown();

        events.await(JobCompleted.class);
        failing.set(0);
        events.await(JobCompleted.class, 2);
    }

    @Test
    void aSourceOfForbiddenFlagsThatDoesNotAnswerKeepsNoOutcomeUnwritten() throws Exception {
        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch mayEnd = new CountDownLatch(1);
        CountDownLatch mayAnswer = new CountDownLatch(1);
        AtomicInteger silent = new AtomicInteger();
        Worker.Builder builder = db.worker().forbiddenFlags(() -> {
            if (silent.get() > 0) {
                awaitQuietly(mayAnswer);
            }
            return List.of();
        });
        Worker worker = start(builder, TaskOptions.DEFAULT, 1, (name, context) -> {
            started.countDown();
            mayEnd.await();
        });
        add("first");
        started.await();
        silent.set(1);
        add("second");

        mayEnd.countDown();

        events.await(JobCompleted.class);
        assertThat(db.jobs()).isEqualTo(1);
        assertThat(Objects.requireNonNull(worker.status()).outage()).isFalse();
        silent.set(0);
        mayAnswer.countDown();
        events.await(JobCompleted.class, 2);
    }

    @Test
    void aSourceOfForbiddenFlagsThatIsSlowDelaysNoOutcome() throws Exception {
        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch mayEnd = new CountDownLatch(1);
        CountDownLatch mayAnswer = new CountDownLatch(1);
        AtomicInteger silent = new AtomicInteger();
        Worker.Builder builder = db.worker().forbiddenFlags(() -> {
            if (silent.get() > 0) {
                awaitQuietly(mayAnswer);
            }
            return List.of();
        });
        start(builder, TaskOptions.DEFAULT, 1, (name, context) -> {
            started.countDown();
            mayEnd.await();
        });
        JobSpec queued = JobSpec.builder().queueName("q").build();
        db.scheduler().addJob(WORK, "first", queued);
        db.scheduler().addJob(WORK, "second", queued);
        started.await();
        silent.set(1);
        mayEnd.countDown();

        // The source may take five seconds, the outcome takes a fiftieth of that.
        org.awaitility.Awaitility.await()
                .atMost(Duration.ofMillis(4_500))
                .until(() -> events.all(JobCompleted.class).size() == 1);

        silent.set(0);
        mayAnswer.countDown();
        events.await(JobCompleted.class, 2);
    }

    private static void awaitQuietly(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Test
    void whatTheDatabaseDecidedIsTold() throws Exception {
        CountDownLatch started = new CountDownLatch(3);
        CountDownLatch mayEnd = new CountDownLatch(1);
        start(TaskOptions.DEFAULT.withMaxAttempts(1), 3, (name, context) -> {
            started.countDown();
            mayEnd.await();
            throw new IllegalStateException("on purpose");
        });
        JobSpec keyed = JobSpec.builder().jobKey("k").build();
        Job superseded = db.scheduler().addJob(WORK, "superseded", keyed);
        Job lost = add("lost");
        Job failed = add("failed");
        started.await();
        db.scheduler()
                .addJob(
                        WORK,
                        "newer",
                        JobSpec.builder()
                                .jobKey("k")
                                .runAt(Instant.parse("2100-01-01T00:00:00Z"))
                                .build());
        db.sql("update {schema}._private_jobs set locked_by = 'other' where id = ?")
                .params(lost.id())
                .update();

        mayEnd.countDown();

        assertThat(events.await(JobSuperseded.class).job().id()).isEqualTo(superseded.id());
        assertThat(events.await(JobLost.class).job().id()).isEqualTo(lost.id());
        JobFailed told = events.await(JobFailed.class);
        assertThat(told.job().id()).isEqualTo(failed.id());
        assertThat(told.permanently()).isTrue();
        assertThat(events.all(JobFailed.class)).hasSize(1);
        assertThat(events.all(JobErrored.class)).hasSize(3);
        assertThat(db.sql("select attempts || '/' || max_attempts from {schema}.jobs where id = ?")
                        .param(failed.id())
                        .query(String.class)
                        .single())
                .isEqualTo("1/1");
    }

    static Stream<Throwable> failuresAfterACommit() {
        return Stream.of(new IllegalStateException("on purpose"), new AssertionError("on purpose"));
    }

    @ParameterizedTest
    @MethodSource("failuresAfterACommit")
    void whatFailsAfterTheCommitOfAHandlersTransactionDoesNotUndoIt(Throwable failure) {
        List<Boolean> leftOver = new CopyOnWriteArrayList<>();
        Worker.Builder builder = db.worker().transactionManager(new JdbcTransactionManager(db.dataSource()));
        start(builder, TaskOptions.DEFAULT.withTransactional(true), 1, (name, context) -> {
            leftOver.add(TransactionSynchronizationManager.getSynchronizations().stream()
                    .anyMatch(Late.class::isInstance));
            if (name.equals("fails")) {
                TransactionSynchronizationManager.registerSynchronization(new Late(failure));
            }
        });

        add("fails");
        add("goes on");

        events.await(JobCompleted.class, 2);
        assertThat(events.all(JobErrored.class)).isEmpty();
        assertThat(events.all(JobLost.class)).isEmpty();
        assertThat(leftOver).containsExactly(false, false);
        assertThat(db.jobs()).isZero();
    }

    /** Fails after the commit. */
    private record Late(Throwable failure) implements TransactionSynchronization {
        @Override
        public void afterCommit() {
            if (failure instanceof Error error) {
                throw error;
            }
            throw (RuntimeException) failure;
        }
    }

    @Test
    void aTimeoutOfThreeHundredYearsIsNone() throws Exception {
        start(TaskOptions.DEFAULT.withTimeout(ChronoUnit.FOREVER.getDuration()), (name, context) -> {});
        for (int i = 0; i < 5; i++) {
            add("work");
        }

        events.await(JobCompleted.class, 5);
    }

    private Job add(String name) {
        return db.scheduler().addJob(WORK, name);
    }

    private Job addOnce(String name) {
        return db.scheduler()
                .addJob(WORK, name, JobSpec.builder().maxAttempts(2).build());
    }

    private void start(TaskHandler<String> handler) {
        start(TaskOptions.DEFAULT, handler);
    }

    private void start(TaskOptions options, TaskHandler<String> handler) {
        start(options, 2, handler);
    }

    private Worker start(TaskOptions options, int concurrency, TaskHandler<String> handler) {
        return start(db.worker(), options, concurrency, handler);
    }

    private Worker start(Worker.Builder builder, TaskOptions options, int concurrency, TaskHandler<String> handler) {
        Worker worker = db.start(
                builder.tasks(List.of(TaskRegistration.of(WORK, handler).with(options)))
                        .settings(WorkerSettings.builder()
                                .concurrency(concurrency)
                                .pollInterval(Duration.ofMillis(200))
                                .shutdownGracePeriod(Duration.ofMillis(100))
                                .build())
                        .reconcileInterval(Duration.ofMillis(500))
                        .listener(events));
        events.await(WorkerStarted.class);
        return worker;
    }

    private List<String> errors() {
        return new ArrayList<>(db.sql("select last_error from {schema}.jobs where last_error is not null")
                .query(String.class)
                .list());
    }

    private double runInYears(String name) {
        return db.sql("""
                        select extract(epoch from run_at - now()) / 31557600 from {schema}._private_jobs
                        where payload::text = ?
                        """).param("\"" + name + "\"").query(Double.class).single();
    }
}
