package dev.pgworker.autoconfigure;

import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.config.MeterFilter;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.boot.actuate.autoconfigure.endpoint.EndpointAutoConfiguration;
import org.springframework.boot.actuate.autoconfigure.scheduling.ScheduledTasksEndpointAutoConfiguration;
import org.springframework.boot.actuate.scheduling.ScheduledTasksEndpoint;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.task.TaskSchedulingAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.MetricsAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.export.simple.SimpleMetricsExportAutoConfiguration;
import org.springframework.boot.micrometer.observation.autoconfigure.ObservationAutoConfiguration;
import org.springframework.boot.micrometer.observation.autoconfigure.ScheduledTasksObservationAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.scheduling.annotation.EnableScheduling;
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.scheduling.annotation.ScheduledAnnotationBeanPostProcessor;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;
import org.springframework.scheduling.config.ScheduledTaskHolder;

import dev.pgworker.Worker;
import dev.pgworker.autoconfigure.metrics.WorkerMetricsAutoConfiguration;
import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.task.TaskRegistration;

import static org.assertj.core.api.Assertions.assertThat;

/** Periodic tasks of workers beside those of the application. */
class WorkerScheduledTasksTest {

    @RegisterExtension
    final TestDatabase db = new TestDatabase().installed();

    private ApplicationContextRunner application() {
        return db.runner()
                .withConfiguration(AutoConfigurations.of(
                        TaskSchedulingAutoConfiguration.class,
                        EndpointAutoConfiguration.class,
                        ScheduledTasksEndpointAutoConfiguration.class,
                        WorkerMetricsAutoConfiguration.class,
                        MetricsAutoConfiguration.class,
                        SimpleMetricsExportAutoConfiguration.class,
                        CompositeMeterRegistryAutoConfiguration.class,
                        ObservationAutoConfiguration.class,
                        ScheduledTasksObservationAutoConfiguration.class))
                .withPropertyValues("management.endpoints.web.exposure.include=scheduledtasks")
                .withBean(
                        TaskRegistration.class,
                        () -> TaskRegistration.of(
                                dev.pgworker.job.Task.of("work", String.class), (payload, context) -> {}));
    }

    @EnableScheduling
    static class Application {
        final CountDownLatch ran = new CountDownLatch(1);
        volatile String thread = "";

        @Scheduled(fixedDelay = 1, timeUnit = TimeUnit.HOURS)
        void clean() {
            thread = Thread.currentThread().getName();
            ran.countDown();
        }
    }

    @Test
    void theyAreShownWithTheirPurpose() {
        application().run(context -> {
            assertThat(shown(context))
                    .contains(
                            "worker: sweep for dead workers",
                            "worker: reconcile held jobs with the database",
                            "worker: sample the backlog");
            Awaitility.await()
                    .untilAsserted(() -> assertThat(tasks(context)
                                    .filter(task -> target(task).equals("worker: sweep for dead workers"))
                                    .map(WorkerScheduledTasksTest::lastStatus))
                            .containsExactly("SUCCESS"));
        });
    }

    /** A start does not wait for what is done from time to time. */
    private static String lastStatus(ScheduledTasksEndpoint.TaskDescriptor task) {
        var last = task.getLastExecution();
        return last == null ? "not executed yet" : last.getStatus().name();
    }

    @Test
    void eachWorkerHasItsOwnAndTheyEndWithIt() {
        application()
                .withPropertyValues("pgworker.instances.mail.schema.name=" + db.schema() + "_app")
                .withPropertyValues("pgworker.tasks=*", "pgworker.instances.mail.tasks=*")
                .run(context -> {
                    assertThat(shown(context))
                            .contains("worker: sweep for dead workers", "worker mail: sweep for dead workers");

                    Worker mail = Objects.requireNonNull(
                            context.getBean(WorkerInstances.class).get("mail").worker());
                    assertThat(mail.scheduledTasks()).isNotEmpty();
                    mail.stop();

                    assertThat(mail.scheduledTasks()).isEmpty();
                    assertThat(shown(context))
                            .contains("worker: sweep for dead workers")
                            .doesNotContain("worker mail: sweep for dead workers");

                    context.getBean(Worker.class).stop();
                    assertThat(Thread.getAllStackTraces().keySet())
                            .extracting(Thread::getName)
                            .noneMatch(name -> name.startsWith("worker-schedule-"));
                });
    }

