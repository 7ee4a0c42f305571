package dev.pgworker.autoconfigure;

import java.util.Arrays;
import java.util.List;
import java.util.Objects;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.Worker;
import dev.pgworker.WorkerStatus;
import dev.pgworker.autoconfigure.testing.Greetings;
import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.event.WorkerEvent.ListenerConnecting;
import dev.pgworker.job.ActiveWorker;
import dev.pgworker.job.JobQueries;
import dev.pgworker.schedule.RecurringQuery;

import static org.assertj.core.api.Assertions.assertThat;

/** What is there when an application has started. */
class StartedInApplicationTest {

    @RegisterExtension
    final TestDatabase db = new TestDatabase().installed();

    /** Each worker does not listen before the application waits for it. */
    @Test
    void theApplicationHasStartedWhenItsWorkersHave() {
        Thread starting = Thread.currentThread();
        db.runner()
                .withBean(Greetings.class)
                .withPropertyValues(
                        "pgworker.crontab=0 4 * * * hello ?id=nightly",
                        "pgworker.instances.reports.crontab=0 5 * * * report ?id=of-reports")
                .withBean(
                        "late",
                        WorkerBuilderCustomizer.class,
                        () -> builder -> builder.directListener(event -> {
                            if (event instanceof ListenerConnecting) {
                                Awaitility.await().until(() -> isWaiting(starting));
                            }
                        }))
                .run(context -> {
                    List<Worker> workers = context.getBean(WorkerInstances.class).all().stream()
                            .map(instance -> Objects.requireNonNull(instance.worker()))
                            .toList();
                    assertThat(workers)
                            .hasSize(2)
                            .extracting(Worker::status)
                            .allMatch(WorkerStatus::listening)
                            .allMatch(status -> status.starting().isEmpty());
                    JobQueries queries = context.getBean(WorkerInstances.class)
                            .get(WorkerInstances.DEFAULT)
                            .jobQueries();
                    assertThat(queries.registeredWorkers())
                            .extracting(ActiveWorker::id)
                            .containsExactlyInAnyOrderElementsOf(
                                    workers.stream().map(Worker::id).toList());
                    assertThat(workers.get(0).recurringJobs().list(RecurringQuery.ALL))
                            .hasSize(2)
                            .allMatch(job -> job.createdAt() != null);
                });
    }

    private static boolean isWaiting(Thread thread) {
        return Arrays.stream(thread.getStackTrace())
                .anyMatch(frame -> frame.getClassName().equals(WorkerLifecycle.class.getName())
                        && frame.getMethodName().equals("awaitStarted"));
    }
}
