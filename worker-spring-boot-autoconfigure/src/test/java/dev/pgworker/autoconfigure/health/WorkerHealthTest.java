package dev.pgworker.autoconfigure.health;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;

import org.awaitility.Awaitility;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.availability.ApplicationAvailabilityAutoConfiguration;
import org.springframework.boot.availability.AvailabilityChangeEvent;
import org.springframework.boot.availability.LivenessState;
import org.springframework.boot.availability.ReadinessState;
import org.springframework.boot.health.actuate.endpoint.HealthEndpoint;
import org.springframework.boot.health.autoconfigure.actuate.endpoint.HealthEndpointAutoConfiguration;
import org.springframework.boot.health.autoconfigure.application.AvailabilityHealthContributorAutoConfiguration;
import org.springframework.boot.health.autoconfigure.contributor.HealthContributorAutoConfiguration;
import org.springframework.boot.health.autoconfigure.registry.HealthContributorRegistryAutoConfiguration;
import org.springframework.boot.health.contributor.CompositeHealthContributor;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.health.contributor.Status;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ApplicationContext;

import dev.pgworker.ImpatientWorkers;
import dev.pgworker.Worker;
import dev.pgworker.WorkerSettings;
import dev.pgworker.WorkerStatus;
import dev.pgworker.autoconfigure.WorkerBuilderCustomizer;
import dev.pgworker.autoconfigure.testing.Greetings;
import dev.pgworker.autoconfigure.testing.RecordedEvents;
import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.event.WorkerEvent.FetchStarted;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.ListenerConnected;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.Task;
import dev.pgworker.limit.Limit;

import static org.assertj.core.api.Assertions.assertThat;

/** When the application is healthy and when not. */
@ExtendWith(OutputCaptureExtension.class)
class WorkerHealthTest {

    private static final Task<Greetings.Greeting> HELLO = Task.of("hello", Greetings.Greeting.class);
    private static final Duration SHORT = Duration.ofMillis(500);

    @RegisterExtension
    final TestDatabase db = new TestDatabase().installed();

    private final RecordedEvents events = new RecordedEvents();

    private ApplicationContextRunner adding() {
        return db.runner().withConfiguration(AutoConfigurations.of(WorkerHealthAutoConfiguration.class));
    }

    private ApplicationContextRunner working() {
        return adding().withBean(Greetings.class).withBean(RecordedEvents.class, () -> events);
    }

    /** Asked in the way that the guide advises. */
    private ApplicationContextRunner probed(WorkerBuilderCustomizer customizer) {
        return working()
                .withConfiguration(AutoConfigurations.of(
                        ApplicationAvailabilityAutoConfiguration.class,
                        AvailabilityHealthContributorAutoConfiguration.class,
                        HealthContributorAutoConfiguration.class,
                        HealthContributorRegistryAutoConfiguration.class,
                        HealthEndpointAutoConfiguration.class))
                .withPropertyValues(
                        "management.health.livenessstate.enabled=true",
                        "management.health.readinessstate.enabled=true",
                        "management.endpoint.health.group.liveness.include=livenessState,pgworker/threads",
                        "management.endpoint.health.group.readiness.include=readinessState,pgworker/engine")
                .withBean(
                        "impatience",
                        WorkerBuilderCustomizer.class,
                        () -> builder -> ImpatientWorkers.say(builder, SHORT))
                .withBean("fault", WorkerBuilderCustomizer.class, () -> customizer);
    }

    private static Status group(ApplicationContext context, String name) {
        // As Spring Boot says when it runs an application.
        AvailabilityChangeEvent.publish(context, LivenessState.CORRECT);
        AvailabilityChangeEvent.publish(context, ReadinessState.ACCEPTING_TRAFFIC);
        return Objects.requireNonNull(context.getBean(HealthEndpoint.class).healthForPath(name), name)
                .getStatus();
    }

    private static Health health(ApplicationContext context, String part) {
        HealthIndicator indicator = (HealthIndicator)
                context.getBean(CompositeHealthContributor.class).getContributor(part);
        assertThat(indicator).isNotNull();
        return indicator.health();
    }

    private static String problem(ApplicationContext context, String part) {
        return String.valueOf(health(context, part).getDetails().get("problem"));
    }

