package dev.pgworker.crontab;

import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Locale;
import java.util.Map;

import org.assertj.core.groups.Tuple;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.scheduling.annotation.Scheduled;

import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobSpec;
import dev.pgworker.schedule.Misfire;
import dev.pgworker.schedule.Overlap;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.Schedule;
import dev.pgworker.task.JobHandler;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

/** What {@link CronJob} declares beyond items of a crontab. */
@Tag("any-postgres")
class CronJobSchedulesTest {

    private static final ZoneId BERLIN = ZoneId.of("Europe/Berlin");

    static class Everything {

        @JobHandler("weekly")
        @CronJob(
                cron = "0 30 4 ? * MON",
                id = "weekly_report",
                zone = "Europe/Berlin",
                overlap = Overlap.SKIP,
                misfire = Misfire.RUN_ALL,
                fill = "1d12h",
                jitter = "90s",
                startsAt = "2026-01-01T00:00:00+01:00",
                endsAt = "2027-01-01T00:00:00Z",
                maxAttempts = 3,
                queueName = "reports",
                priority = -5,
                jobKey = "weekly",
                jobKeyMode = JobKeyMode.PRESERVE_RUN_AT,
                payload = "{kind: 'full'}",
                flags = {"slow", "big"})
        void weekly() {}
    }

    @Test
    void everyAttributeIsRead() {
        Schedule schedule = schedules(Everything.class).get(0);

        assertThat(schedule.name()).isEqualTo("weekly_report");
        assertThat(schedule.recurrence().kind()).isEqualTo(Recurrence.Kind.CRON);
        assertThat(schedule.recurrence().expression()).isEqualTo("0 30 4 ? * MON");
        assertThat(schedule.recurrence().zone()).isEqualTo(BERLIN);
        assertThat(schedule.overlap()).isEqualTo(Overlap.SKIP);
        assertThat(schedule.misfire()).isEqualTo(Misfire.RUN_ALL);
        assertThat(schedule.backfill()).isEqualTo(Duration.ofHours(36));
        assertThat(schedule.jitter()).isEqualTo(Duration.ofSeconds(90));
        assertThat(schedule.startsAt()).isEqualTo("2025-12-31T23:00:00Z");
        assertThat(schedule.endsAt()).isEqualTo("2027-01-01T00:00:00Z");
        assertThat(schedule.job().identifier()).isEqualTo("weekly");
        assertThat(schedule.job().payload()).hasToString("{\"kind\":\"full\"}");
        assertThat(schedule.job().spec())
                .isEqualTo(JobSpec.builder()
                        .maxAttempts(3)
                        .queueName("reports")
                        .priority(-5)
                        .jobKey("weekly")
                        .jobKeyMode(JobKeyMode.PRESERVE_RUN_AT)
                        .flags("slow", "big")
                        .build());
    }

    static class Kinds {

        @JobHandler("a_rate")
        @CronJob(fixedRate = "1h30m")
        void rate() {}

        @JobHandler("b_rate_from")
        @CronJob(fixedRate = "PT10S", origin = "2026-01-01T06:00:00+01:00")
        void rateFrom() {}

        @JobHandler("c_delay")
        @CronJob(fixedDelay = "5000")
        void tail() {}

        @JobHandler("d_macro")
        @CronJob(cron = "@daily")
        void tailMacro() {}

        @JobHandler("e_fields")
        @CronJob(value = "30 7 * * *", overlap = Overlap.QUEUE)
        void withOverlap() {}

        @JobHandler("item")
        @CronJob("0 8 * * *")
        void workItem() {}
    }

