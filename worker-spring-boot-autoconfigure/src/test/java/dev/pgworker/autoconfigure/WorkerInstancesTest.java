package dev.pgworker.autoconfigure;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.beans.factory.annotation.BeanFactoryAnnotationUtils;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.health.contributor.CompositeHealthContributor;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.health.contributor.Status;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Primary;
import org.springframework.core.env.SystemEnvironmentPropertySource;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;

import dev.pgworker.Worker;
import dev.pgworker.WorkerSettings;
import dev.pgworker.autoconfigure.health.WorkerHealthAutoConfiguration;
import dev.pgworker.autoconfigure.metrics.WorkerMetricsAutoConfiguration;
import dev.pgworker.autoconfigure.testing.FailureAnalyses;
import dev.pgworker.autoconfigure.testing.Greetings;
import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.crontab.CronItem;
import dev.pgworker.event.WorkerEvent;
import dev.pgworker.event.WorkerEventListener;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.Task;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.JobHandler;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

/** Several data sources, and several workers in one application. */
@ExtendWith(OutputCaptureExtension.class)
class WorkerInstancesTest {

    private static final String OTHER = TestPostgres.newDatabase("other");

    @RegisterExtension
    final TestDatabase db = new TestDatabase().installed();

    @AfterEach
    void uninstallElsewhere() {
        for (String url : List.of(TestPostgres.jdbcUrl(), OTHER)) {
            JdbcClient.create(new DriverManagerDataSource(url))
                    .sql("drop schema if exists " + db.schema() + " cascade")
                    .update();
        }
    }

    /** Handlers that tell which worker has run them. */
    static class Handlers {

        final BlockingQueue<String> runs = new LinkedBlockingQueue<>();

        @JobHandler("plain")
        void plain(JobContext context) {
            runs.add("plain by " + context.workerId());
        }

        @JobHandler(value = "report", worker = "reports")
        void report(JobContext context) {
            runs.add("report by " + context.workerId());
        }

        String next() throws InterruptedException {
            String run = runs.poll(120, TimeUnit.SECONDS);
            assertThat(run).as("a run within 30 s").isNotNull();
            return run;
        }
    }

    private ApplicationContextRunner application(String... properties) {
        return db.runner().withBean(Handlers.class).withPropertyValues(properties);
    }