    @Test
    void aWorkerThatIsToBeStartedByHand() {
        working().withPropertyValues("pgworker.auto-startup=false").run(context -> {
            Health engine = health(context, "engine");
            assertThat(engine.getStatus()).isEqualTo(Status.UP);
            assertThat(engine.getDetails()).containsEntry("started", false);
            Awaitility.await()
                    .until(() -> health(context, "threads").getStatus().equals(Status.UP));

            context.getBean(Worker.class).start();

            assertThat(health(context, "engine").getDetails())
                    .containsEntry("worker", context.getBean(Worker.class).id());
        });
    }

    @Test
    void aWorkerThatCannotRegisterItsCrontabYet() {
        working()
                .withPropertyValues("pgworker.auto-startup=false", "pgworker.crontab=0 4 * * * hello ?id=nightly")
                .run(context -> {
                    Worker worker = context.getBean(Worker.class);
                    try (Connection stranger = DriverManager.getConnection(db.url());
                            Statement statement = stranger.createStatement()) {
                        stranger.setAutoCommit(false);
                        statement.execute("lock table " + db.schema() + "._private_known_crontabs in exclusive mode");
                        worker.start();
                        Awaitility.await()
                                .until(() -> List.of("the crontab is not registered yet")
                                        .equals(health(context, "engine")
                                                .getDetails()
                                                .get("starting")));

                        assertThat(health(context, "engine").getStatus()).isEqualTo(Status.OUT_OF_SERVICE);
                        assertThat(health(context, "threads").getStatus()).isEqualTo(Status.UP);
                        stranger.rollback();
                    }

                    assertThat(worker.awaitStarted(Duration.ofMinutes(1))).isTrue();

                    assertThat(health(context, "engine").getStatus()).isEqualTo(Status.UP);
                    assertThat(health(context, "engine").getDetails()).doesNotContainKey("starting");
                });
    }

    /** Another process could not use the database either. */
    @Test
    void aWorkerThatStartsWithoutItsDatabase() {
        working().withPropertyValues("pgworker.auto-startup=false").run(context -> {
            Worker worker = context.getBean(Worker.class);
            db.away(true);
            worker.start();

            assertThat(worker.awaitStarted(Duration.ofDays(1))).isFalse();

            Health engine = health(context, "engine");
            assertThat(engine.getStatus()).isEqualTo(Status.UP);
            assertThat(engine.getDetails())
                    .containsEntry("databaseUsable", false)
                    .containsKey("starting");
            db.away(false);
            Awaitility.await()
                    .until(() -> !health(context, "engine").getDetails().containsKey("starting"));
        });
    }

    @Test
    void aWorkerThatWorks() {
        probed(builder -> {}).run(context -> {
            events.await(ListenerConnected.class);

            assertThat(health(context, "schema").getStatus()).isEqualTo(Status.UP);
            assertThat(health(context, "schema").getDetails())
                    .containsEntry("schema", db.schema())
                    .containsEntry("version", "1");
            Awaitility.await().until(() -> health(context, "engine").getStatus().equals(Status.UP));
            Health engine = health(context, "engine");
            assertThat(engine.getDetails())
                    .containsEntry("worker", context.getBean(Worker.class).id())
                    .containsEntry("listening", true)
                    .containsEntry("databaseUsable", true)
                    .containsEntry("reconciled", 0L);
            Awaitility.await()
                    .until(() -> health(context, "threads").getStatus().equals(Status.UP));
            Awaitility.await().until(() -> group(context, "liveness").equals(Status.UP));
            Awaitility.await().until(() -> group(context, "readiness").equals(Status.UP));
        });
    }

    @Test
    void aWorkerThatDoesNotListen() {
        working().withPropertyValues("pgworker.listen.enabled=false").run(context -> {
            Health engine = health(context, "engine");
            assertThat(engine.getStatus()).isEqualTo(Status.UP);
            assertThat(engine.getDetails()).containsEntry("listening", "disabled");
            assertThat(context.getBean(Worker.class).isListeningOnDataSource()).isFalse();
        });
    }

    @Test
    void jobsThatNobodyServes() {
        probed(builder -> {}).run(context -> {
            context.getBean(JobScheduler.class).addJob("helo");

            Awaitility.await()
                    .until(() -> List.of("helo")
                            .equals(health(context, "engine").getDetails().get("unservedTasks")));
            Awaitility.await().until(() -> health(context, "engine").getStatus().equals(Status.UP));
        });
    }

