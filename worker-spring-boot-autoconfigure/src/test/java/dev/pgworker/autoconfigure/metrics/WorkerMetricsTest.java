package dev.pgworker.autoconfigure.metrics;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Stream;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.MetricsAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.export.simple.SimpleMetricsExportAutoConfiguration;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

import dev.pgworker.ImpatientWorkers;
import dev.pgworker.autoconfigure.WorkerAutoConfiguration;
import dev.pgworker.autoconfigure.WorkerBuilderCustomizer;
import dev.pgworker.autoconfigure.testing.FailureAnalyses;
import dev.pgworker.autoconfigure.testing.RecordedEvents;
import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.event.RecoveryOutcome;
import dev.pgworker.event.WorkerEvent.ClaimsReconciled;
import dev.pgworker.event.WorkerEvent.JobCancelled;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.event.WorkerEvent.JobLost;
import dev.pgworker.event.WorkerEvent.JobRecovered;
import dev.pgworker.event.WorkerEvent.JobSnoozed;
import dev.pgworker.event.WorkerEvent.JobSuperseded;
import dev.pgworker.event.WorkerEvent.ListenerConnected;
import dev.pgworker.event.WorkerEvent.SupersededJobEnded;
import dev.pgworker.job.DeadWorker;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobChanges;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.SweepOptions;
import dev.pgworker.job.Task;
import dev.pgworker.job.WorkerOperations;
import dev.pgworker.task.JobControlException;
import dev.pgworker.task.TaskRegistration;

import static org.assertj.core.api.Assertions.assertThat;

/** What is measured, and when nothing is. */
class WorkerMetricsTest {

    private static final Task<String> WORK = Task.of("work", String.class);

    @RegisterExtension
    final TestDatabase db = new TestDatabase().installed();

    private final RecordedEvents events = new RecordedEvents();
    private final CountDownLatch running = new CountDownLatch(1);
    private final CountDownLatch release = new CountDownLatch(1);

    private ApplicationContextRunner application() {
        return measured()
                .withBean(RecordedEvents.class, () -> events)
                .withPropertyValues("pgworker.concurrency=4")
                .withBean(
                        TaskRegistration.class,
                        () -> TaskRegistration.of(WORK, (what, context) -> {
                            switch (what) {
                                case "fail" -> throw new IllegalStateException("on purpose");
                                case "retry" ->
                                    throw JobControlException.retryIn(Duration.ofHours(1), "on purpose", null);
                                case "snooze" -> throw JobControlException.snoozeFor(Duration.ofHours(1));
                                case "wait and fail" -> {
                                    running.countDown();
                                    release.await();
                                    throw new IllegalStateException("on purpose");
                                }
                                case "wait" -> {
                                    running.countDown();
                                    release.await();
                                }
                                default -> {}
                            }
                        }));
    }

    private ApplicationContextRunner measured() {
        return db.runner()
                .withConfiguration(AutoConfigurations.of(
                        WorkerMetricsAutoConfiguration.class,
                        MetricsAutoConfiguration.class,
                        SimpleMetricsExportAutoConfiguration.class,
                        CompositeMeterRegistryAutoConfiguration.class));
    }

    @Test
    void jobsThatSucceedFailAndArePutOff() {
        application().run(context -> {
            MeterRegistry registry = context.getBean(MeterRegistry.class);
            JobScheduler jobs = context.getBean(JobScheduler.class);

            jobs.addJob(WORK, "succeed");
            events.await(JobCompleted.class);
            jobs.addJob(WORK, "retry");
            events.await(JobFailed.class);
            jobs.addJob(WORK, "fail", JobSpec.builder().maxAttempts(1).build());
            events.await(JobFailed.class);
            jobs.addJob(WORK, "snooze");
            events.await(JobSnoozed.class);

            assertThat(executions(registry, "success")).isEqualTo(1);
            assertThat(executions(registry, "failure")).isEqualTo(2);
            assertThat(registry.get("pgworker.job.execution")
                            .tag("outcome", "failure")
                            .timers())
                    .allSatisfy(
                            timer -> assertThat(timer.getId().getTag("error")).endsWith("Exception"));
            assertThat(executions(registry, "other")).isEqualTo(1);
            assertThat(registry.get("pgworker.job.wait")
                            .tag("task", "work")
                            .timer()
                            .count())
                    .isEqualTo(4);
            assertThat(registry.get("pgworker.job.wait").timer().max(java.util.concurrent.TimeUnit.SECONDS))
                    .isLessThan(60);
            assertThat(count(registry, "pgworker.jobs.retried", "work")).isEqualTo(1);
            assertThat(count(registry, "pgworker.jobs.failed", "work")).isEqualTo(1);
            assertThat(count(registry, "pgworker.jobs.lost", "work")).isZero();
            assertThat(count(registry, "pgworker.jobs.enqueued", "work")).isEqualTo(4);
        });
    }

