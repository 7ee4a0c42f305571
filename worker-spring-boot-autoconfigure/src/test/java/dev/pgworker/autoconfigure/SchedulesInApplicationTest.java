package dev.pgworker.autoconfigure;

import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

import org.awaitility.Awaitility;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.context.PropertyPlaceholderAutoConfiguration;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.Worker;
import dev.pgworker.WorkerClient;
import dev.pgworker.autoconfigure.testing.FailureAnalyses;
import dev.pgworker.autoconfigure.testing.Greetings;
import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.crontab.CronJob;
import dev.pgworker.job.Job;
import dev.pgworker.job.ScheduleInterceptor;
import dev.pgworker.schedule.Misfire;
import dev.pgworker.schedule.Overlap;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.RecurringJob;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.schedule.RecurringQuery;
import dev.pgworker.schedule.Schedule;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.JobHandler;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.task.ScheduledRun;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

/** Schedules of annotations and beans, and the bean that makes them at run time. */
@ExtendWith(OutputCaptureExtension.class)
class SchedulesInApplicationTest {

    @RegisterExtension
    final TestDatabase db = new TestDatabase().installed();

    static class Jobs {

        final BlockingQueue<ScheduledRun> runs = new LinkedBlockingQueue<>();

        @JobHandler("often")
        @CronJob(fixedRate = "1s", id = "each_second")
        void often(JobContext context) {
            context.scheduledRun().ifPresent(runs::add);
        }

        @JobHandler("nightly")
        @CronJob(cron = "${nightly.cron:0 0 3 * * *}", zone = "${nightly.zone:}", overlap = Overlap.SKIP)
        @CronJob(cron = "${nightly.off:-}", id = "off")
        @CronJob(value = "0 4 * * *", id = "item")
        void nightly() {}

        ScheduledRun next() throws InterruptedException {
            ScheduledRun run = runs.poll(120, TimeUnit.SECONDS);
            assertThat(run).isNotNull();
            return run;
        }
    }

    @Test
    void whatHandlersDeclareIsInTheDatabaseAndRuns() {
        db.runner()
                .withBean(Jobs.class)
                .withPropertyValues("pgworker.crontab-zone=Europe/Berlin")
                .run(context -> {
                    Jobs jobs = context.getBean(Jobs.class);
                    ScheduledRun first = jobs.next();
                    ScheduledRun second = jobs.next();

                    assertThat(first.schedule()).isEqualTo("each_second");
                    assertThat(first.scheduledAt())
                            .isEqualTo(first.scheduledAt().truncatedTo(ChronoUnit.SECONDS));
                    assertThat(second.scheduledAt())
                            .isAfterOrEqualTo(first.scheduledAt().plusSeconds(1));
                    RecurringJobs schedules = context.getBean(RecurringJobs.class);
                    assertThat(schedules.list(RecurringQuery.ALL))
                            .extracting(RecurringJob::id, RecurringJob::origin)
                            .containsExactly(
                                    tuple("each_second", RecurringJob.Origin.DECLARED),
                                    tuple("item", RecurringJob.Origin.CRONTAB),
                                    tuple("nightly", RecurringJob.Origin.DECLARED));
                    Schedule nightly = schedules.find("nightly").orElseThrow().schedule();
                    assertThat(nightly.overlap()).isEqualTo(Overlap.SKIP);
                    assertThat(nightly.recurrence().zone()).isEqualTo(ZoneId.of("Europe/Berlin"));
                    assertThat(context.getBean(Worker.class).cronItems()).hasSize(1);
                });
    }

    @Test
    void placeholdersComeFromTheEnvironment() {
        db.runner()
                .withBean(Jobs.class)
                .withPropertyValues(
                        "nightly.cron=0 30 2 * * *",
                        "nightly.zone=Asia/Tokyo",
                        "nightly.off=@hourly",
                        "pgworker.auto-startup=false")
                .run(context -> assertThat(context.getBean(Worker.class).declaredSchedules())
                        .extracting(Schedule::name, schedule -> String.valueOf(schedule.recurrence()))
                        .contains(
                                tuple("nightly", "cron \"0 30 2 * * *\" in Asia/Tokyo"),
                                tuple("off", "cron \"@hourly\" in UTC")));
    }

    static class Unresolved {

        @JobHandler("unresolved")
        @CronJob(cron = "${no.such.property}")
        void unresolved() {}
    }

