package dev.pgworker.crontab;

import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.time.Duration;
import java.time.ZoneId;
import java.util.List;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobSpec;
import dev.pgworker.task.JobHandler;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

/** Schedules that stand beside their handlers. */
@Tag("any-postgres")
class CronJobMethodsTest {

    static class Reports {

        @JobHandler("weekly")
        @CronJob(
                value = " 30 4  * * 1",
                id = "weekly_report",
                zone = "Europe/Berlin",
                fill = "1d12h",
                maxAttempts = 3,
                queueName = "reports",
                priority = -5,
                jobKey = "weekly",
                jobKeyMode = JobKeyMode.PRESERVE_RUN_AT,
                payload = "{kind: 'full', pages: 0x10}",
                flags = {"slow", "big"})
        void weekly() {}

        @JobHandler("often")
        @CronJob("*/10 * * * *")
        void often(String kind) {}

        void neither() {}
    }

    @Test
    void everyAttributeIsRead() {
        CronItem item = items(Reports.class).get(1);

        assertThat(item.identifier()).isEqualTo("weekly_report");
        assertThat(item.task()).isEqualTo("weekly");
        assertThat(item.schedule()).isEqualTo("30 4 * * 1");
        assertThat(item.zone()).isEqualTo(ZoneId.of("Europe/Berlin"));
        assertThat(item.fill()).isEqualTo(Duration.ofHours(36));
        assertThat(item.job().payload()).hasToString("{\"kind\":\"full\",\"pages\":16}");
        assertThat(item.spec())
                .isEqualTo(JobSpec.builder()
                        .maxAttempts(3)
                        .queueName("reports")
                        .priority(-5)
                        .jobKey("weekly")
                        .jobKeyMode(JobKeyMode.PRESERVE_RUN_AT)
                        .flags("slow", "big")
                        .build());
    }

    @Test
    void whatIsLeftOutIsNotSet() {
        CronItem item = items(Reports.class).get(0);

        assertThat(item.identifier()).isEqualTo("often");
        assertThat(item.zone()).isNull();
        assertThat(item.fill()).isZero();
        assertThat(item.job().payload()).isNull();
        assertThat(item.spec()).isEqualTo(JobSpec.DEFAULT);
    }

    @JobHandler("nightly")
    @CronJob("0 3 * * *")
    @Retention(RetentionPolicy.RUNTIME)
    @interface Nightly {}

    interface Shared {
        @JobHandler("shared")
        @CronJob("1 * * * *")
        void shared();
    }

    static class Inherited implements Shared {

        @Override
        public void shared() {}

        @Nightly
        void composed() {}

        @JobHandler("twice")
        @CronJob(value = "0 8 * * *", id = "morning")
        @CronJob(value = "0 20 * * *", id = "evening")
        void twice() {}
    }

    static class Overriding extends Inherited {

        @Override
        @JobHandler("shared")
        @CronJob("2 * * * *")
        public void shared() {}
    }

    @Test
    void composedInheritedAndRepeatedAnnotationsCount() {
        assertThat(items(Inherited.class))
                .extracting(CronItem::toString)
                .containsExactly(
                        "CronItem[nightly, task nightly]",
                        "CronItem[shared, task shared]",
                        "CronItem[morning, task twice]",
                        "CronItem[evening, task twice]");
    }

    @Test
    void anOverridingMethodHasItsOwnScheduleOnly() {
        assertThat(items(Overriding.class))
                .filteredOn(item -> item.task().equals("shared"))
                .extracting(CronItem::schedule)
                .containsExactly("2 * * * *");
    }

    static class Wrong {

        @JobHandler("a")
        @CronJob(
                value = "60 25 * * *",
                zone = "Mars/Olympus",
                fill = "soon",
                maxAttempts = -1,
                priority = 40_000,
                jobKeyMode = JobKeyMode.UNSAFE_DEDUPE,
                payload = "[1]",
                flags = "")
        void many(String one, int two) {}

        @CronJob("* * * * *")
        void withoutHandler() {}

        @JobHandler("p")
        @CronJob(value = "* * * *", payload = "{a: 01}")
        void pattern() {}

        @JobHandler("taken")
        @CronJob("* * * * *")
        void taken() {}
    }

    @Test
    void allMistakesAreToldWithClassMethodAndAttribute() {
        CrontabException e = catchThrowableOfType(
                CrontabException.class,
                () -> Crontab.builder()
                        .text("file", "* * * * * other ?id=taken\n* * * * * b ?max=0")
                        .methods(Wrong.class)
                        .build());

        String wrong = "@CronJob of " + Wrong.class.getName();
        assertThat(e.problems())
                .extracting(CrontabProblem::toString)
                .containsExactly(
                        "file:2:14: \"max=0\": max must be a number from 1 to 32767",
                        wrong + ".many(String, int), value: \"60\": minute must be 0 to 59",
                        wrong + ".many(String, int), value: \"25\": hour must be 0 to 23",
                        wrong + ".many(String, int), zone: \"Mars/Olympus\": zone must be a time zone such as"
                                + " Europe/Berlin or +02:00",
                        wrong + ".many(String, int), fill: \"soon\": fill must be a time phrase such as 4w3d2h1m",
                        wrong + ".many(String, int), maxAttempts: \"-1\": maxAttempts must be between 1 and 32767, but"
                                + " is -1",
                        wrong + ".many(String, int), priority: \"40000\": priority must be between -32768 and 32767,"
                                + " but is 40000",
                        wrong + ".many(String, int), jobKeyMode: \"UNSAFE_DEDUPE\": jobKeyMode requires a jobKey",
                        wrong + ".many(String, int), flags: \"[]\": flags[0] must not be empty",
                        wrong + ".many(String, int), payload: \"[1]\": payload must be a JSON5 object { }",
                        wrong + ".pattern(), value: \"* * * *\": must be minute, hour, day of month, month, day of"
                                + " week, but has 4 fields",
                        wrong + ".pattern(), payload: \"{a: 01}\": payload must not follow a number, at \"1}\"",
                        wrong + ".withoutHandler(): \"* * * * *\": must be used together with @JobHandler,"
                                + " which specifies the task to run",
                        wrong + ".taken(): \"taken\": identifier is taken by line 1 of file; set another id");
    }

    private static List<CronItem> items(Class<?> type) {
        return Crontab.builder().methods(type).build().items();
    }
}
