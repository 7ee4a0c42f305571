package dev.pgworker.schedule;

import java.math.BigDecimal;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Map;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.dao.DuplicateKeyException;

import dev.pgworker.WorkerClient;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobSpec;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Recurring jobs that are made, changed and removed at run time. */
class JobSchedulesTest {

    private static final ZoneId BERLIN = ZoneId.of("Europe/Berlin");
    private static final Instant ORIGIN = Instant.parse("2020-01-01T00:00:00.000001Z");

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private JobSchedules schedules() {
        return WorkerClient.jobSchedules(db.dataSource(), db.schema(), db.codec());
    }

    private static Schedule.Builder daily(String name) {
        return Schedule.builder(name, Recurrence.crontab("30  4 * * *", BERLIN), "report", Map.of("tenant", 7));
    }

    @Test
    void whatIsPutIsFound() {
        List<Recurrence> recurrences = List.of(
                Recurrence.crontab("30 4 * * *", BERLIN),
                Recurrence.cron("0 0 8 ? * MON#1", ZoneOffset.ofHours(2)),
                Recurrence.cron("@daily", ZoneId.of("UTC+01:00")),
                Recurrence.fixedRate(Duration.ofMinutes(90), ORIGIN),
                Recurrence.fixedDelay(Duration.ofMillis(1_500)));
        for (Recurrence recurrence : recurrences) {
            Schedule schedule = Schedule.builder(
                            "n", recurrence, "report", Map.of("a", List.of(new BigDecimal("1.10"))))
                    .spec(JobSpec.builder()
                            .queueName("q")
                            .priority(-3)
                            .maxAttempts(4)
                            .jobKey("k")
                            .jobKeyMode(JobKeyMode.PRESERVE_RUN_AT)
                            .flags("f", "g\"\\,{}")
                            .build())
                    .overlap(Overlap.SKIP)
                    .misfire(Misfire.RUN_ALL)
                    .backfill(Duration.ofDays(2))
                    .jitter(Duration.ofMillis(300))
                    .startsAt(Instant.parse("2021-01-01T00:00:00.000002Z"))
                    .endsAt(Instant.parse("9999-01-01T00:00:00Z"))
                    .build();

            ScheduleStatus put = schedules().put(schedule);

            assertThat(put.schedule().job().payload().toString()).isEqualTo("{\"a\":[1.10]}");
            assertThat(put.schedule().toBuilder()
                            .payload(schedule.job().payload())
                            .build())
                    .isEqualTo(schedule);
            assertThat(put.problem()).isNull();
            assertThat(schedules().find("n").orElseThrow())
                    .usingRecursiveComparison()
                    .ignoringFields("schedule", "nextRun")
                    .isEqualTo(put);
        }
    }

    @Test
    void triggersAJobWithAnotherPayload() {
        schedules().create(daily("r").overlap(Overlap.QUEUE).build());

        Job own = schedules().trigger("r");
        Job other = schedules().trigger("r", Map.of());

        assertThat(own.payload()).startsWith("{\"tenant\":7,\"_cron\":{").contains("\"schedule\":\"r\"");
        assertThat(other.payload()).startsWith("{\"_cron\":{\"ts\":\"");
        assertThat(own.queueName()).isEqualTo("r");
        Instant bySql = db.sql("select to_timestamp(payload -> '_cron' ->> 'ts', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS') from"
                        + " {schema}.pgworker_trigger_schedule('r')")
                .query(java.time.OffsetDateTime.class)
                .single()
                .toInstant();
        assertThat(bySql).isNotNull();
    }

    @Test
    void createsOnlyOnce() {
        ScheduleStatus created = schedules().create(daily("r").build());

        assertThat(created.nextRun()).isAfter(created.createdAt().truncatedTo(ChronoUnit.SECONDS));
        assertThatThrownBy(() -> schedules().create(daily("r").build())).isInstanceOf(DuplicateKeyException.class);
        assertThat(schedules().pause("r")).isTrue();
        assertThat(schedules().pause("r")).isFalse();
        assertThat(schedules().put(daily("r").build()).isPaused()).isTrue();
        assertThat(schedules().resume("r")).isTrue();
        assertThat(schedules().resume("r")).isFalse();
        assertThat(schedules().list(new ScheduleQuery("r", "report", false, "a", 10)))
                .hasSize(1);
        assertThat(schedules().delete("r")).isTrue();
        assertThat(schedules().delete("r")).isFalse();
    }
}