    static class Both {

        @JobHandler("both")
        @CronJob(cron = "0 0 8 * * *")
        @Scheduled(cron = "0 0 8 * * *")
        void both() {}

        @JobHandler("wrong")
        @CronJob(fixedDelay = "${delay:soon}")
        void wrong() {}
    }

    @Test
    void allMistakesAreToldTogether() {
        db.runner()
                .withConfiguration(AutoConfigurations.of(PropertyPlaceholderAutoConfiguration.class))
                .withBean(Both.class)
                .withBean(Unresolved.class)
                .withBean(
                        Schedule.class,
                        () -> Schedule.builder("bean", Recurrence.fixedDelay(Duration.ofDays(1)), "both", null)
                                .build())
                .withPropertyValues("pgworker.crontab=99 * * * * a\n* * * * * bean")
                .run(
                        context -> assertThat(FailureAnalyses.of(context.getStartupFailure())
                                        .getDescription())
                                .contains("pgworker.crontab:1:1: \"99\"")
                                .contains(
                                        "Both.both(): \"@Scheduled\": the method must not have both: remove @Scheduled")
                                .contains("Both.wrong(), fixedDelay: \"soon\": fixedDelay must be a duration")
                                .contains("Unresolved.unresolved(), cron: \"${no.such.property}\": Could not resolve")
                                .contains(
                                        "a Schedule of task both: \"bean\": identifier is taken by line 2 of pgworker.crontab"));
    }

    @Test
    void beansAreDeclaredSchedules(CapturedOutput output) {
        db.runner()
                .withBean(
                        Schedule.class,
                        () -> Schedule.builder("bean", Recurrence.cron("@daily", ZoneId.of("UTC")), "elsewhere", null)
                                .build())
                .run(context -> {
                    RecurringJobs schedules = context.getBean(RecurringJobs.class);
                    Awaitility.await().until(() -> schedules.find("bean").isPresent());

                    assertThat(schedules.find("bean"))
                            .get()
                            .matches(job -> job.origin() == RecurringJob.Origin.DECLARED);
                    assertThat(output)
                            .contains("Schedule bean is for task elsewhere, which this worker does not serve");
                });
    }

    @Test
    void whatLeftTheCodeStopsAndCanBeDeleted() {
        db.runner()
                .withBean(Jobs.class)
                .run(context -> context.getBean(Jobs.class).next());
        db.runner().withBean(Greetings.class).run(context -> {
            RecurringJobs schedules = context.getBean(RecurringJobs.class);
            Instant last = lastRun(schedules);

            Schedule other = Schedule.builder("other", Recurrence.fixedDelay(Duration.ofHours(1)), "hello", null)
                    .build();
            schedules.put(other);
            Awaitility.await().until(() -> schedules.find("other").orElseThrow().lastRun() != null);

            assertThat(lastRun(schedules)).isEqualTo(last);
            assertThat(schedules.delete("each_second")).isTrue();
            assertThat(schedules.find("each_second")).isEmpty();
        });
    }

    private static @Nullable Instant lastRun(RecurringJobs schedules) {
        return schedules.find("each_second").orElseThrow().lastRun();
    }

    static class OtherJobs {

        @JobHandler("weekly")
        @CronJob(cron = "0 0 3 * * MON", id = "nightly")
        void weekly() {}
    }

    @Test
    void anotherApplicationThatTakesTheNameIsToldOf(CapturedOutput output) {
        db.runner().withBean(Jobs.class).run(context -> assertThat(context).hasNotFailed());
        db.runner().withBean(Jobs.class).run(context -> assertThat(context).hasNotFailed());
        assertThat(output).doesNotContain("as this application declares it");

        db.runner().withBean(OtherJobs.class).run(context -> assertThat(context).hasNotFailed());
        assertThat(output)
                .containsOnlyOnce("Schedule \"nightly\" was of task \"nightly\" and is now of task \"weekly\"");
    }