    @Test
    void theAttributeSaysWhatIsMeant() {
        Crontab crontab = Crontab.builder().methods(Kinds.class).build();

        assertThat(crontab.items()).extracting(CronItem::identifier).containsExactly("item");
        assertThat(crontab.schedules())
                .extracting(
                        Schedule::name,
                        schedule -> schedule.recurrence().kind(),
                        schedule -> schedule.recurrence().expression(),
                        schedule -> schedule.recurrence().every(),
                        schedule -> schedule.recurrence().origin())
                .containsExactly(
                        row("a_rate", Recurrence.Kind.FIXED_RATE, null, Duration.ofMinutes(90), Instant.EPOCH),
                        row(
                                "b_rate_from",
                                Recurrence.Kind.FIXED_RATE,
                                null,
                                Duration.ofSeconds(10),
                                Instant.parse("2026-01-01T05:00:00Z")),
                        row("c_delay", Recurrence.Kind.FIXED_DELAY, null, Duration.ofSeconds(5), null),
                        row("d_macro", Recurrence.Kind.CRON, "@daily", null, null),
                        row("e_fields", Recurrence.Kind.CRONTAB, "30 7 * * *", null, null));
    }

    private static Tuple row(Object... values) {
        return Tuple.tuple(values);
    }

    static class Own {

        @JobHandler("jitter")
        @CronJob(value = "0 8 * * *", jitter = "1m")
        void jitter() {}

        @JobHandler("misfire")
        @CronJob(value = "0 8 * * *", misfire = Misfire.RUN_ONCE)
        void misfire() {}

        @JobHandler("span")
        @CronJob(value = "0 8 * * *", startsAt = "2026-01-01T00:00:00Z")
        void span() {}

        @JobHandler("span_end")
        @CronJob(value = "0 8 * * *", endsAt = "2026-01-01T00:00:00Z")
        void spanEnd() {}
    }

    @Test
    void whatACrontabCannotDoMakesAFiveFieldPatternASchedule() {
        assertThat(schedules(Own.class))
                .extracting(Schedule::name)
                .containsExactly("jitter", "misfire", "span", "span_end");
    }

    @Test
    void theCrontabsZoneHoldsForWhatHasNone() {
        Crontab crontab = Crontab.builder()
                .methods(Kinds.class)
                .methods(Everything.class)
                .schedule(Schedule.builder("own", Recurrence.cron("@daily", ZoneOffset.UTC), "own", null)
                        .build())
                .build();

        assertThat(crontab.withDefaultZone(ZoneId.of("Asia/Tokyo")).schedules())
                .filteredOn(schedule -> schedule.recurrence().zone() != null)
                .extracting(
                        Schedule::name, schedule -> schedule.recurrence().zone().getId())
                .containsExactly(
                        row("d_macro", "Asia/Tokyo"),
                        row("e_fields", "Asia/Tokyo"),
                        row("weekly_report", "Europe/Berlin"),
                        row("own", "Z"));
    }

    static class Placeholders {

        @JobHandler("resolved")
        @CronJob(cron = "${cron}", zone = "${zone}", id = "${id}", payload = "{of: '${id}'}", flags = "${id}")
        void resolved() {}

        @JobHandler("off")
        @CronJob(cron = "${off}")
        @CronJob(value = "-", id = "two")
        @CronJob(fixedRate = "-", id = "three")
        @CronJob(fixedDelay = "-", id = "four", overlap = Overlap.SKIP)
        @CronJob(value = "-", id = "five", overlap = Overlap.SKIP)
        void off() {}

        @JobHandler("unknown")
        @CronJob(fixedDelay = "${unknown}")
        void unknown() {}
    }

    @Test
    void placeholdersAreReplacedAndADashSwitchesOff() {
        Map<String, String> properties =
                Map.of("cron", "0 0 6 * * *", "zone", "Europe/Berlin", "id", "named", "off", "-", "unknown", "10s");

        Crontab crontab = placeholders(properties);

        assertThat(crontab.items()).isEmpty();
        assertThat(crontab.schedules()).extracting(Schedule::name).containsExactly("named", "unknown");
        Schedule named = crontab.schedules().get(0);
        assertThat(named.recurrence().expression()).isEqualTo("0 0 6 * * *");
        assertThat(named.recurrence().zone()).isEqualTo(BERLIN);
        assertThat(named.job().payload()).hasToString("{\"of\":\"named\"}");
        assertThat(named.job().spec().flags()).containsExactly("named");
    }

