package dev.pgworker.autoconfigure;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import javax.sql.DataSource;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import org.awaitility.Awaitility;
import org.flywaydb.core.Flyway;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;
import org.springframework.boot.LazyInitializationBeanFactoryPostProcessor;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.jdbc.autoconfigure.JdbcConnectionDetails;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ApplicationContext;
import org.springframework.context.SmartLifecycle;
import org.springframework.context.annotation.Bean;
import org.springframework.context.support.AbstractApplicationContext;
import org.springframework.core.annotation.Order;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import tools.jackson.databind.PropertyNamingStrategies;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.Worker;
import dev.pgworker.WorkerClient;
import dev.pgworker.WorkerSettings;
import dev.pgworker.autoconfigure.testing.FailureAnalyses;
import dev.pgworker.autoconfigure.testing.Greetings;
import dev.pgworker.autoconfigure.testing.RecordedEvents;
import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.WorkerStarted;
import dev.pgworker.event.WorkerEvent.WorkerStopped;
import dev.pgworker.job.JobChanges;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.Task;
import dev.pgworker.job.WorkerOperations;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.SchemaMode;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;

import static org.assertj.core.api.Assertions.assertThat;

@ExtendWith(OutputCaptureExtension.class)
class WorkerAutoConfigurationTest {

    private static final Task<Greetings.Greeting> HELLO = Task.of("hello", Greetings.Greeting.class);

    @RegisterExtension
    final TestDatabase db = new TestDatabase().installed();

    private final RecordedEvents events = new RecordedEvents();

    private ApplicationContextRunner application() {
        return db.runner().withBean(Greetings.class).withBean(RecordedEvents.class, () -> events);
    }

    @Test
    void installsTheSchemaAndRunsJobs() {
        application().run(context -> {
            assertThat(context)
                    .hasSingleBean(WorkerSchema.class)
                    .hasSingleBean(WorkerSettings.class)
                    .hasSingleBean(PayloadCodec.class)
                    .hasSingleBean(SchemaMigrator.class)
                    .hasSingleBean(WorkerSchemaInitializer.class)
                    .hasSingleBean(JobScheduler.class)
                    .hasSingleBean(JobQueries.class)
                    .hasSingleBean(JobChanges.class)
                    .hasSingleBean(WorkerOperations.class)
                    .hasSingleBean(Worker.class)
                    .doesNotHaveBean(Flyway.class);
            events.await(WorkerStarted.class);

            context.getBean(JobScheduler.class).addJob(HELLO, new Greetings.Greeting("Ada"));

            events.await(JobCompleted.class);
            assertThat(context.getBean(Greetings.class).names).containsExactly("Ada");
        });
        assertThat(db.jobs()).isZero();
    }