    @Test
    void aJobThatIsSupersededWhileItRuns() {
        application().run(context -> {
            MeterRegistry registry = context.getBean(MeterRegistry.class);
            JobScheduler jobs = context.getBean(JobScheduler.class);
            JobSpec keyed = JobSpec.builder().jobKey("k").build();
            jobs.addJob(WORK, "wait and fail", keyed);
            running.await();
            jobs.addJob(WORK, "succeed", keyed);

            release.countDown();
            events.await(JobSuperseded.class);

            assertThat(count(registry, "pgworker.jobs.superseded", "work")).isEqualTo(1);
            assertThat(count(registry, "pgworker.jobs.retried", "work")).isZero();
            assertThat(count(registry, "pgworker.jobs.failed", "work")).isZero();
        });
    }

    @Test
    void aJobThatIsCancelledWhileItRuns() {
        application().run(context -> {
            MeterRegistry registry = context.getBean(MeterRegistry.class);
            context.getBean(JobScheduler.class)
                    .addJob(WORK, "wait and fail", JobSpec.builder().jobKey("k").build());
            running.await();

            context.getBean(JobChanges.class).cancel("k");
            release.countDown();
            events.await(JobCancelled.class);

            assertThat(count(registry, "pgworker.jobs.cancelled", "work")).isEqualTo(1);
            assertThat(count(registry, "pgworker.jobs.retried", "work")).isZero();
            assertThat(count(registry, "pgworker.jobs.failed", "work")).isZero();
        });
    }

    @Test
    void jobsHeldInVainAndJobsThatDoNotStart() {
        List<Runnable> lost = new CopyOnWriteArrayList<>();
        application()
                .withBean("hostile", WorkerBuilderCustomizer.class, () -> builder -> {
                    ImpatientWorkers.say(builder, Duration.ofMillis(500));
                    builder.handlerExecutor(lost::add);
                })
                .run(context -> {
                    MeterRegistry registry = context.getBean(MeterRegistry.class);
                    // At any moment a busy machine may keep a thread from running for longer than that.
                    Awaitility.await()
                            .until(() -> gauge(registry, "pgworker.stalled") == 0
                                    && gauge(registry, "pgworker.threads.failed") == 0);
                    context.getBean(JobScheduler.class).addJob(WORK, "succeed");

                    Awaitility.await()
                            .until(() -> gauge(registry, "pgworker.stalled") == 1
                                    && gauge(registry, "pgworker.threads.failed") == 0);
                });

        SimpleMeterRegistry registry = new SimpleMeterRegistry();
        JobMetrics metrics = new JobMetrics(registry, "default");
        metrics.serve(Set.of("work"), List.of());
        assertThat(registry.get("pgworker.jobs.reconciled").counter().count()).isZero();
        metrics.observe(new ClaimsReconciled("w", 3, 0));
        metrics.observe(new ClaimsReconciled("w", 0, 1));
        assertThat(registry.get("pgworker.jobs.reconciled").counter().count()).isEqualTo(3);
    }

    /** With the kinds of errors together. */
    private static long executions(MeterRegistry registry, String outcome) {
        return registry.get("pgworker.job.execution").tag("task", "work").tag("outcome", outcome).timers().stream()
                .mapToLong(Timer::count)
                .sum();
    }

    private static double count(MeterRegistry registry, String name, String task) {
        return registry.get(name).tag("task", task).counter().count();
    }