    @Test
    void aPlaceholderWithoutAValueIsAMistakeOfItsAttribute() {
        CrontabException e = catchThrowableOfType(
                CrontabException.class,
                () -> placeholders(Map.of("cron", "@daily", "zone", "Z", "id", "x", "off", "-")));

        assertThat(e.problems())
                .extracting(CrontabProblem::toString)
                .containsExactly("@CronJob of " + Placeholders.class.getName()
                        + ".unknown(), fixedDelay: \"${unknown}\": no value for unknown");
    }

    private static Crontab placeholders(Map<String, String> properties) {
        return Crontab.builder()
                .resolver(text -> {
                    String resolved = text;
                    for (Map.Entry<String, String> property : properties.entrySet()) {
                        resolved = resolved.replace("${" + property.getKey() + "}", property.getValue());
                    }
                    if (resolved.contains("${")) {
                        throw new IllegalArgumentException("no value for " + resolved.replaceAll("[${}]", ""));
                    }
                    return resolved;
                })
                .methods(Placeholders.class)
                .build();
    }

    static class Wrong {

        @JobHandler("a")
        @CronJob
        void a() {}

        @JobHandler("b")
        @CronJob(value = "0 8 * * *", cron = "0 0 8 * * *", jitter = "soon")
        void b() {}

        @JobHandler("c")
        @CronJob(cron = "0 8 * * *", zone = "Mars", origin = "2026-01-01T00:00:00Z", startsAt = "2026-01-01")
        void c() {}

        @JobHandler("d")
        @CronJob(fixedRate = "every day", origin = "tomorrow", zone = "Europe/Berlin", endsAt = "never")
        void d() {}

        @JobHandler("e")
        @CronJob(fixedDelay = "10ms", origin = "2026-01-01T00:00:00Z")
        void e() {}

        @JobHandler("f")
        @CronJob(cron = "@daily", fill = "1d")
        void f() {}

        @JobHandler("g")
        @CronJob(
                value = "61 8 * * *",
                overlap = Overlap.SKIP,
                startsAt = "2027-01-01T00:00:00Z",
                endsAt = "2026-01-01T00:00:00Z")
        void g() {}

        @JobHandler("h")
        @CronJob(cron = "@daily", startsAt = "2027-01-01T00:00:00Z", endsAt = "2026-01-01T00:00:00Z")
        void h() {}

        @JobHandler("i")
        @CronJob(cron = "0 0 0 30 2 ?")
        void i() {}

        @CronJob(fixedRate = "10s")
        void j() {}
    }