    @Test
    void aWorkerThatHasBeenStopped() {
        probed(builder -> {}).run(context -> {
            context.getBean(Worker.class).stop();

            assertThat(health(context, "engine").getStatus()).isEqualTo(Status.DOWN);
            assertThat(group(context, "readiness")).isEqualTo(Status.DOWN);
            // Somebody wanted it.
            Awaitility.await()
                    .until(() -> health(context, "threads").getStatus().equals(Status.UP));
            Awaitility.await().until(() -> group(context, "liveness").equals(Status.UP));
            assertThat(health(context, "schema").getStatus()).isEqualTo(Status.UP);
        });
    }

    @Test
    void aWorkerWithoutItsSchema() {
        working().run(context -> {
            events.await(ListenerConnected.class);
            db.sql("alter schema {schema} rename to {schema}_app").update();

            assertThat(health(context, "schema").getStatus()).isEqualTo(Status.DOWN);
            Awaitility.await()
                    .until(() -> health(context, "threads").getStatus().equals(Status.UP));
            Awaitility.await().until(() -> health(context, "engine").getStatus().equals(Status.DOWN));
            // A database that refuses statements can be used.
            assertThat(health(context, "engine").getDetails()).containsEntry("databaseUsable", true);
            assertThat(problem(context, "engine"))
                    .contains("the schema is not installed, or not up to date", "pgworker.schema.mode=migrate");
            assertThat(health(context, "schema").getDetails().get("problem"))
                    .asString()
                    .contains("\"" + db.schema() + "\" is not installed", "pgworker.schema.mode=migrate");
            db.sql("alter schema {schema}_app rename to {schema}").update();
        });
    }

    private static final String OLDER =
            "update {schema}.worker_flyway_history set checksum = checksum # 1 where script = 'R__20_claim.sql'";

    @Test
    void aSchemaOfAnOlderVersionIsToldAtAStartThatDoesNotLookAtIt(CapturedOutput output) {
        db.sql(OLDER).update();
        working().withPropertyValues("pgworker.schema.mode=none").run(context -> {
            Awaitility.await().until(() -> output.getAll().contains("pgworker.schema.mode=none says"));
            assertThat(output.getAll().lines().filter(line -> line.contains("is not up to date")))
                    .singleElement()
                    .asString()
                    .contains("R__20_claim.sql", "Start once with pgworker.schema.mode=migrate");
        });
        db.sql(OLDER).update();
    }

    /** After a deployment whose migration is still to come, for instance. */
    @Test
    void aSchemaOfAnOlderVersion() {
        working().run(context -> {
            events.await(ListenerConnected.class);
            db.sql(OLDER).update();

            assertThat(health(context, "schema").getStatus()).isEqualTo(Status.DOWN);
            assertThat(health(context, "schema").getDetails().get("problem"))
                    .asString()
                    .contains("is not up to date", "R__20_claim.sql", "pgworker.schema.mode=migrate");
            db.sql(OLDER).update();
            assertThat(health(context, "schema").getStatus()).isEqualTo(Status.UP);
        });
    }

    @Test
    void jobsThatDoNotStart() {
        Queue<Runnable> lost = new ConcurrentLinkedQueue<>();
        probed(builder -> builder.handlerExecutor(lost::add)).run(context -> {
            context.getBean(JobScheduler.class).addJob(HELLO, new Greetings.Greeting("Ada"));

            // On a busy machine, the claim itself may take longer than the worker is patient.
            Awaitility.await().until(() -> problem(context, "engine").contains("wait for the handler executor"));
            assertThat(group(context, "readiness")).isEqualTo(Status.DOWN);
            assertThat(problem(context, "engine")).startsWith("Due jobs do not start although a handler is free: ");
            Awaitility.await().until(() -> group(context, "liveness").equals(Status.UP));

            // The engine is up for a moment, too, when the job has been given back.
            Awaitility.await().until(() -> {
                Runnable task = lost.poll();
                if (task != null) {
                    new Thread(task).start();
                }
                return !events.all(JobCompleted.class).isEmpty();
            });
            Awaitility.await().until(() -> health(context, "engine").getStatus().equals(Status.UP));
        });
    }

