package dev.pgworker;

import java.sql.Timestamp;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.stream.Stream;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import tools.jackson.databind.JsonNode;

import dev.pgworker.crontab.CronItem;
import dev.pgworker.crontab.Crontab;
import dev.pgworker.crontab.CrontabException;
import dev.pgworker.event.WorkerEvent.CronJobAdded;
import dev.pgworker.event.WorkerEvent.CronStarted;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.job.Task;
import dev.pgworker.task.ScheduledRun;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Recurring jobs in a worker, from the schedule to the handler. */
class CrontabTest {

    private static final Task<JsonNode> REPORT = Task.of("report", JsonNode.class);

    @RegisterExtension
    final TestSchema db = new TestSchema(10);

    private final RecordingListener events = new RecordingListener();

    @Test
    void aWorkerSchedulesAndRunsItsRecurringJobs() {
        db.start(worker());
        events.await(CronStarted.class);
        db.sql("update {schema}._private_known_crontabs set last_execution = ?, known_since = ?")
                .param(Timestamp.from(Instant.now().minus(Duration.ofMinutes(3))))
                .param(Timestamp.from(Instant.now().minus(Duration.ofMinutes(3))))
                .update();

        RecordingListener later = new RecordingListener();
        db.start(worker().listener(later));

        CronJobAdded added = later.await(CronJobAdded.class);
        assertThat(added.identifier()).isEqualTo("often");
        assertThat(added.backfilled()).isTrue();
        Awaitility.await()
                .until(() -> Stream.of(events, later)
                        .flatMap(listener -> listener.all(JobCompleted.class).stream())
                        .anyMatch(completed -> completed.job().id() == added.jobId()));
    }

    /** Whether the handler runs in a batch of its own transaction or not, and whatever an interceptor makes of the payload. */
    @Test
    void aHandlerIsToldTheExecutionThatItIsFor() {
        BlockingQueue<Optional<ScheduledRun>> runs = new LinkedBlockingQueue<>();
        Worker worker = db.start(db.worker()
                .task(REPORT, (report, context) -> runs.add(context.scheduledRun()))
                .tasks(List.of(TaskRegistration.of(
                                Task.of("direct", JsonNode.class),
                                (report, context) -> runs.add(context.scheduledRun()))
                        .with(TaskOptions.DEFAULT.withDirect(true))))
                .jobInterceptor((context, execution) -> execution.proceed("{\"hidden\":true}"))
                .crontab(Crontab.parse("t", "0 0 1 1 * report ?id=r {a: 1}\n0 0 1 1 * direct {}")));

        Instant before = db.sql("select date_trunc('milliseconds', clock_timestamp())")
                .query((row, i) -> row.getTimestamp(1).toInstant())
                .single();
        for (String item : List.of("r", "direct")) {
            worker.recurringJobs().trigger(item);
            ScheduledRun run =
                    Awaitility.await().until(runs::poll, Objects::nonNull).orElseThrow();
            assertThat(run.schedule()).isEqualTo(item);
            assertThat(run.backfilled()).isFalse();
            assertThat(run.scheduledAt()).isBetween(before, before.plus(Duration.ofMinutes(1)));
        }
        db.scheduler().addJob("report", Map.of("_cron", 7));
        Optional<ScheduledRun> none = Awaitility.await().until(runs::poll, Objects::nonNull);
        assertThat(none).isEmpty();
    }

    @Test
    void stoppingEndsTheSchedule() {
        Worker worker = db.start(worker());
        events.await(CronStarted.class);

        worker.stop();

        assertThat(Thread.getAllStackTraces().keySet())
                .extracting(Thread::getName)
                .doesNotContain("worker-cron");
    }

    @Test
    void aWorkerWithoutACrontabRegistersNothing() {
        db.start(db.worker().task(REPORT, (report, context) -> {}));

        assertThat(Thread.getAllStackTraces().keySet())
                .extracting(Thread::getName)
                .doesNotContain("worker-cron");
    }

    @Test
    void identifiersMustDifferAcrossAllSources() {
        Worker.Builder builder =
                worker().cronItem(CronItem.of("other").everyMinute().id("often").build());

        assertThatThrownBy(builder::build)
                .isInstanceOf(CrontabException.class)
                .hasMessage(
                        "a CronItem of task other: \"often\": identifier is taken by line 1 of test; set another id");
    }

    private Worker.Builder worker() {
        return db.worker()
                .task(REPORT, (report, context) -> {})
                .listener(events)
                .crontab(Crontab.parse("test", "* * * * * report ?id=often&fill=1h"))
                .cronItem(CronItem.of(REPORT).dailyAt(3, 0).build());
    }
}
