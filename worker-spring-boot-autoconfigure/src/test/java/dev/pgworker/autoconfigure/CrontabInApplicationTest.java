package dev.pgworker.autoconfigure;

import java.time.ZoneId;
import java.util.List;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

import dev.pgworker.autoconfigure.testing.FailureAnalyses;
import dev.pgworker.autoconfigure.testing.Greetings;
import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.crontab.CronItem;
import dev.pgworker.crontab.CronJob;
import dev.pgworker.schedule.RecurringJob;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.schedule.RecurringQuery;
import dev.pgworker.task.JobHandler;

import static org.assertj.core.api.Assertions.assertThat;

/** Recurring jobs from properties, a file and beans. */
@ExtendWith(OutputCaptureExtension.class)
class CrontabInApplicationTest {

    @RegisterExtension
    final TestDatabase db = new TestDatabase().installed();

    @Test
    void propertyFileAndBeansFormOneCrontab(CapturedOutput output) {
        db.runner()
                .withBean(Greetings.class)
                .withBean(
                        CronItem.class, () -> CronItem.of("bean").dailyAt(3, 0).build())
                .withPropertyValues(
                        "pgworker.crontab=# text block\n0 4 * * * property ?id=first\n0 5 * * * property ?id=second\n",
                        "pgworker.crontab-file=classpath:test.crontab",
                        "pgworker.crontab-zone=Europe/Berlin")
                .run(context -> {
                    Awaitility.await().until(() -> known().size() == 4);
                    assertThat(known()).containsExactly("bean", "first", "from_file", "second");
                    assertThat(context.getBean(WorkerProperties.class).crontabZone())
                            .isEqualTo(ZoneId.of("Europe/Berlin"));
                    assertThat(output)
                            .contains("Cron item first is for task property, which this worker does not serve");
                });
    }

    @Test
    void allMistakesOfAllTextsStopTheStart() {
        db.runner()
                .withBean(Greetings.class)
                .withPropertyValues(
                        "pgworker.crontab=* * * * * a ?colour=red\n99 * * * * b",
                        "pgworker.crontab-file=classpath:wrong.crontab")
                .run(context -> {
                    FailureAnalysis analysis = FailureAnalyses.of(context.getStartupFailure());
                    assertThat(analysis.getDescription())
                            .contains("pgworker.crontab:1:14: \"colour=red\": option colour is unknown")
                            .contains("pgworker.crontab:2:1: \"99\"")
                            .contains("wrong.crontab]):2:3: \"24\": hour must be 0 to 23");
                });
    }

    static class Jobs {

        @JobHandler("annotated")
        @CronJob(value = "0 6 * * *", id = "early")
        @CronJob(value = "0 22 * * *", id = "late")
        public void annotated() {}
    }

    @Test
    void schedulesBesideHandlersBelongToTheCrontab(CapturedOutput output) {
        db.runner().withBean(Jobs.class).run(context -> {
            Awaitility.await().until(() -> known().size() == 2);
            assertThat(known()).containsExactly("early", "late");
            assertThat(output).doesNotContain("which this worker does not serve");
        });
    }

    static class WrongJobs {

        @JobHandler("wrong")
        @CronJob(value = "0 6 * *", id = "first")
        public void wrong() {}

        @JobHandler("taken")
        @CronJob("0 6 * * *")
        public void taken() {}
    }

    @Test
    void mistakesOfAnnotationsAndBeansAreToldWithTheOthers() {
        db.runner()
                .withBean(WrongJobs.class)
                .withBean(
                        CronItem.class,
                        () -> CronItem.of("bean").everyMinute().id("first").build())
                .withPropertyValues("pgworker.crontab=99 * * * * a\n* * * * * b ?id=taken\n* * * * * c ?id=first")
                .run(
                        context -> assertThat(FailureAnalyses.of(context.getStartupFailure())
                                        .getDescription())
                                .contains("pgworker.crontab:1:1: \"99\"")
                                .contains("WrongJobs.wrong(), value: \"0 6 * *\": must be minute, hour")
                                .contains(
                                        "WrongJobs.taken(): \"taken\": identifier is taken by line 2 of pgworker.crontab")
                                .contains(
                                        "a CronItem of task bean: \"first\": identifier is taken by line 3 of pgworker.crontab"));
    }

    @Test
    void strictModeRefusesWhatIsOursByName() {
        db.runner()
                .withBean(Greetings.class)
                .withPropertyValues(
                        "pgworker.crontab-strict=true", "pgworker.crontab=0 3 * * * hello ?tz=Europe/Berlin")
                .run(context -> assertThat(
                                FailureAnalyses.of(context.getStartupFailure()).getDescription())
                        .contains("\"tz=Europe/Berlin\": option tz is not allowed in strict compatibility mode"));
        db.runner()
                .withBean(Greetings.class)
                .withPropertyValues("pgworker.crontab-strict=true", "pgworker.crontab-zone=Europe/Berlin")
                .run(context ->
                        assertThat(context).getFailure().rootCause().hasMessageContaining("pgworker.crontab-zone"));
        db.runner()
                .withBean(Greetings.class)
                .withPropertyValues("pgworker.crontab-strict=true", "pgworker.crontab=0 3 * * * hello")
                .run(context -> assertThat(context).hasNotFailed());
    }

    /** The tasks are other workers' business. */
    @Test
    void anApplicationWithoutHandlersSchedulesItsCrontab() {
        db.runner()
                .withPropertyValues("pgworker.crontab=0 3 * * * elsewhere")
                .run(context -> Awaitility.await().until(() -> known().equals(List.of("elsewhere"))));
    }

    static class Operator {

        final RecurringJobs recurring;

        Operator(RecurringJobs recurring) {
            this.recurring = recurring;
        }
    }

    @Test
    void theAdministrationIsABeanThatMayBeInjectedAnywhere() {
        db.runner()
                .withBean(Operator.class)
                .withBean("onlySeenWhenItExists", Object.class, Jobs::new)
                .run(context -> {
                    RecurringJobs recurring = context.getBean(Operator.class).recurring;
                    assertThat(recurring.list(RecurringQuery.ALL))
                            .extracting(RecurringJob::id)
                            .containsExactly("early", "late");
                    assertThat(recurring.pause("late")).isTrue();
                    assertThat(recurring.find("late")).get().matches(RecurringJob::isPaused);
                    assertThat(recurring.resume("late")).isTrue();
                    assertThat(recurring.trigger("early").taskIdentifier()).isEqualTo("annotated");
                });
    }

    @Test
    void recurringJobsAreThereWithoutAWorker() {
        db.runner()
                .withPropertyValues("pgworker.enabled=false")
                .run(context -> assertThat(context.getBean(RecurringJobs.class).list(RecurringQuery.ALL))
                        .isEmpty());
    }

    private List<String> known() {
        return db.sql("select identifier from {schema}._private_known_crontabs order by 1")
                .query(String.class)
                .list();
    }
}