    @Test
    void aThreadThatHangsInADirectListener() {
        CountDownLatch release = new CountDownLatch(1);
        probed(builder -> builder.directListener(event -> {
                    if (event instanceof FetchStarted) {
                        await(release);
                    }
                }))
                .run(context -> {
                    Awaitility.await().until(() -> group(context, "liveness").equals(Status.DOWN));
                    // At any moment a busy machine may keep another one from running for as long.
                    for (String part : List.of("threads", "engine")) {
                        Awaitility.await().until(() -> problem(context, part).equals("Threads hang: worker-fetch"));
                    }

                    release.countDown();
                    Awaitility.await().until(() -> group(context, "liveness").equals(Status.UP));
                });
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            // The worker stops.
        }
    }

    @Test
    void aDatabaseThatDoesNotAnswer() {
        probed(builder -> {}).run(context -> {
            events.await(ListenerConnected.class);
            try (Connection connection = DriverManager.getConnection(db.url())) {
                lockJobs(connection);
                awaitWaitingWorker();

                Awaitility.await().until(() -> group(context, "liveness").equals(Status.UP));
                connection.rollback();
            }
        });
    }

    private void lockJobs(Connection connection) throws SQLException {
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            statement.execute("lock table " + db.schema() + "._private_jobs in access exclusive mode");
        }
    }

    /** Longer than a thread may hang. */
    private void awaitWaitingWorker() {
        Awaitility.await()
                .until(() -> db.sql("select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
                                        + " and query like '%{schema}%' and state_change < now() - interval '1 second'")
                                .query(Integer.class)
                                .single()
                        > 0);
    }

    @Test
    @Tag("thorough")
    void limitedJobsThatAStrangerHoldsUp() {
        probed(builder -> builder.limits(List.of(Limit.concurrency("one", 1, HELLO.identifier()))))
                .run(context -> {
                    events.await(ListenerConnected.class);
                    try (Connection connection = DriverManager.getConnection(db.url());
                            Statement statement = connection.createStatement()) {
                        connection.setAutoCommit(false);
                        statement.execute("lock table " + db.schema() + ".pgworker_limit_turn in exclusive mode");

                        Awaitility.await()
                                .until(() ->
                                        health(context, "engine").getDetails().get("heldUp") instanceof List<?> told
                                                && told.toString().contains("tables or rows of limits"));
                        Awaitility.await()
                                .until(() -> group(context, "readiness").equals(Status.UP));
                    }
                    Awaitility.await()
                            .until(() -> !health(context, "engine").getDetails().containsKey("heldUp"));
                });
    }

    @Test
    void entriesThatTheHistoryLacksAreADetail() {
        db.sql("insert into {schema}.pgworker_history_losses values (now(), 2, 'disk full')")
                .update();
        working().run(context -> {
            Awaitility.await()
                    .until(() -> "2 in the last day: disk full"
                            .equals(health(context, "engine").getDetails().get("historyLosses")));
            assertThat(health(context, "engine").getStatus()).isEqualTo(Status.UP);
        });
    }

    @Test
    void anApplicationThatOnlyAddsJobs() {
        adding().withPropertyValues("pgworker.enabled=false").run(context -> {
            assertThat(health(context, "schema").getStatus()).isEqualTo(Status.UP);
            Awaitility.await().until(() -> health(context, "engine").getStatus().equals(Status.UP));
            assertThat(health(context, "engine").getDetails()).containsEntry("runsJobs", false);
            Awaitility.await()
                    .until(() -> health(context, "threads").getStatus().equals(Status.UP));
        });
        adding().run(context ->
                assertThat(health(context, "engine").getDetails()).containsEntry("runsJobs", false));
    }

    @Test
    void nothingIsToldUnlessWanted() {
        working()
                .withPropertyValues("management.health.pgworker.enabled=false")
                .run(context -> assertThat(context).doesNotHaveBean(CompositeHealthContributor.class));
        working()
                .withClassLoader(new FilteredClassLoader("org.springframework.boot.health"))
                .run(context -> assertThat(context).hasNotFailed().hasSingleBean(Worker.class));
    }

    /** What a status means that takes too long to come about in a test. */
    private static final class Statuses {

        private Duration sinceFetch = Duration.ZERO;
        private @Nullable Duration sinceHeartbeat = Duration.ZERO;
        private Duration sinceAudit = Duration.ZERO;
        private Duration sinceStart = Duration.ofHours(1);
        private boolean outage;
        private @Nullable String stall;
        private List<String> dead = List.of();
        private List<String> stuck = List.of();
        private List<WorkerStatus.FailingLoop> failing = List.of();

        WorkerStatus status() {
            return new WorkerStatus(
                    "w",
                    0,
                    0,
                    1,
                    true,
                    sinceHeartbeat,
                    sinceFetch,
                    dead,
                    outage,
                    stall,
                    0,
                    stuck,
                    sinceAudit,
                    null,
                    sinceStart,
                    false,
                    List.of(),
                    List.of(),
                    List.of(),
                    List.of(),
                    null,
                    failing);
        }

        @Nullable String readiness() {
            return new EngineHealthIndicator(
                            () -> null, WorkerSettings.builder().build(), true)
                    .problem(status());
        }

        @Nullable String liveness() {
            return ThreadsHealthIndicator.problem(status());
        }
    }

    @Test
    void threadsThatHaveEndedOrHang() {
        Statuses statuses = new Statuses();
        assertThat(statuses.readiness()).isNull();
        assertThat(statuses.liveness()).isNull();

        statuses.dead = List.of("worker-cron", "worker-sweep");
        assertThat(statuses.liveness()).isEqualTo("Threads have ended: worker-cron, worker-sweep");
        assertThat(statuses.readiness()).isEqualTo(statuses.liveness());

        statuses.dead = List.of();
        statuses.stuck = List.of("worker-listen");
        statuses.outage = true;
        assertThat(statuses.liveness()).isEqualTo("Threads hang: worker-listen");
        assertThat(statuses.readiness()).isEqualTo(statuses.liveness());
    }

    @Test
    void whatHasNotBeenDoneForLong() {
        Duration tooLong = Duration.ofMinutes(30);
        Statuses statuses = new Statuses();
        statuses.sinceFetch = tooLong;
        assertThat(statuses.readiness()).startsWith("The worker has not looked for jobs");
        statuses.sinceFetch = Duration.ZERO;
        statuses.sinceHeartbeat = tooLong;
        assertThat(statuses.readiness()).startsWith("No heartbeat");
        statuses.sinceHeartbeat = null;
        assertThat(statuses.readiness()).startsWith("No heartbeat");
        statuses.sinceStart = Duration.ofSeconds(5);
        assertThat(statuses.readiness()).isNull();
        statuses.sinceAudit = tooLong;
        assertThat(statuses.readiness()).startsWith("Whether due jobs start has not been checked");
        assertThat(statuses.liveness()).isNull();
    }

    @Test
    void aLoopThatFailsIsNamed() {
        for (String name : List.of("heartbeat", "claim", "completion", "listener")) {
            Statuses statuses = new Statuses();
            statuses.failing = List.of(new WorkerStatus.FailingLoop(name, Duration.ofMinutes(30), "why", false));
            assertThat(statuses.readiness()).isEqualTo("The " + name + " has failed for 1800 s: why");
            statuses.failing = List.of(new WorkerStatus.FailingLoop(name, Duration.ofMinutes(30), "why", true));
            assertThat(statuses.readiness()).as("nobody can use the database").isNull();
            statuses.failing = List.of(new WorkerStatus.FailingLoop(name, Duration.ofSeconds(1), "why", false));
            assertThat(statuses.readiness()).as("for a moment").isNull();
        }
        Statuses neverRegistered = new Statuses();
        neverRegistered.sinceHeartbeat = null;
        neverRegistered.sinceStart = Duration.ofSeconds(2);
        neverRegistered.failing =
                List.of(new WorkerStatus.FailingLoop("heartbeat", Duration.ofSeconds(1), "permission denied", false));
        assertThat(neverRegistered.readiness()).contains("heartbeat", "permission denied");
    }

    @Test
    void anOutageIsNotTheFaultOfTheWorker() {
        Statuses statuses = new Statuses();
        statuses.outage = true;
        statuses.sinceFetch = Duration.ofMinutes(30);
        statuses.sinceHeartbeat = Duration.ofMinutes(30);
        statuses.sinceAudit = Duration.ofMinutes(30);
        assertThat(statuses.readiness()).isNull();
        assertThat(statuses.liveness()).isNull();

        statuses.stall = "the reason";
        assertThat(statuses.readiness()).contains("the reason");
        assertThat(statuses.liveness()).isNull();
    }
}
