package dev.pgworker;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.core.ParameterizedTypeReference;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.CannotCreateTransactionException;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.TransactionSystemException;
import org.springframework.transaction.support.DefaultTransactionStatus;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.event.WorkerEvent.JobSnoozed;
import dev.pgworker.job.Task;
import dev.pgworker.task.BatchResult;
import dev.pgworker.task.JobControlException;
import dev.pgworker.task.JobHandler;
import dev.pgworker.task.JobHandlerMethods;
import dev.pgworker.task.JobTimeoutException;
import dev.pgworker.task.RetryDelay;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

/** Which exceptions are retried. */
class RetryKindTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final RecordingListener events = new RecordingListener();

    private static TaskOptions options(
            Set<Class<? extends Throwable>> noRetryFor, Set<Class<? extends Throwable>> retryFor) {
        return TaskOptions.DEFAULT
                .withNoRetryFor(noRetryFor)
                .withRetryFor(retryFor)
                .withRetryDelay(RetryDelay.fixed(Duration.ZERO));
    }

    @Test
    void theClosestTypeDecides() {
        assertThat(TaskOptions.DEFAULT.retries(new Error())).isTrue();
        TaskOptions none = options(Set.of(IOException.class), Set.of());
        assertThat(none.retries(new FileNotFoundException())).isFalse();
        assertThat(none.retries(new IllegalStateException())).isTrue();
        TaskOptions only = options(Set.of(), Set.of(IOException.class));
        assertThat(only.retries(new FileNotFoundException())).isTrue();
        assertThat(only.retries(new IllegalStateException())).isFalse();
        assertThat(only.retries(new StackOverflowError())).isFalse();
        TaskOptions both = options(
                Set.of(IllegalArgumentException.class, FileNotFoundException.class),
                Set.of(NumberFormatException.class, IOException.class));
        assertThat(both.retries(new NumberFormatException())).isTrue();
        assertThat(both.retries(new IllegalArgumentException())).isFalse();
        assertThat(both.retries(new FileNotFoundException())).isFalse();
        assertThat(both.retries(new IOException())).isTrue();
        assertThat(both.retries(new IllegalStateException())).isTrue();
    }

    @Test
    void whatFitsNoTypeIsJudgedByItsCauses() {
        TaskOptions none = options(Set.of(IOException.class), Set.of(UncheckedIOException.class));
        assertThat(none.retries(new IllegalStateException(new ExecutionException(new IOException()))))
                .isFalse();
        assertThat(none.retries(new UncheckedIOException(new IOException())))
                .as("the outer one fits")
                .isTrue();
        assertThat(none.retries(new Exception() {
                    @Override
                    public synchronized Throwable getCause() {
                        throw new IllegalStateException("on purpose");
                    }
                }))
                .isTrue();
        Exception first = new Exception();
        first.initCause(new Exception(first));
        assertThat(none.retries(first)).isTrue();
    }

    @Test
    void aTypeCannotBeBoth() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> options(Set.of(IOException.class), Set.of(IOException.class)))
                .withMessage("noRetryFor and retryFor must not both have java.io.IOException");
    }

    static class Annotated {

        @JobHandler(value = "work", noRetryFor = IllegalArgumentException.class, retryFor = NumberFormatException.class)
        void work(int number) {}
    }

    @Test
    void isReadFromTheAnnotation() {
        TaskOptions read = JobHandlerMethods.find(new Annotated()).get(0).options();

        assertThat(read.noRetryFor()).containsExactly(IllegalArgumentException.class);
        assertThat(read.retryFor()).containsExactly(NumberFormatException.class);
    }

    private void start(TaskRegistration task) {
        db.start(db.worker()
                .listener(events)
                .transactionManager(new DataSourceTransactionManager(db.dataSource()))
                .tasks(List.of(task)));
    }

    @ParameterizedTest
    @ValueSource(strings = {"usual", "direct", "transactional"})
    void failsForGoodAtOnceOrIsRetried(String way) {
        start(TaskRegistration.of(WORK, (n, context) -> {
                    if (n == 1) {
                        throw new IllegalArgumentException("hopeless");
                    } else if (n == 2 && context.job().attempts() < 3) {
                        throw new NumberFormatException("again");
                    } else if (n == 3 && context.job().attempts() < 2) {
                        throw JobControlException.retryIn(Duration.ZERO, "as it says", new IllegalArgumentException());
                    }
                })
                .with(options(Set.of(IllegalArgumentException.class), Set.of(NumberFormatException.class))
                        .withDirect(way.equals("direct"))
                        .withTransactional(way.equals("transactional"))));
        long hopeless = db.scheduler().addJob(WORK, 1).id();
        db.scheduler().addJob(WORK, 2);
        db.scheduler().addJob(WORK, 3);

        events.await(JobCompleted.class, 2);
        JobFailed failed = events.await(JobFailed.class, event -> event.job().id() == hopeless);
        assertThat(failed.permanently()).isTrue();
        // An attempt may have succeeded before its listeners hear of the one before.
        assertThat(events.await(JobFailed.class, 4)).hasSize(4);
        assertThat(db.queries().find(hopeless).orElseThrow().attempts()).isEqualTo(1);
        assertThat(db.queries().find(hopeless).orElseThrow().maxAttempts()).isEqualTo(1);
        assertThat(events.all(JobSnoozed.class)).isEmpty();
    }

    @Test
    void aBatchIsRetriedIfOneOfItsFailedItemsIs() {
        Task<List<Integer>> batch = Task.of("batch", new ParameterizedTypeReference<>() {});
        start(TaskRegistration.ofBatch(batch, (items, context) -> {
                    List<Throwable> errors = new ArrayList<>();
                    for (int item : items) {
                        errors.add(item == 1 ? new IllegalArgumentException() : new IOException());
                    }
                    return BatchResult.of(errors);
                })
                .with(options(Set.of(IllegalArgumentException.class), Set.of()).withMaxAttempts(2)));
        long all = db.scheduler().addBatchJob(batch, List.of(1, 1)).id();
        long some = db.scheduler().addBatchJob(batch, List.of(1, 2)).id();

        events.await(JobFailed.class, 2, event -> event.job().id() == some);
        assertThat(events.await(JobFailed.class, event -> event.job().id() == all)
                        .permanently())
                .isTrue();
        assertThat(events.all(JobFailed.class)).hasSize(3);
    }

    @Test
    @Tag("thorough")
    void aTimeoutIsAKindLikeOthersAlsoWhereTheHandlerDoesNotReact() throws Exception {
        CountDownLatch end = new CountDownLatch(1);
        start(TaskRegistration.of(WORK, (n, context) -> {
                    if (n == 1) {
                        new CountDownLatch(1).await();
                    }
                    while (end.getCount() > 0) {
                        try {
                            end.await();
                        } catch (InterruptedException e) {
                            // Does not react.
                        }
                    }
                })
                .with(options(Set.of(JobTimeoutException.class), Set.of()).withTimeout(Duration.ofMillis(100))));
        db.scheduler().addJob(WORK, 1);
        db.scheduler().addJob(WORK, 2);

        assertThat(events.await(JobFailed.class, 2)).allMatch(JobFailed::permanently);
        end.countDown();
    }

    @Test
    @Tag("thorough")
    void aHandlerThatDoesNotReactToItsTimeoutIsRetriedAsItsPolicySays() throws Exception {
        CountDownLatch end = new CountDownLatch(1);
        start(TaskRegistration.of(WORK, (n, context) -> {
                    while (end.getCount() > 0) {
                        try {
                            end.await();
                        } catch (InterruptedException e) {
                            // Does not react.
                        }
                    }
                })
                .with(TaskOptions.DEFAULT
                        .withTimeout(Duration.ofMillis(100))
                        .withRetryDelay((job, error) ->
                                error instanceof JobTimeoutException ? Duration.ofHours(2) : Duration.ofHours(1))));
        long id = db.scheduler().addJob(WORK, 1).id();

        assertThat(events.await(JobFailed.class).permanently()).isFalse();
        assertThat(Duration.between(
                        db.queries().now(), db.queries().find(id).orElseThrow().runAt()))
                .isBetween(Duration.ofMinutes(119), Duration.ofHours(2));
        end.countDown();
    }

    /** What it throws is of no kind that {@code retryFor} names, and not of the handler's making. */
    @ParameterizedTest
    @CsvSource({"begin, false", "commit, false", "deferred, true"})
    void whatTheDatabaseDoesToTheTransactionIsRetriedWhateverTheKinds(String when, boolean permanently) {
        AtomicBoolean failed = new AtomicBoolean();
        JdbcTransactionManager failing = new JdbcTransactionManager(db.dataSource()) {

            private static final long serialVersionUID = 1L;

            @Override
            protected void doBegin(Object transaction, TransactionDefinition definition) {
                if (when.equals("begin") && failed.compareAndSet(false, true)) {
                    throw new CannotCreateTransactionException("on purpose");
                }
                super.doBegin(transaction, definition);
            }

            @Override
            protected void doCommit(DefaultTransactionStatus status) {
                if (!when.equals("begin") && failed.compareAndSet(false, true)) {
                    doRollback(status);
                    throw new TransactionSystemException(
                            "on purpose", new SQLException("", when.equals("commit") ? "08006" : "23503"));
                }
                super.doCommit(status);
            }
        };
        db.start(db.worker()
                .tasks(List.of(TaskRegistration.of(WORK, (n, context) -> {})
                        .with(options(Set.of(RuntimeException.class), Set.of(IOException.class))
                                .withTransactional(true)
                                .withRetryDelay(RetryDelay.fixed(Duration.ZERO)))))
                .transactionManager(failing)
                .listener(events));
        db.scheduler().addJob(WORK, 1);

        assertThat(events.await(JobFailed.class).permanently()).isEqualTo(permanently);
        if (!permanently) {
            events.await(JobCompleted.class);
        }
    }
}