    @Test
    void aPauseOutlivesTheStart() {
        db.runner().withBean(Jobs.class).run(context -> {
            context.getBean(Jobs.class).next();
            assertThat(context.getBean(RecurringJobs.class).actingAs("ada").pause("each_second"))
                    .isTrue();
        });
        db.runner()
                .withBean(Jobs.class)
                .withPropertyValues("nightly.cron=0 0 5 * * *")
                .run(context -> {
                    RecurringJobs schedules = context.getBean(RecurringJobs.class);
                    Awaitility.await()
                            .until(() -> String.valueOf(schedules
                                            .find("nightly")
                                            .orElseThrow()
                                            .schedule())
                                    .contains("0 0 5"));

                    assertThat(schedules.find("each_second"))
                            .get()
                            .matches(RecurringJob::isPaused)
                            .matches(status -> "ada".equals(status.pausedBy()));
                    assertThat(context.getBean(Jobs.class).runs).isEmpty();
                });
    }

    @Test
    void schedulesAreMadeWithoutAWorkerInTheCallersTransaction() {
        db.runner().withPropertyValues("pgworker.enabled=false").run(context -> {
            RecurringJobs schedules = context.getBean(RecurringJobs.class);
            Schedule daily = Schedule.builder("daily", Recurrence.cron("@daily", ZoneId.of("UTC")), "hello", null)
                    .misfire(Misfire.RUN_ONCE)
                    .build();
            new TransactionTemplate(context.getBean(PlatformTransactionManager.class))
                    .executeWithoutResult(transaction -> {
                        schedules.create(daily);
                        transaction.setRollbackOnly();
                    });
            assertThat(schedules.find("daily")).isEmpty();

            schedules.create(daily);

            Job job = schedules.trigger("daily");
            assertThat(job.taskIdentifier()).isEqualTo("hello");
            assertThat(job.payload()).contains("\"schedule\":\"daily\"");
        });
    }

    @Test
    void triggeredJobsPassTheInterceptors() {
        db.runner()
                .withPropertyValues("pgworker.enabled=false")
                .withBean(ScheduleInterceptor.class, () -> job -> {
                    throw new IllegalStateException("asked for " + job.identifier());
                })
                .run(context -> {
                    RecurringJobs schedules = context.getBean(RecurringJobs.class);
                    schedules.create(
                            Schedule.builder("daily", Recurrence.cron("@daily", ZoneId.of("UTC")), "hello", null)
                                    .build());
                    assertThatThrownBy(() -> schedules.trigger("daily")).hasStackTraceContaining("asked for hello");
                });
    }

    @Test
    void theBeanBacksOff() {
        db.runner()
                .withBean(
                        "own",
                        RecurringJobs.class,
                        () -> WorkerClient.recurringJobs(
                                new DriverManagerDataSource(),
                                WorkerSchema.DEFAULT,
                                new PayloadCodec(new JsonMapper())))
                .run(context ->
                        assertThat(context).hasSingleBean(RecurringJobs.class).hasBean("own"));
    }

    static class OfTwo {

        @JobHandler("plain")
        @CronJob(cron = "@daily", id = "of_default")
        void plain() {}

        @JobHandler(value = "report", worker = "reports")
        @CronJob(cron = "@daily", id = "of_reports")
        void report() {}
    }

    @Configuration(proxyBeanMethods = false)
    static class BeansOfTwo {

        @Bean
        Schedule ofDefault() {
            return Schedule.builder("bean_of_default", Recurrence.fixedDelay(Duration.ofDays(1)), "plain", null)
                    .build();
        }

        @Bean
        @Qualifier("reports") Schedule ofReports() {
            return Schedule.builder("bean_of_reports", Recurrence.fixedDelay(Duration.ofDays(1)), "report", null)
                    .build();
        }
    }

    @Test
    void schedulesBelongToTheWorkerOfTheirHandler() {
        db.runner()
                .withBean(OfTwo.class)
                .withUserConfiguration(BeansOfTwo.class)
                .withPropertyValues("pgworker.instances.reports.schema.name=" + db.schema() + "_app")
                .run(context -> {
                    RecurringJobs schedules = context.getBean(RecurringJobs.class);
                    RecurringJobs ofReports = context.getBean("reportsRecurringJobs", RecurringJobs.class);

                    Awaitility.await().untilAsserted(() -> {
                        assertThat(names(schedules)).containsExactly("bean_of_default", "of_default");
                        assertThat(names(ofReports)).containsExactly("bean_of_reports", "of_reports");
                    });
                });
    }

    private static List<String> names(RecurringJobs schedules) {
        return schedules.list(RecurringQuery.ALL).stream().map(RecurringJob::id).toList();
    }
}