    @Test
    void jobsOfDeadWorkers() {
        SimpleMeterRegistry registry = new SimpleMeterRegistry();
        JobMetrics metrics = new JobMetrics(registry, "default");
        metrics.serve(Set.of("work"), List.of());
        for (String task : List.of("work", "foreign", "unknown")) {
            Job job = new Job(
                    1,
                    task,
                    "{}",
                    null,
                    0,
                    Instant.EPOCH,
                    1,
                    25,
                    null,
                    Instant.EPOCH,
                    Instant.EPOCH,
                    null,
                    null,
                    null,
                    0,
                    Set.of());
            DeadWorker dead = new DeadWorker("dead", DeadWorker.Reason.NO_HEARTBEAT, "w");
            metrics.observe(new JobRecovered("w", job, dead, RecoveryOutcome.RETURNED));
            metrics.observe(new SupersededJobEnded("w", job, dead));
        }

        assertThat(count(registry, "pgworker.jobs.recovered", "work")).isEqualTo(1);
        assertThat(count(registry, "pgworker.jobs.recovered", "other")).isEqualTo(2);
        assertThat(registry.find("pgworker.jobs.recovered").counters()).hasSize(2);
    }

    @Test
    void aSweepByHandCountsAsAnyOther() {
        application().withPropertyValues("pgworker.recovery.enabled=false").run(context -> {
            context.getBean(JobScheduler.class).addJob("elsewhere");
            db.sql("update {schema}._private_jobs set locked_by = 'dead', locked_at = now(), attempts = 1")
                    .update();
            db.sql(
                            "insert into {schema}._private_workers (id, last_heartbeat_at) values ('dead', now() - interval '1 hour')")
                    .update();

            context.getBean(WorkerOperations.class).sweep(SweepOptions.DEFAULT);

            assertThat(count(context.getBean(MeterRegistry.class), "pgworker.jobs.recovered", "other"))
                    .isEqualTo(1);
        });
    }

    @Test
    void anOutcomeThatIsFencedOff() {
        application().run(context -> {
            MeterRegistry registry = context.getBean(MeterRegistry.class);
            context.getBean(JobScheduler.class).addJob(WORK, "wait");
            running.await();
            db.sql("update {schema}._private_jobs set locked_by = 'another'").update();

            release.countDown();
            events.await(JobLost.class);

            assertThat(count(registry, "pgworker.jobs.lost", "work")).isEqualTo(1);
        });
    }

    @Test
    void onlyKnownTasksHaveTagsOfTheirOwn() {
        application().withPropertyValues("pgworker.metrics.tasks=mail").run(context -> {
            MeterRegistry registry = context.getBean(MeterRegistry.class);
            JobScheduler jobs = context.getBean(JobScheduler.class);

            for (int i = 0; i < 50; i++) {
                jobs.addJob("unknown-" + i);
            }
            jobs.addJobs(List.of(JobRequest.of("unknown", null), JobRequest.of("mail", null)));
            assertThat(jobs.addJobs(Stream.of(JobRequest.of("unknown", null), JobRequest.of("mail", null))))
                    .isEqualTo(2);

            assertThat(registry.find("pgworker.jobs.enqueued").counters()).hasSize(3);
            assertThat(count(registry, "pgworker.jobs.enqueued", "other")).isEqualTo(52);
            assertThat(count(registry, "pgworker.jobs.enqueued", "mail")).isEqualTo(2);
        });
    }

    @Test
    void whatTheWorkerDoes() {
        application().run(context -> {
            MeterRegistry registry = context.getBean(MeterRegistry.class);
            events.await(ListenerConnected.class);
            context.getBean(JobScheduler.class).addJob(WORK, "wait");
            running.await();

            assertThat(gauge(registry, "pgworker.handlers.active")).isEqualTo(1);
            assertThat(gauge(registry, "pgworker.handlers.free")).isEqualTo(3);
            assertThat(gauge(registry, "pgworker.local.queue")).isZero();
            assertThat(gauge(registry, "pgworker.listener.up")).isEqualTo(1);
            Awaitility.await()
                    .untilAsserted(() -> assertThat(gauge(registry, "pgworker.heartbeat.age"))
                            .isBetween(0.0, 60.0));
            release.countDown();
            events.await(JobCompleted.class);
            context.getSourceApplicationContext().stop();
            assertThat(gauge(registry, "pgworker.handlers.active")).isNaN();
        });
    }