    @Test
    void allMistakesAreToldWithTheirAttribute() {
        CrontabException e = catchThrowableOfType(
                CrontabException.class,
                () -> Crontab.builder().methods(Wrong.class).build());

        String wrong = "@CronJob of " + Wrong.class.getName();
        assertThat(e.problems())
                .extracting(problem -> problem.toString().replace(wrong, ""))
                .containsExactly(
                        ".a(): \"\": exactly one of value, cron, fixedRate and fixedDelay must be set",
                        ".b(): \"value, cron\": exactly one of value, cron, fixedRate and fixedDelay must be set",
                        ".b(), jitter: \"soon\": jitter must be a duration such as 90m, 1h30m or PT90M",
                        ".c(), zone: \"Mars\": zone must be a time zone such as Europe/Berlin or +02:00",
                        ".c(), origin: \"2026-01-01T00:00:00Z\": origin requires fixedRate",
                        ".c(), cron: \"0 8 * * *\": expression \"0 8 * * *\" is invalid: Cron expression must consist of 6 fields"
                                // In Spring's words, and in the digits of the default locale.
                                + String.format(Locale.getDefault(), " (found %d in \"0 8 * * *\")", 5),
                        ".c(), startsAt: \"2026-01-01\": startsAt must be an instant such as 2026-01-01T06:00:00Z or"
                                + " 2026-01-01T06:00:00+01:00",
                        ".d(), origin: \"tomorrow\": origin must be an instant such as 2026-01-01T06:00:00Z or"
                                + " 2026-01-01T06:00:00+01:00",
                        ".d(), zone: \"Europe/Berlin\": zone requires value or cron",
                        ".d(), fixedRate: \"every day\": fixedRate must be a duration such as 90m, 1h30m or PT90M",
                        ".d(), endsAt: \"never\": endsAt must be an instant such as 2026-01-01T06:00:00Z or"
                                + " 2026-01-01T06:00:00+01:00",
                        ".e(), origin: \"2026-01-01T00:00:00Z\": origin requires fixedRate",
                        ".e(), fixedDelay: \"10ms\": delay must be between 1 s and 3650 days, but is PT0.01S",
                        ".f(), fill: \"1d\": fill requires misfire RUN_ALL, for each missed execution, or RUN_ONCE, for the last"
                                + " of them",
                        ".g(), value: \"61\": minute must be 0 to 59",
                        ".h(): \"h\": endsAt must be after startsAt, 2027-01-01T00:00:00Z, but is 2026-01-01T00:00:00Z",
                        ".i(), cron: \"0 0 0 30 2 ?\": expression \"0 0 0 30 2 ?\" must be due at some time, but never is",
                        ".j(): \"10s\": must be used together with @JobHandler, which specifies the task to run");
    }

    static class Both {

        @JobHandler("once")
        @CronJob(cron = "0 0 8 * * *")
        @Scheduled(cron = "0 0 8 * * *")
        void once() {}

        @JobHandler("many")
        @CronJob("0 8 * * *")
        @Scheduled(fixedRate = 1000)
        @Scheduled(fixedDelay = 1000)
        void several() {}

        @JobHandler("neither")
        @Scheduled(fixedRate = 1000)
        void unaffected() {}
    }

    @Test
    void aMethodThatSpringSchedulesAsWellIsRefused() {
        CrontabException e = catchThrowableOfType(
                CrontabException.class,
                () -> Crontab.builder().methods(Both.class).build());

        String message = "\"@Scheduled\": the method must not have both: remove @Scheduled to have one instance of the"
                + " application run it, as a job, or remove @CronJob to have each instance run it by itself";
        assertThat(e.problems())
                .extracting(CrontabProblem::toString)
                .containsExactly(
                        "@CronJob of " + Both.class.getName() + ".once(): " + message,
                        "@CronJob of " + Both.class.getName() + ".several(): " + message);
    }

    @Test
    void namesAreUniqueAmongItemsAndSchedules() {
        CrontabException e = catchThrowableOfType(
                CrontabException.class,
                () -> Crontab.builder()
                        .text("file", "* * * * * a_rate")
                        .methods(Kinds.class)
                        .schedule(Schedule.builder("item", Recurrence.fixedDelay(Duration.ofDays(1)), "own", null)
                                .build())
                        .build());

        assertThat(e.problems())
                .extracting(CrontabProblem::toString)
                .containsExactly(
                        "@CronJob of " + Kinds.class.getName()
                                + ".rate(): \"a_rate\": identifier is taken by line 1 of file; set another id",
                        "a Schedule of task own: \"item\": identifier is taken by @CronJob of " + Kinds.class.getName()
                                + ".workItem(); set another id");
    }

    private static List<Schedule> schedules(Class<?> type) {
        Crontab crontab = Crontab.builder().methods(type).build();
        assertThat(crontab.items()).isEmpty();
        return crontab.schedules();
    }
}