    @Test
    void variablesOfOtherPeopleAreNotProperties() {
        // As Kubernetes sets them for services called worker-limits and worker-instances, and as others set them.
        Map<String, Object> environment = Map.of(
                "WORKER_INSTANCES", "3",
                "WORKER_CONCURRENCY", "auto",
                "WORKER_TASKS", "4",
                "WORKER_LIMITS_PORT", "tcp://10.0.0.1:80",
                "WORKER_INSTANCES_SERVICE_HOST", "10.0.0.2",
                "PGWORKER_CONCURRENCY", "3");
        db.runner()
                .withInitializer(context -> context.getEnvironment()
                        .getPropertySources()
                        .addFirst(new SystemEnvironmentPropertySource("systemEnvironment", environment)))
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThat(context.getBean(WorkerInstances.class).all()).hasSize(1);
                    assertThat(context.getBean(WorkerInstances.class)
                                    .get("default")
                                    .settings()
                                    .concurrency())
                            .isEqualTo(3);
                });
    }

    private static Worker worker(ApplicationContext context, String name) {
        return context.getBean(WorkerInstances.class).get(name).worker();
    }

    private static JobScheduler scheduler(ApplicationContext context, String qualifier) {
        return BeanFactoryAnnotationUtils.qualifiedBeanOfType(
                context.getAutowireCapableBeanFactory(), JobScheduler.class, qualifier);
    }

    @Test
    void eachWorkerHasItsSchemaTasksAndSettings() {
        application(
                        "pgworker.instances.reports.schema.name=" + db.schema() + "_app",
                        "pgworker.instances.reports.concurrency=3",
                        "pgworker.concurrency=2",
                        "pgworker.poll-interval=1s",
                        "pgworker.crontab=0 4 * * * plain")
                .run(context -> {
                    assertThat(context).hasNotFailed().hasSingleBean(WorkerInstances.class);
                    Worker reports = worker(context, "reports");
                    Handlers handlers = context.getBean(Handlers.class);
                    assertThat(worker(context, "default").tasks()).containsExactly("plain");
                    assertThat(reports.tasks()).containsExactly("report");
                    assertThat(reports.cronItems()).isEmpty();

                    context.getBean(JobScheduler.class).addJob("plain");
                    assertThat(handlers.next())
                            .isEqualTo("plain by " + worker(context, "default").id());
                    scheduler(context, "reports").addJob("report");
                    assertThat(handlers.next()).isEqualTo("report by " + reports.id());

                    WorkerInstance instance =
                            context.getBean(WorkerInstances.class).get("reports");
                    assertThat(instance.schema()).isEqualTo(new WorkerSchema(db.schema() + "_app"));
                    assertThat(instance.settings().concurrency()).isEqualTo(3);
                    assertThat(instance.settings().pollInterval()).hasSeconds(1);
                    assertThat(instance.jobQueries().activeWorkers()).hasSize(1);
                });
    }

    @Test
    void theBeansOfAnInstanceAreInjectedWithItsQualifierOnly() {
        application(
                        "pgworker.instances.night-shift.schema.name=" + db.schema() + "_app",
                        "pgworker.instances.reports.tasks=plain")
                .withUserConfiguration(Qualified.class)
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    Qualified qualified = context.getBean(Qualified.class);
                    assertThat(qualified.jobs).isSameAs(context.getBean("workerJobScheduler"));
                    assertThat(qualified.nightly).isSameAs(context.getBean("nightShiftJobScheduler"));
                    assertThat(context.getBean(Worker.class)).isSameAs(context.getBean("defaultWorker"));
                });
    }

    @Configuration(proxyBeanMethods = false)
    static class Qualified {

        final JobScheduler jobs;
        final JobScheduler nightly;

        Qualified(JobScheduler jobs, @Qualifier("night-shift") JobScheduler nightly) {
            this.jobs = jobs;
            this.nightly = nightly;
        }

        @Bean
        Task<Void> anything() {
            return Task.of("anything", Void.class);
        }
    }

    @Test
    void tasksAreServedWhereTheyAreListed() {
        application("pgworker.instances.reports.tasks=*", "pgworker.instances.slow.tasks=plain")
                .run(context -> {
                    assertThat(worker(context, "default").tasks()).isEmpty();
                    assertThat(worker(context, "reports").tasks()).containsExactlyInAnyOrder("plain", "report");
                    assertThat(worker(context, "slow").tasks()).containsExactly("plain");
                });
    }

    @Test
    void beansWithAQualifierBelongToOneWorker() {
        application("pgworker.instances.reports.schema.name=" + db.schema() + "_app")
                .withUserConfiguration(Collaborating.class)
                .run(context -> {
                    assertThat(worker(context, "reports").cronItems())
                            .extracting(CronItem::identifier)
                            .containsExactly("nightly");
                    assertThat(worker(context, "default").cronItems())
                            .extracting(CronItem::identifier)
                            .containsExactly("daily");
                    assertThat(worker(context, "reports").tasks()).containsExactlyInAnyOrder("report", "extra");
                    Handlers handlers = context.getBean(Handlers.class);
                    context.getBean(JobScheduler.class).addJob("plain");
                    handlers.next();
                    scheduler(context, "reports").addJob("report");
                    handlers.next();
                    Collaborating listening = context.getBean(Collaborating.class);
                    WorkerEvent.JobStarted first = listening.all.poll(120, TimeUnit.SECONDS);
                    WorkerEvent.JobStarted second = listening.all.poll(120, TimeUnit.SECONDS);
                    assertThat(List.of(
                                    first.job().taskIdentifier(), second.job().taskIdentifier()))
                            .containsExactlyInAnyOrder("plain", "report");
                    assertThat(listening
                                    .reports
                                    .poll(120, TimeUnit.SECONDS)
                                    .job()
                                    .taskIdentifier())
                            .isEqualTo("report");
                    assertThat(listening.reports).isEmpty();
                });
    }

    @Configuration(proxyBeanMethods = false)
    static class Collaborating {

        final BlockingQueue<WorkerEvent.JobStarted> all = new LinkedBlockingQueue<>();
        final BlockingQueue<WorkerEvent.JobStarted> reports = new LinkedBlockingQueue<>();

        private static WorkerEventListener recordingIn(BlockingQueue<WorkerEvent.JobStarted> queue) {
            return event -> {
                if (event instanceof WorkerEvent.JobStarted started) {
                    queue.add(started);
                }
            };
        }

        @Bean
        WorkerEventListener ofAll() {
            return recordingIn(all);
        }

        @Bean
        @Qualifier("reports") WorkerEventListener ofReports() {
            return recordingIn(reports);
        }

        @Bean
        CronItem daily() {
            return CronItem.of("plain").id("daily").dailyAt(4, 0).build();
        }

        @Bean
        @Qualifier("reports") CronItem nightly() {
            return CronItem.of("report").id("nightly").dailyAt(4, 0).build();
        }

        @Bean
        TaskRegistration extra() {
            return TaskRegistration.of(Task.of("extra", Object.class), (payload, context) -> {})
                    .onWorker("reports");
        }
    }

    @Test
    void anInstanceMayBeDisabledOrStartedByHand() {
        application(
                        "pgworker.instances.reports.enabled=false",
                        "pgworker.instances.reports.schema.name=" + db.schema() + "_app",
                        "pgworker.instances.slow.auto-startup=false",
                        "pgworker.instances.slow.tasks=plain")
                .run(context -> {
                    assertThat(context).doesNotHaveBean("reportsWorker");
                    assertThat(scheduler(context, "reports").addJob("report").id())
                            .isPositive();
                    assertThat(worker(context, "slow").isRunning()).isFalse();
                    assertThat(worker(context, "slow").runOnce()).isZero();
                });
        application("pgworker.enabled=false", "pgworker.instances.reports.schema.name=" + db.schema() + "_app")
                .run(context ->
                        assertThat(context).doesNotHaveBean("reportsWorker").hasBean("reportsJobScheduler"));
    }

    @Test
    void showsEachWorkerInHealthAndMetrics() {
        application("pgworker.instances.reports.schema.name=" + db.schema() + "_app", "pgworker.metrics.interval=1s")
                .withBean(MeterRegistry.class, SimpleMeterRegistry::new)
                .withConfiguration(AutoConfigurations.of(
                        WorkerHealthAutoConfiguration.class, WorkerMetricsAutoConfiguration.class))
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    Handlers handlers = context.getBean(Handlers.class);
                    scheduler(context, "reports").addJob("report");
                    handlers.next();

                    CompositeHealthContributor health = (CompositeHealthContributor)
                            context.getBean(CompositeHealthContributor.class).getContributor("reports");
                    assertThat(health).isNotNull();
                    for (String part : List.of("schema", "engine", "threads")) {
                        assertThat(((HealthIndicator) health.getContributor(part))
                                        .health()
                                        .getStatus())
                                .isEqualTo(Status.UP);
                    }
                    MeterRegistry registry = context.getBean(MeterRegistry.class);
                    assertThat(registry.get("pgworker.jobs.enqueued")
                                    .tags("worker", "reports", "task", "report")
                                    .counter()
                                    .count())
                            .isEqualTo(1);
                    assertThat(registry.get("pgworker.job.wait")
                                    .tags("worker", "reports", "task", "report")
                                    .timer()
                                    .count())
                            .isEqualTo(1);
                    assertThat(registry.find("pgworker.handlers.free").gauges()).hasSize(2);
                    assertThat(registry.find("pgworker.backlog.age").timeGauges())
                            .hasSize(2);
                });
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
                    pgworker.instances.reports.concurrency | 0 | pgworker.instances.reports.concurrency | between 1 and 10000
                    pgworker.instances.reports.poll-interval | often | pgworker.instances.reports.poll-interval | java.time.Duration
                    pgworker.instances.reports.crontab | 60 * * * * a | pgworker.instances.reports.crontab | minute must be 0 to 59
                    pgworker.instances.reports.data-source | none | pgworker.instances.reports.data-source | name of a DataSource bean: dataSource
                    pgworker.instances.reports.transaction-manager | dataSource | pgworker.instances.reports.transaction-manager | PlatformTransactionManager bean: transactionManager
                    pgworker.instances.reports.tasks | plan | pgworker.instances.reports.tasks | [plain, report]
                    pgworker.tasks | plan | pgworker.tasks | [plain, report]
                    pgworker.instances.default.concurrency | 1 | pgworker.instances | and not one of
                    pgworker.instances.worker.concurrency | 1 | pgworker.instances | and not one of
                    pgworker.instances.schema.concurrency | 1 | pgworker.instances | and not one of
                    pgworker.instances.a--b.concurrency | 1 | pgworker.instances | lower-case letters and digits
                    pgworker.data-source | none | pgworker.data-source | name of a DataSource bean: dataSource
                    """)
    void aMistakeStopsTheStart(String property, String value, String named, String allowed) {
        application("pgworker.instances.reports.vacuum=true", property + "=" + value)
                .run(context -> {
                    assertThat(context).hasFailed();
                    FailureAnalysis analysis = FailureAnalyses.of(context.getStartupFailure());
                    assertThat(analysis.getDescription() + analysis.getAction()).contains(named, allowed);
                });
    }

    @Test
    void aHandlerOfAnUnknownWorkerStopsTheStart() {
        application("pgworker.instances.slow.concurrency=1").run(context -> {
            FailureAnalysis analysis = FailureAnalyses.of(context.getStartupFailure());
            assertThat(analysis.getDescription())
                    .contains(
                            "Handlers.report(JobContext) is assigned to the worker \"reports\", which does not exist");
            assertThat(analysis.getAction())
                    .contains("Use one of [default, slow], or configure pgworker.instances.reports");
        });
    }

    private ApplicationContextRunner twoDataSources(Class<?> configuration, String... properties) {
        return db.runner()
                .withBean(Greetings.class)
                .withUserConfiguration(configuration)
                .withPropertyValues(properties);
    }

    private boolean isInstalledIn(String url) {
        return JdbcClient.create(new DriverManagerDataSource(url))
                .sql("select to_regclass('" + db.schema() + ".jobs') is not null")
                .query(Boolean.class)
                .single();
    }

    @Configuration(proxyBeanMethods = false)
    static class Unmarked {

        @Bean
        DataSource first() {
            return new DriverManagerDataSource(TestPostgres.jdbcUrl());
        }

        @Bean
        DataSource second() {
            return new DriverManagerDataSource(OTHER);
        }
    }

    @Test
    void anOpenChoiceStopsTheStartWithTheRemedy() {
        twoDataSources(Unmarked.class).run(context -> {
            assertThat(context).hasFailed();
            FailureAnalysis analysis = FailureAnalyses.of(context.getStartupFailure());
            assertThat(analysis.getDescription()).contains("which data source the worker is to use: first, second.");
            assertThat(analysis.getAction()).contains("@WorkerDataSource or @Primary", "pgworker.data-source");
        });
        twoDataSources(Unmarked.class, "pgworker.data-source=second").run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(isInstalledIn(OTHER)).isTrue();
            assertThat(isInstalledIn(TestPostgres.jdbcUrl())).isFalse();
        });
    }

    @Configuration(proxyBeanMethods = false)
    static class Marked {

        @Bean(defaultCandidate = false)
        @WorkerDataSource
        DataSource jobs() {
            return new DriverManagerDataSource(OTHER);
        }

        @Bean
        TaskRegistration transactional() {
            return TaskRegistration.of(Task.of("tx", Object.class), (payload, context) -> {})
                    .with(TaskOptions.DEFAULT.withTransactional(true));
        }
    }

    @Test
    void usesTheMarkedDataSourceAndItsTransactionManager() {
        twoDataSources(Marked.class).run(context -> {
            assertThat(context).hasFailed();
            FailureAnalysis analysis = FailureAnalyses.of(context.getStartupFailure());
            assertThat(analysis.getDescription()).contains("is transactional, but there is no transaction manager");
            assertThat(analysis.getAction()).contains("@WorkerTransactionManager");
        });
        twoDataSources(Marked.class).withUserConfiguration(Managed.class).run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(isInstalledIn(OTHER)).isTrue();
            assertThat(isInstalledIn(TestPostgres.jdbcUrl())).isFalse();
            long job = context.getBean(JobScheduler.class).addJob("tx").id();
            Awaitility.await()
                    .until(() -> context.getBean(JobQueries.class).find(job).isEmpty());
        });
    }

    @Configuration(proxyBeanMethods = false)
    static class Managed {

        @Bean(defaultCandidate = false)
        @WorkerTransactionManager
        PlatformTransactionManager jobsManager(@WorkerDataSource DataSource jobs) {
            return new JdbcTransactionManager(jobs);
        }
    }

    @Test
    void severalMarkedDataSourcesStopTheStart() {
        twoDataSources(Marked.class)
                .withUserConfiguration(MoreMarked.class)
                .run(context -> assertThat(
                                FailureAnalyses.of(context.getStartupFailure()).getDescription())
                        .contains("Several data sources are marked with @WorkerDataSource: "));
    }

    @Configuration(proxyBeanMethods = false)
    static class MoreMarked {

        @Bean(defaultCandidate = false)
        @WorkerDataSource
        DataSource moreJobs() {
            return new DriverManagerDataSource(OTHER);
        }
    }

    @Test
    void anInstanceMayHaveADataSourceOfItsOwn() {
        application("pgworker.instances.reports.data-source=jobs")
                .withUserConfiguration(Second.class)
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThat(isInstalledIn(OTHER)).isTrue();
                    scheduler(context, "reports").addJob("report");
                    assertThat(context.getBean(Handlers.class).next())
                            .isEqualTo("report by " + worker(context, "reports").id());
                });
    }

    @Configuration(proxyBeanMethods = false)
    static class Second {

        @Bean(defaultCandidate = false)
        DataSource jobs() {
            return new DriverManagerDataSource(OTHER);
        }
    }

    @Test
    void anOwnWorkerBeanIsToldToServeNoHandlers(CapturedOutput output) {
        db.runner()
                .withBean(Greetings.class)
                .withUserConfiguration(WorkerAutoConfigurationTest.OwnWorker.class)
                .run(context -> assertThat(output)
                        .contains("does not serve the @JobHandler methods of [hello]: their jobs wait"));
    }

    @Test
    void ownWorkersStandBesideTheDefaultOneIfTheyAreNoCandidates() {
        db.runner()
                .withBean(Greetings.class)
                .withUserConfiguration(OwnBeside.class)
                .run(context -> {
                    assertThat(context.getBean("defaultWorker", Worker.class).isRunning())
                            .isTrue();
                    assertThat(context.getBean("mine", Worker.class).isRunning())
                            .isTrue();
                });
        db.runner()
                .withUserConfiguration(TwoOwn.class)
                .run(context -> assertThat(context.getStartupFailure())
                        .hasMessageContaining("There are several Worker beans")
                        .hasMessageContaining("one, two."));
    }

    @Configuration(proxyBeanMethods = false)
    static class OwnBeside {

        @Bean(defaultCandidate = false)
        Worker mine(DataSource dataSource, WorkerSchema schema) {
            return own(dataSource, schema);
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class TwoOwn {

        @Bean
        Worker one(DataSource dataSource, WorkerSchema schema) {
            return own(dataSource, schema);
        }

        @Bean
        Worker two(DataSource dataSource, WorkerSchema schema) {
            return own(dataSource, schema);
        }
    }

    private static Worker own(DataSource dataSource, WorkerSchema schema) {
        return Worker.builder(dataSource)
                .schema(schema)
                .task(Task.of("mine", Object.class), (payload, context) -> {})
                .build();
    }

    /** The names that applications and other schedulers are likely to give their beans. */
    @Test
    void leavesCommonNamesOfBeansToTheApplication() {
        ApplicationContextRunner application = application("pgworker.instances.reports.tasks=plain");
        for (String name : List.of(
                "worker",
                "scheduler",
                "jobScheduler",
                "jobQueries",
                "jobChanges",
                "recurringJobs",
                "jobs",
                "taskRegistry")) {
            application = application.withBean(name, StringBuilder.class);
        }
        application.run(context -> assertThat(context).hasNotFailed());
    }

    @Test
    void onlyAnInstanceMayRun() {
        application(
                        "pgworker.enabled=false",
                        "pgworker.instances.reports.enabled=true",
                        "pgworker.instances.reports.schema.name=" + db.schema() + "_app")
                .run(context -> {
                    assertThat(context).hasNotFailed().doesNotHaveBean("defaultWorker");
                    context.getBean(JobScheduler.class).addJob("plain");
                    scheduler(context, "reports").addJob("report");
                    assertThat(context.getBean(Handlers.class).next())
                            .isEqualTo("report by " + worker(context, "reports").id());
                    assertThat(db.jobs()).isEqualTo(1);
                });
    }

    /** An environment variable cannot have the dashes of a name. */
    @Test
    void namesThatDifferInDashesOnlyAreOneWorker() {
        application(
                        "pgworker.instances.night-shift.tasks=plain",
                        "pgworker.instances.nightshift.concurrency=3",
                        "pgworker.instances.reports.vacuum=true")
                .run(context -> {
                    WorkerInstances instances = context.getBean(WorkerInstances.class);
                    assertThat(instances.all())
                            .extracting(WorkerInstance::name)
                            .containsExactly("default", "night-shift", "reports");
                    assertThat(instances.get("night-shift").settings().concurrency())
                            .isEqualTo(3);
                    assertThat(worker(context, "night-shift").tasks()).containsExactly("plain");
                });
    }

    @Test
    void aWorkerStartedByHandMayListTasksWithoutHandlers() {
        application("pgworker.auto-startup=false", "pgworker.instances.reports.tasks=elsewhere")
                .run(context -> assertThat(context).hasNotFailed());
    }

    @Test
    void ownWorkersStopAtTheSameTime() {
        BlockingQueue<String> running = new LinkedBlockingQueue<>();
        db.runner()
                .withBean("handlers", Handlers.class)
                .withBean("running", BlockingQueue.class, () -> running)
                .withUserConfiguration(Hanging.class)
                .run(context -> {
                    JobScheduler jobs = context.getBean(JobScheduler.class);
                    jobs.addJob("hang-1");
                    jobs.addJob("hang-2");
                    assertThat(running.poll(120, TimeUnit.SECONDS)).isNotNull();
                    assertThat(running.poll(120, TimeUnit.SECONDS)).isNotNull();
                    context.getBean(WorkerLifecycle.class).stop();
                    assertThat(running.poll()).isEqualTo("both");
                });
    }

    /** Two workers whose handlers end only when both have been interrupted, which takes a stop of both. */
    @Configuration(proxyBeanMethods = false)
    static class Hanging {

        private final CyclicBarrier interrupted = new CyclicBarrier(2);

        @Bean
        @Primary
        Worker one(DataSource dataSource, WorkerSchema schema, BlockingQueue<String> running) {
            return hanging("hang-1", dataSource, schema, running);
        }

        @Bean
        Worker two(DataSource dataSource, WorkerSchema schema, BlockingQueue<String> running) {
            return hanging("hang-2", dataSource, schema, running);
        }

        private Worker hanging(String task, DataSource dataSource, WorkerSchema schema, BlockingQueue<String> running) {
            return Worker.builder(dataSource)
                    .schema(schema)
                    .settings(WorkerSettings.builder()
                            .shutdownGracePeriod(Duration.ofMillis(1))
                            .build())
                    .task(Task.of(task, Object.class), (payload, context) -> {
                        running.add(task);
                        try {
                            new CountDownLatch(1).await();
                        } catch (InterruptedException e) {
                            if (interrupted.await(20, TimeUnit.SECONDS) == 0) {
                                running.add("both");
                            }
                        }
                    })
                    .build();
        }
    }

    /** The handler's transaction would be rolled back, and its job completed all the same. */
    @Test
    void aTransactionManagerOfAnotherDataSourceStopsTheStart() {
        for (String property :
                List.of("pgworker.transaction-manager", "pgworker.instances.reports.transaction-manager")) {
            application("pgworker.instances.reports.vacuum=true", property + "=otherManager")
                    .withUserConfiguration(OtherManager.class)
                    .run(context -> assertThat(FailureAnalyses.of(context.getStartupFailure())
                                    .getDescription())
                            .contains("The transaction manager otherManager manages another data source"));
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class OtherManager {

        @Bean(defaultCandidate = false)
        PlatformTransactionManager otherManager() {
            return new JdbcTransactionManager(new DriverManagerDataSource(OTHER));
        }
    }

    @Test
    void anUnknownInstanceIsNamedWithThoseThereAre() {
        application("pgworker.instances.reports.tasks=plain").run(context -> {
            WorkerInstances instances = context.getBean(WorkerInstances.class);
            assertThat(instances.all()).extracting(WorkerInstance::name).containsExactly("default", "reports");
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> instances.get("report"))
                    .withMessage("instance must be one of [default, reports], but is \"report\"");
        });
    }
}