    private static double gauge(MeterRegistry registry, String name, String... tags) {
        return registry.get(name).tags(tags).gauge().value();
    }

    @Test
    void theBacklogIsSampledInAnApplicationThatOnlyAddsJobs() {
        measured()
                .withPropertyValues("pgworker.enabled=false", "pgworker.metrics.interval=1s")
                .run(context -> {
                    MeterRegistry registry = context.getBean(MeterRegistry.class);
                    JobScheduler jobs = context.getBean(JobScheduler.class);
                    jobs.addJob("mail");
                    jobs.addJob(
                            "mail",
                            null,
                            JobSpec.builder().runIn(Duration.ofHours(1)).build());

                    Awaitility.await().untilAsserted(() -> {
                        assertThat(gauge(registry, "pgworker.backlog", "state", "ready"))
                                .isEqualTo(1);
                        assertThat(gauge(registry, "pgworker.backlog", "state", "scheduled"))
                                .isEqualTo(1);
                        assertThat(gauge(registry, "pgworker.backlog", "state", "retrying"))
                                .isZero();
                        assertThat(gauge(registry, "pgworker.backlog", "state", "failed"))
                                .isZero();
                        assertThat(gauge(registry, "pgworker.backlog.age")).isBetween(0.0, 60.0);
                        assertThat(gauge(registry, "pgworker.workers.active")).isZero();
                    });

                    db.sql("alter table {schema}._private_jobs rename to hidden")
                            .update();
                    Awaitility.await()
                            .untilAsserted(() -> assertThat(gauge(registry, "pgworker.backlog.age"))
                                    .isNaN());
                    db.sql("alter table {schema}.hidden rename to _private_jobs")
                            .update();
                    Awaitility.await()
                            .untilAsserted(() -> assertThat(gauge(registry, "pgworker.backlog.age"))
                                    .isNotNaN());
                    assertThat(registry.find("pgworker.handlers.active").gauge())
                            .isNull();
                });
    }

    @Test
    void samplingCanBeOff() {
        application().withPropertyValues("pgworker.metrics.interval=0").run(context -> {
            assertThat(context.getBean(MeterRegistry.class)
                            .find("pgworker.backlog")
                            .gauge())
                    .isNull();
            assertThat(context.getBean(BacklogSampler.class).isRunning()).isFalse();
        });
    }

    @Test
    void tooShortAnIntervalIsRefused() {
        application().withPropertyValues("pgworker.metrics.interval=10ms").run(context -> {
            assertThat(context).hasFailed();
            FailureAnalysis analysis = FailureAnalyses.of(context.getStartupFailure());
            assertThat(analysis.getDescription()).contains("pgworker.metrics.interval");
            assertThat(analysis.getDescription() + analysis.getAction()).contains("at least 1 s");
        });
    }

    @Test
    void nothingIsMeasuredUnlessWanted() {
        application()
                .withPropertyValues("pgworker.metrics.enabled=false")
                .run(context -> assertThat(context).hasNotFailed().doesNotHaveBean(JobMetrics.class));
        application()
                .withClassLoader(new FilteredClassLoader("io.micrometer"))
                .run(context -> assertThat(context).hasNotFailed().doesNotHaveBean(JobMetrics.class));
        db.runner()
                .withConfiguration(AutoConfigurations.of(WorkerMetricsAutoConfiguration.class))
                .run(context -> assertThat(context).hasNotFailed().doesNotHaveBean(JobMetrics.class));
        new ApplicationContextRunner()
                .withConfiguration(
                        AutoConfigurations.of(WorkerAutoConfiguration.class, WorkerMetricsAutoConfiguration.class))
                .withBean(SimpleMeterRegistry.class)
                .run(context -> assertThat(context).hasNotFailed().doesNotHaveBean(JobMetrics.class));
    }
}