    @Test
    void doesNothingWithoutADataSource() {
        new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(WorkerAutoConfiguration.class))
                .withBean(Greetings.class)
                .run(context -> assertThat(context)
                        .hasNotFailed()
                        .doesNotHaveBean(JobScheduler.class)
                        .doesNotHaveBean(Worker.class)
                        .doesNotHaveBean(WorkerLifecycle.class));
    }

    @Test
    void onlyAddsJobsWhenDisabled() {
        application().withPropertyValues("pgworker.enabled=false").run(context -> {
            assertThat(context).doesNotHaveBean(Worker.class).doesNotHaveBean(WorkerLifecycle.class);
            context.getBean(JobScheduler.class).addJob("hello");
            assertThat(db.jobs()).isEqualTo(1);
        });
    }

    @Test
    void aWorkerThatDoesNotStartWithTheApplicationIsStartedOrRunsOnceByHand() {
        db.runner()
                .withBean(Greetings.class)
                .withPropertyValues("pgworker.auto-startup=false")
                .run(context -> {
                    Worker worker = context.getBean(Worker.class);
                    context.getBean(JobScheduler.class).addJob("hello", new Greetings.Greeting("once"));
                    assertThat(worker.isRunning()).isFalse();

                    assertThat(worker.runOnce()).isEqualTo(1);

                    assertThat(context.getBean(Greetings.class).names).containsExactly("once");
                    assertThat(worker.isRunning()).isFalse();
                    worker.start();
                    assertThat(worker.isRunning()).isTrue();
                });
    }

    @Test
    void startsNoWorkerWithoutHandlers() {
        db.runner()
                .withPropertyValues("spring.datasource.hikari.maximum-pool-size=1")
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThat(context.getBean(Worker.class).isRunning()).isFalse();
                    context.getBean(JobScheduler.class).addJob("hello");
                });
        assertThat(db.jobs()).isEqualTo(1);
    }

    @Test
    void backsOffForTheApplicationsOwnBeans() {
        WorkerSchema schema = new WorkerSchema(db.schema());
        WorkerSettings settings = WorkerSettings.builder().concurrency(3).build();
        PayloadCodec codec = new PayloadCodec(new JsonMapper());
        db.uninstall();
        db.runner()
                .withPropertyValues("pgworker.schema.name=unused")
                .withBean("mySchema", WorkerSchema.class, () -> schema)
                .withBean("mySettings", WorkerSettings.class, () -> settings)
                .withBean("myCodec", PayloadCodec.class, () -> codec)
                .run(context -> {
                    assertThat(context).getBean(WorkerSchema.class).isSameAs(schema);
                    assertThat(context).getBean(WorkerSettings.class).isSameAs(settings);
                    assertThat(context).getBean(PayloadCodec.class).isSameAs(codec);
                    assertThat(db.isInstalled()).isTrue();
                });
    }

    @Test
    void backsOffForTheApplicationsOwnSchedulerAndMigrator() {
        JobScheduler scheduler = WorkerClient.jobScheduler(
                new DriverManagerDataSource(), WorkerSchema.DEFAULT, new PayloadCodec(new JsonMapper()));
        db.uninstall();
        db.runner()
                .withBean("myScheduler", JobScheduler.class, () -> scheduler)
                .withBean(MigratesNothing.class)
                .run(context -> {
                    assertThat(context).getBean(JobScheduler.class).isSameAs(scheduler);
                    assertThat(context).hasSingleBean(WorkerSchemaInitializer.class);
                    assertThat(db.isInstalled()).isFalse();
                });
    }

    static class MigratesNothing {

        @Bean
        WorkerSchemaInitializer mine(DataSource dataSource) {
            return new WorkerSchemaInitializer(new SchemaMigrator(dataSource, WorkerSchema.DEFAULT), SchemaMode.NONE);
        }

        @Bean
        SchemaMigrator myMigrator(DataSource dataSource) {
            return new SchemaMigrator(dataSource, WorkerSchema.DEFAULT);
        }
    }

    @Test
    void startsAndStopsTheApplicationsOwnWorker() {
        application().withUserConfiguration(OwnWorker.class).run(context -> {
            Worker worker = context.getBean(Worker.class);
            assertThat(context.getBeanNamesForType(Worker.class)).containsExactly("myWorker");
            assertThat(worker.tasks()).containsExactly("mine");
            assertThat(worker.isRunning()).isTrue();
        });
    }

    static class OwnWorker {

        @Bean
        Worker myWorker(DataSource dataSource, WorkerSchema schema) {
            return Worker.builder(dataSource)
                    .schema(schema)
                    .task(Task.of("mine", Object.class), (payload, context) -> {})
                    .build();
        }
    }

    @Test
    void usesTheApplicationsJsonMapper() {
        db.runner()
                .withBean(
                        JsonMapper.class,
                        () -> JsonMapper.builder()
                                .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
                                .build())
                .run(context -> {
                    record Person(String firstName) {}
                    context.getBean(JobScheduler.class).addJob("hello", new Person("Ada"));
                    assertThat(db.sql("select payload->>'first_name' from {schema}._private_jobs")
                                    .query(String.class)
                                    .single())
                            .isEqualTo("Ada");
                });
    }

    @Test
    void appliesCustomizersInOrderAndAddsRegistrations() {
        List<Integer> order = new ArrayList<>();
        @Order(1)
        class First implements WorkerBuilderCustomizer {
            @Override
            public void customize(Worker.Builder builder) {
                order.add(1);
            }
        }
        @Order(2)
        class Second implements WorkerBuilderCustomizer {
            @Override
            public void customize(Worker.Builder builder) {
                order.add(2);
                builder.task(Task.of("customized", Object.class), (payload, context) -> {});
            }
        }
        application()
                .withBean("a", WorkerBuilderCustomizer.class, Second::new)
                .withBean("b", WorkerBuilderCustomizer.class, First::new)
                .withBean(
                        TaskRegistration.class,
                        () -> TaskRegistration.of(Task.of("registered", Object.class), (payload, context) -> {}))
                .run(context -> {
                    assertThat(order).containsExactly(1, 2);
                    assertThat(context.getBean(Worker.class).tasks())
                            .containsExactly("hello", "registered", "customized");
                });
    }

    @Test
    void startsNoThreadBeforeTheContextIsReady() {
        application().withBean("late", LateSingleton.class).run(context -> {
            assertThat(context.getBean(LateSingleton.class).workerThreads).isEmpty();
            assertThat(workerThreads()).isNotEmpty();
        });
        // It ends by itself a moment after the claim that it has cancelled.
        Awaitility.await().until(() -> !workerThreads().contains("worker-claim-cancel"));
        assertThat(workerThreads()).isEmpty();
    }

    /** Looks at the threads after all singletons exist, and after the worker has been built. */
    static class LateSingleton implements SmartLifecycle {

        List<String> workerThreads;

        @Override
        public void start() {
            workerThreads = workerThreads();
        }

        @Override
        public void stop() {}

        @Override
        public boolean isRunning() {
            return false;
        }

        @Override
        public int getPhase() {
            return 0;
        }
    }

    private static List<String> workerThreads() {
        return Thread.getAllStackTraces().keySet().stream()
                .map(Thread::getName)
                .filter(name -> name.startsWith("worker-"))
                .toList();
    }

    /** Spring's tests pause the contexts that are not in use, and restart them. */
    @ParameterizedTest
    @CsvSource({"true, true", "false, true", "false, false"})
    void whatRanBeforeAPauseOfTheContextRunsAfterIt(boolean automatically, boolean runs) {
        db.runner()
                .withBean(Greetings.class)
                .withPropertyValues("pgworker.auto-startup=" + automatically)
                .run(context -> {
                    AbstractApplicationContext paused =
                            (AbstractApplicationContext) context.getSourceApplicationContext();
                    Worker worker = context.getBean(Worker.class);
                    if (runs) {
                        worker.start();
                    }
                    for (int i = 0; i < 2; i++) {
                        paused.pause();
                        assertThat(worker.isRunning()).isFalse();

                        paused.restart();
                        assertThat(worker.isRunning()).isEqualTo(runs);
                    }
                });
    }

    @Test
    void stopsAndStartsAgainWithTheContextsLifecycle() {
        application().run(context -> {
            events.await(WorkerStarted.class);
            context.getSourceApplicationContext().stop();
            events.await(WorkerStopped.class);
            assertThat(context.getBean(Worker.class).isRunning()).isFalse();

            context.getSourceApplicationContext().start();
            events.await(WorkerStarted.class);
            context.getBean(JobScheduler.class).addJob(HELLO, new Greetings.Greeting("Ada"));
            events.await(JobCompleted.class);
        });
    }

    @Test
    void runningJobsMayEndBeforeTheContextIsClosed() {
        CountDownLatch started = new CountDownLatch(1);
        CountDownLatch closing = new CountDownLatch(1);
        db.runner()
                .withBean(RecordedEvents.class, () -> events)
                .withBean(
                        TaskRegistration.class,
                        () -> TaskRegistration.of(Task.of("slow", Object.class), (payload, context) -> {
                            started.countDown();
                            closing.await();
                        }))
                .run(context -> {
                    context.getBean(JobScheduler.class).addJob("slow");
                    started.await();
                    Thread close = new Thread(context::close);
                    close.start();
                    closing.countDown();
                    close.join(Duration.ofMinutes(2).toMillis());
                    events.await(JobCompleted.class);
                });
        assertThat(db.jobs()).isZero();
    }

    /** How a pool connects that was given a data source cannot be seen from outside. */
    @Test
    void refusesAPoolOfOneThatTheListenerWouldHold() {
        PGSimpleDataSource driver = new PGSimpleDataSource();
        driver.setUrl(db.url());
        HikariConfig pool = new HikariConfig();
        pool.setDataSource(driver);
        pool.setMaximumPoolSize(1);
        application()
                .withBean(DataSource.class, () -> new HikariDataSource(pool))
                .run(context -> {
                    FailureAnalysis analysis = FailureAnalyses.of(context.getStartupFailure());
                    assertThat(analysis.getAction())
                            .contains("spring.datasource.hikari.maximum-pool-size")
                            .contains("pgworker.listen.url");
                });
    }

    @Test
    void worksWithAPoolOfOne(CapturedOutput output) {
        application()
                .withPropertyValues("spring.datasource.hikari.maximum-pool-size=1")
                .run(this::runsAJob);
        assertThat(output).contains("set spring.datasource.hikari.maximum-pool-size to at least 4");
    }

    @Test
    void namesTheSizeOfThePoolThatTransactionalHandlersNeed(CapturedOutput output) {
        TaskRegistration transactional = TaskRegistration.of(Task.of("t", String.class), (payload, context) -> {})
                .with(TaskOptions.DEFAULT.withTransactional(true));
        application()
                .withPropertyValues("pgworker.concurrency=8")
                .withBean("transactional", TaskRegistration.class, () -> transactional)
                .run(context -> assertThat(context).hasNotFailed());
        assertThat(output).contains("set spring.datasource.hikari.maximum-pool-size to at least 12");
    }

    @Test
    void saysNothingOfAPoolThatIsLargeEnough(CapturedOutput output) {
        application()
                .withPropertyValues("pgworker.concurrency=8")
                .run(context -> assertThat(context).hasNotFailed());
        assertThat(output).doesNotContain("maximum-pool-size");
    }

    @Test
    void saysWhatAUrlWithSeveralServersLacks(CapturedOutput output) {
        String several = db.url().replaceFirst("//([^/]*)/", "//$1,$1/");
        application()
                .withPropertyValues("spring.datasource.url=" + several + "&connectTimeout=3")
                .run(this::runsAJob);
        assertThat(output).contains("names several servers, but has no targetServerType, socketTimeout:");
    }

    /** The server's own view: two connections beside the pool, told apart by their name. */
    @Test
    void listensAndProvesItsLifeOnConnectionsOfItsOwn() {
        application()
                .withPropertyValues("spring.datasource.url=" + db.url() + "&ApplicationName=" + db.schema())
                .run(context -> {
                    runsAJob(context);
                    HikariDataSource pool = context.getBean(HikariDataSource.class);
                    Awaitility.await()
                            .until(() -> db.sql("select count(*) from pg_stat_activity"
                                                    + " where application_name = '{schema}'")
                                            .query(Integer.class)
                                            .single()
                                    == pool.getHikariPoolMXBean().getTotalConnections() + 2);
                    assertThat(context.getBean(Worker.class).isListeningOnDataSource())
                            .isFalse();
                });
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "postgresql://u:topsecret@db/app",
                "jdbc:postgres://db/app?user=u&password=topsecret",
                "JDBC:postgresql://db/app?user=u&password=topsecret",
                "jdbc:postgresql://db:port/app?user=u&password=topsecret"
            })
    void doesNotPrintAPasswordThatAWrongUrlContains(String url, CapturedOutput output) {
        application().withPropertyValues("pgworker.listen.url=" + url).run(context -> {
            assertThat(context).hasFailed();
            FailureAnalysis analysis = FailureAnalyses.of(context.getStartupFailure());
            assertThat(analysis.getDescription() + analysis.getAction())
                    .contains("pgworker.listen.url")
                    .doesNotContain("topsecret");
            assertThat(output).doesNotContain("topsecret");
        });
    }

    @Test
    void worksWithAPoolOfTwo() {
        application()
                .withPropertyValues("spring.datasource.hikari.maximum-pool-size=2")
                .run(this::runsAJob);
    }

    @Test
    void worksWithAPoolWithoutAutoCommit() {
        application()
                .withPropertyValues("spring.datasource.hikari.auto-commit=false")
                .run(this::runsAJob);
        assertThat(db.jobs()).isZero();
    }

    @Test
    void worksWithADataSourceOfTheApplicationsOwn() {
        application()
                .withBean("mine", DataSource.class, () -> new DriverManagerDataSource(db.url()))
                .run(context -> {
                    assertThat(context).doesNotHaveBean(HikariDataSource.class);
                    runsAJob(context);
                });
    }

    private record Details(String getJdbcUrl, String getUsername, String getPassword)
            implements JdbcConnectionDetails {}

    /** As Docker Compose and Testcontainers have it: a bean knows the address, whatever the property says. */
    @Test
    void takesTheAddressFromConnectionDetails() {
        PGSimpleDataSource address = new PGSimpleDataSource();
        address.setUrl(db.url());
        String user = address.getUser();
        String password = Objects.requireNonNullElse(address.getPassword(), "");
        application()
                .withBean(JdbcConnectionDetails.class, () -> new Details(db.url(), user, password))
                .withPropertyValues(
                        "spring.datasource.url=jdbc:postgresql://localhost:1/none", "pgworker.listen.user=" + user)
                .run(context -> {
                    runsAJob(context);
                    Worker worker = context.getBean(Worker.class);
                    Awaitility.await().until(() -> worker.status().listening());
                });
    }

    @Test
    void worksWithLazyInitialization() {
        application()
                .withInitializer(context ->
                        context.addBeanFactoryPostProcessor(new LazyInitializationBeanFactoryPostProcessor()))
                .run(this::runsAJob);
    }

    @Test
    @EnabledForJreRange(min = JRE.JAVA_21)
    void runsHandlersOnVirtualThreadsWhereTheyAreOn() {
        application().withPropertyValues("spring.threads.virtual.enabled=true").run(context -> {
            runsAJob(context);
            Thread thread = context.getBean(Greetings.class).thread;
            assertThat(thread.getName()).startsWith("worker-job-");
            assertThat(Thread.class.getMethod("isVirtual").invoke(thread)).isEqualTo(true);
        });
    }

    @Test
    void runsHandlersOnNamedPlatformThreads() {
        application().run(context -> {
            runsAJob(context);
            assertThat(context.getBean(Greetings.class).thread.getName()).startsWith("worker-job-");
        });
    }

    private void runsAJob(ApplicationContext context) throws InterruptedException {
        context.getBean(JobScheduler.class).addJob(HELLO, new Greetings.Greeting("Ada"));
        events.await(JobCompleted.class);
        assertThat(context.getBean(Greetings.class).names).containsExactly("Ada");
    }
}