    @Test
    void theSchedulerOfTheApplicationIsItsOwn() {
        application().withUserConfiguration(Application.class).run(context -> {
            Application application = context.getBean(Application.class);
            assertThat(application.ran.await(120, TimeUnit.SECONDS)).isTrue();

            assertThat(application.thread).startsWith("scheduling-");
            assertThat(context.getBeansOfType(TaskScheduler.class)).containsOnlyKeys("taskScheduler");
            assertThat(context.getBean(ThreadPoolTaskScheduler.class).getThreadNamePrefix())
                    .isEqualTo("scheduling-");
            // Who asks for the one holder that there is without a worker gets it.
            assertThat(context.getBeanProvider(ScheduledTaskHolder.class).getIfUnique())
                    .isInstanceOf(ScheduledAnnotationBeanPostProcessor.class);
            assertThat(shown(context))
                    .contains("worker: sweep for dead workers", Application.class.getName() + ".clean");
        });
    }

    @Test
    void withoutScheduledMethodsThereIsNoSchedulerOfTheApplication() {
        application().run(context -> assertThat(context).doesNotHaveBean(TaskScheduler.class));
    }

    @Test
    void theyAreMeasuredLikeScheduledMethods() {
        application().withUserConfiguration(Application.class).run(context -> {
            MeterRegistry registry = context.getBean(MeterRegistry.class);
            Awaitility.await()
                    .untilAsserted(() -> assertThat(namespaces(registry))
                            .contains("dev.pgworker.internal.recovery.Sweep", Application.class.getCanonicalName()));
            // Registries such as Prometheus' want the same tags on all meters of a name.
            assertThat(timers(registry).stream()
                            .map(timer -> timer.getId().getTags().stream()
                                    .map(tag -> tag.getKey())
                                    .toList()))
                    .containsOnly(List.of("code.function", "code.namespace", "error", "exception", "outcome"));
        });
    }

    static class Excluding {

        @Bean
        MeterFilter workerTasksAreNotMeasured() {
            return MeterFilter.deny(meter -> meter.getName().startsWith("tasks.scheduled.execution")
                    && String.valueOf(meter.getTag("code.namespace")).startsWith("dev.pgworker.internal."));
        }
    }

    @Test
    void theyAreNotMeasuredWhereTheWorkerIsNot() {
        measuresOnlyTheApplication(application().withPropertyValues("pgworker.metrics.enabled=false"));
    }

    @Test
    void theApplicationMayExcludeThem() {
        measuresOnlyTheApplication(application().withUserConfiguration(Excluding.class));
    }

    private static void measuresOnlyTheApplication(ApplicationContextRunner runner) {
        runner.withUserConfiguration(Application.class).run(context -> {
            MeterRegistry registry = context.getBean(MeterRegistry.class);
            Awaitility.await().untilAsserted(() -> {
                assertThat(namespaces(registry)).containsExactly(Application.class.getCanonicalName());
                assertThat(tasks(context)
                                .filter(task -> target(task).equals("worker: sweep for dead workers"))
                                .allMatch(task -> task.getLastExecution() != null))
                        .isTrue();
            });
        });
    }

    private static Collection<Timer> timers(MeterRegistry registry) {
        return registry.find("tasks.scheduled.execution").timers();
    }

    private static Set<String> namespaces(MeterRegistry registry) {
        return timers(registry).stream()
                .map(timer -> timer.getId().getTag("code.namespace"))
                .collect(Collectors.toSet());
    }

    private static List<String> shown(ApplicationContext context) {
        return tasks(context).map(WorkerScheduledTasksTest::target).toList();
    }

    private static String target(ScheduledTasksEndpoint.TaskDescriptor task) {
        return task.getRunnable().getTarget();
    }

    private static Stream<ScheduledTasksEndpoint.TaskDescriptor> tasks(ApplicationContext context) {
        ScheduledTasksEndpoint.ScheduledTasksDescriptor shown =
                context.getBean(ScheduledTasksEndpoint.class).scheduledTasks();
        return Stream.of(shown.getCustom(), shown.getFixedDelay()).flatMap(List::stream);
    }
}
