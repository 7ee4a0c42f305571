package dev.pgworker.schedule;

import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;
import org.postgresql.util.PSQLException;
import org.springframework.dao.DuplicateKeyException;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.util.RawValue;

import dev.pgworker.WorkerClient;
import dev.pgworker.internal.client.ScheduleControl;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.ScheduleInterceptor;
import dev.pgworker.testing.LogCapture;
import dev.pgworker.testing.OwnThread;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Recurring jobs that are made, changed and removed at run time. */
@Tag("any-postgres")
class RecurringJobsTest {

    private static final ZoneId BERLIN = ZoneId.of("Europe/Berlin");
    private static final Instant ORIGIN = Instant.parse("2020-01-01T00:00:00.000001Z");

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private RecurringJobs schedules() {
        return WorkerClient.recurringJobs(db.dataSource(), db.schema(), db.codec());
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

            RecurringJob put = schedules().put(schedule);

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

    private TransactionTemplate transaction() {
        return new TransactionTemplate(new JdbcTransactionManager(db.dataSource()));
    }

    private Instant now() {
        return db.sql("select clock_timestamp()")
                .query(OffsetDateTime.class)
                .single()
                .toInstant();
    }

    private void set(String assignments) {
        db.sql("update {schema}.pgworker_schedules set " + assignments).update();
    }

    private String column(String column) {
        return db.sql("select (" + column + ")::text from {schema}.pgworker_schedules")
                .query(String.class)
                .single();
    }

    @Test
    void aScheduleIsCreatedOnce() {
        RecurringJob created = schedules().create(daily("r").build());

        assertThatThrownBy(() -> schedules().create(daily("r").build()))
                .isInstanceOf(DuplicateKeyException.class)
                .hasMessageContaining("create schedule \"r\"");
        assertThat(schedules().find("r").orElseThrow().createdAt()).isEqualTo(created.createdAt());
        assertThat(schedules().find("s")).isEmpty();
    }

    @Test
    void nothingIsLeftOfATransactionThatIsRolledBack() {
        schedules().create(daily("there").build());

        transaction().executeWithoutResult(status -> {
            schedules().create(daily("r").build());
            assertThat(schedules().find("r")).isPresent();
            schedules().pause("there");
            schedules().trigger("there");
            schedules().delete("there");
            assertThat(schedules().find("there")).isEmpty();
            status.setRollbackOnly();
        });

        assertThat(schedules().list(RecurringQuery.ALL))
                .singleElement()
                .satisfies(one -> assertThat(one.id()).isEqualTo("there"))
                .satisfies(one -> assertThat(one.isPaused()).isFalse());
        assertThat(db.jobs()).isZero();
    }

    @Test
    void aPutKeepsThePauseAndWhatExecutionsHaveWritten() {
        schedules().create(daily("r").build());
        set("next_at = '2026-01-02 03:30Z', last_at = '2026-01-01 03:30Z', last_job_id = 7");
        assertThat(schedules().pause("r")).isTrue();
        assertThat(schedules().pause("r")).isFalse();

        RecurringJob put = schedules()
                .put(daily("r")
                        .payload(Map.of("tenant", 8))
                        .misfire(Misfire.RUN_ONCE)
                        .build());

        assertThat(put.isPaused()).isTrue();
        assertThat(put.nextRun()).as("while it is paused").isNull();
        assertThat(put.lastRun()).isEqualTo(Instant.parse("2026-01-01T03:30:00Z"));
        assertThat(put.lastJobId()).isEqualTo(7);
        assertThat(put.updatedAt()).isAfter(put.createdAt());
        assertThat(put.schedule().misfire()).isEqualTo(Misfire.RUN_ONCE);
        assertThat(column("next_at = '2026-01-02 03:30Z'")).isEqualTo("true");
        assertThat(schedules().put(put.schedule())).as("the same once more").isEqualTo(put);
    }

    @Test
    void anotherRecurrenceStartOrEndIsDueFromNowOn() {
        for (UnaryOperator<Schedule.Builder> change : List.<UnaryOperator<Schedule.Builder>>of(
                schedule -> schedule.recurrence(Recurrence.crontab("31 4 * * *", BERLIN)),
                schedule -> schedule.recurrence(Recurrence.crontab("30 4 * * *", ZoneOffset.UTC)),
                schedule -> schedule.recurrence(Recurrence.cron("0 30 4 * * *", BERLIN)),
                schedule -> schedule.recurrence(Recurrence.fixedDelay(Duration.ofHours(1))),
                schedule -> schedule.startsAt(ORIGIN),
                schedule -> schedule.endsAt(Instant.parse("2999-01-01T00:00:00Z")))) {
            schedules().put(daily("r").build());
            set("next_at = null, last_at = now()");

            RecurringJob put = schedules().put(change.apply(daily("r")).build());

            assertThat(column("next_at")).isEqualTo("-infinity");
            assertThat(put.nextRun()).isBetween(put.createdAt(), now().plus(2, ChronoUnit.DAYS));
        }
    }

    @Test
    void aPutCountsAProblemAsMended() {
        schedules().put(daily("r").build());
        set("next_at = null, problem = 'the job is refused'");
        assertThat(schedules().find("r").orElseThrow().problem()).isEqualTo("the job is refused");

        RecurringJob put = schedules().put(daily("r").build());

        assertThat(put.problem()).isNull();
        assertThat(put.nextRun()).isNotNull();
    }

    @Test
    void anotherDelayCountsFromTheEndOfThePreviousJob() {
        Schedule hourly = Schedule.builder("r", Recurrence.fixedDelay(Duration.ofHours(1)), "t", null)
                .build();
        Schedule longer = hourly.toBuilder()
                .recurrence(Recurrence.fixedDelay(Duration.ofHours(3)))
                .build();
        Instant before = now();
        assertThat(schedules().put(hourly).nextRun()).as("due at once").isBetween(before, now());
        assertThat(schedules().put(longer).nextRun()).as("due at once").isBetween(before, now());
        set("next_at = '2026-01-01 03:00Z', last_at = '2026-01-01 00:00Z'");

        assertThat(schedules().put(hourly).nextRun()).isEqualTo(Instant.parse("2026-01-01T01:00:00Z"));

        set("next_at = null, awaits_end = true");
        assertThat(schedules().put(longer).nextRun()).as("its job runs").isNull();
        assertThat(column("awaits_end")).isEqualTo("true");
        schedules().put(daily("r").build());
        assertThat(column("awaits_end")).isEqualTo("false");
    }

    @Test
    void whatWasDueDuringAPauseIsPassedOver() {
        schedules().put(daily("r").build());
        schedules().pause("r");
        set("next_at = now() - interval '3 days'");
        assertThat(schedules().resume("r")).isTrue();
        assertThat(schedules().resume("r")).isFalse();
        assertThat(schedules().find("r").orElseThrow().nextRun()).isAfter(now());

        schedules().pause("r");
        set("next_at = '2999-01-01Z'");
        schedules().resume("r");
        assertThat(schedules().find("r").orElseThrow().nextRun()).isEqualTo(Instant.parse("2999-01-01T00:00:00Z"));

        schedules()
                .put(Schedule.builder("r", Recurrence.fixedDelay(Duration.ofHours(1)), "t", null)
                        .build());
        schedules().pause("r");
        set("next_at = now() - interval '3 days'");
        Instant before = now();
        schedules().resume("r");
        assertThat(schedules().find("r").orElseThrow().nextRun())
                .isBetween(before.plusSeconds(3_600), now().plusSeconds(3_600));

        schedules().pause("r");
        set("next_at = null, awaits_end = true");
        schedules().resume("r");
        assertThat(schedules().find("r").orElseThrow().nextRun())
                .as("its job runs")
                .isNull();
    }

    @Test
    void aDelayThatIsResumedOrChangedKeepsToItsStartAndEnd() {
        Schedule delay = Schedule.builder("r", Recurrence.fixedDelay(Duration.ofHours(1)), "t", null)
                .startsAt(Instant.parse("2020-01-01T00:00:00Z"))
                .endsAt(Instant.parse("2999-01-01T00:00:00Z"))
                .build();
        schedules().put(delay);
        schedules().pause("r");
        set(
                "last_at = now() - interval '3 days', next_at = now() - interval '2 days', ends_at = now() - interval '1 day'");
        schedules().resume("r");
        assertThat(column("next_at is null")).as("has ended meanwhile").isEqualTo("true");

        schedules().put(delay);
        set("next_at = '2998-12-31 23:00Z'");
        Recurrence longer = Recurrence.fixedDelay(Duration.ofHours(2));
        assertThat(schedules().put(delay.toBuilder().recurrence(longer).build()).nextRun())
                .as("would be at its end")
                .isNull();

        Instant later = Instant.parse("2900-01-01T00:00:00Z");
        schedules().put(delay.toBuilder().startsAt(later).build());
        set("next_at = starts_at");
        Recurrence shorter = Recurrence.fixedDelay(Duration.ofMinutes(1));
        assertThat(schedules()
                        .put(delay.toBuilder()
                                .recurrence(shorter)
                                .startsAt(later)
                                .build())
                        .nextRun())
                .isEqualTo(later);
    }

    @Test
    void theNextRunIsTheOneThatWillHappen() {
        Schedule rate = Schedule.builder("r", Recurrence.fixedRate(Duration.ofDays(2), ORIGIN), "t", null)
                .build();
        Instant begin = Instant.parse("2999-01-01T00:00:00Z");
        assertThat(schedules().put(rate).nextRun()).isEqualTo(rate.nextDue(now()));
        assertThat(schedules().put(rate.toBuilder().startsAt(begin).build()).nextRun())
                .isBetween(begin, begin.plus(2, ChronoUnit.DAYS));
        assertThat(schedules()
                        .put(rate.toBuilder()
                                .recurrence(Recurrence.fixedDelay(Duration.ofDays(1)))
                                .startsAt(begin)
                                .build())
                        .nextRun())
                .isEqualTo(begin);
        assertThat(schedules().put(rate.toBuilder().endsAt(ORIGIN).build()).nextRun())
                .as("has ended")
                .isNull();
    }

    @Test
    void aPauseWaitsForAnExecutionThatIsUnderWay() throws Exception {
        schedules().put(daily("r").build());
        try (Connection execution = db.dataSource().getConnection();
                Statement statement = execution.createStatement()) {
            execution.setAutoCommit(false);
            statement.execute(db.schema().in("select from {schema}.pgworker_schedules for update"));

            CompletableFuture<Boolean> pause =
                    CompletableFuture.supplyAsync(() -> schedules().pause("r"), OwnThread.EACH);

            Awaitility.await()
                    .untilAsserted(() -> assertThat(
                                    db.sql("select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
                                                    + " and query like '%{schema}.pgworker_pause_schedule%'")
                                            .query(Long.class)
                                            .single())
                            .isEqualTo(1));
            assertThat(pause).isNotDone();
            execution.commit();
            assertThat(pause.get(120, TimeUnit.SECONDS)).isTrue();
        }
    }

    @Test
    void ofManyWhoCreateItOneDoes() {
        List<CompletableFuture<Boolean>> attempts = IntStream.range(0, 8)
                .mapToObj(i -> CompletableFuture.supplyAsync(
                        () -> {
                            try {
                                schedules().create(daily("r").build());
                                return true;
                            } catch (DuplicateKeyException e) {
                                return false;
                            }
                        },
                        OwnThread.EACH))
                .toList();

        assertThat(attempts.stream().map(CompletableFuture::join).filter(created -> created))
                .hasSize(1);
    }

    @Test
    void manyChangeItAtTheSameTime() {
        List<CompletableFuture<Void>> changes = IntStream.range(0, 6)
                .mapToObj(i -> CompletableFuture.runAsync(
                        () -> {
                            for (int n = 0; n < 40; n++) {
                                Recurrence recurrence = Recurrence.crontab(n % 60 + " 1 * * *", BERLIN);
                                // Another one may delete it, so that there is nothing to pause.
                                transaction().executeWithoutResult(status -> {
                                    schedules()
                                            .put(daily("r")
                                                    .recurrence(recurrence)
                                                    .build());
                                    boolean unused = i % 3 == 0
                                            ? schedules().delete("r")
                                            : i % 3 == 1
                                                    ? schedules().pause("r")
                                                    : schedules().resume("r");
                                });
                            }
                        },
                        OwnThread.EACH))
                .toList();

        assertThat(changes).allSatisfy(change -> change.get(120, TimeUnit.SECONDS));
    }

    @Test
    void workersAreWokenOncePerTransactionThatChangesWhatIsDue() throws Exception {
        try (Connection connection = db.dataSource().getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("listen \"pgworker:schedules\"");
            PGConnection listener = connection.unwrap(PGConnection.class);

            transaction()
                    .executeWithoutResult(status -> IntStream.range(0, 50)
                            .forEach(i -> schedules().put(daily("r" + i).build())));

            assertThat(listener.getNotifications(10_000))
                    .singleElement()
                    .satisfies(one -> assertThat(one.getParameter()).isEmpty());

            schedules().put(daily("r1").build());
            schedules().pause("r1");
            schedules().delete("r2");
            schedules().find("r1");
            schedules().resume("r1");
            schedules().put(daily("r1").overlap(Overlap.QUEUE).build());
            List<PGNotification> more = new ArrayList<>();
            Awaitility.await().untilAsserted(() -> {
                more.addAll(List.of(listener.getNotifications(100)));
                assertThat(more).hasSizeGreaterThanOrEqualTo(2);
            });
            assertThat(more).as("the resume and the last put").hasSize(2);
            statement.execute("unlisten *");
        }
    }

    @Test
    void triggersAJobAtOnce() {
        schedules()
                .create(daily("r\"\\ü")
                        .overlap(Overlap.QUEUE)
                        .spec(JobSpec.builder()
                                .maxAttempts(3)
                                .priority(-1)
                                .flags("f")
                                .build())
                        .build());
        schedules().pause("r\"\\ü");
        Instant before = now().truncatedTo(ChronoUnit.MILLIS);

        for (Job job : List.of(
                schedules().trigger("r\"\\ü"),
                schedules().trigger("r\"\\ü", Map.of("tenant", 7)),
                bySql("r\"\\ü", null),
                bySql("r\"\\ü", " {\"tenant\": 7 } "))) {
            JsonNode payload = new JsonMapper().readTree(job.payload());
            assertThat(payload.path("tenant").asInt()).isEqualTo(7);
            assertThat(payload.path("_cron").path("schedule").asString()).isEqualTo("r\"\\ü");
            assertThat(payload.path("_cron").path("backfilled").asBoolean(true)).isFalse();
            assertThat(Instant.parse(payload.path("_cron").path("ts").asString()))
                    .isBetween(before, now());
            assertThat(job.queueName()).isEqualTo("r\"\\ü");
            assertThat(job.maxAttempts()).isEqualTo(3);
            assertThat(job.priority()).isEqualTo(-1);
            assertThat(job.flags()).containsExactly("f");
        }
        assertThat(schedules().trigger("r\"\\ü", null).payload()).startsWith("{\"_cron\":{\"ts\":\"");
        assertThat(bySql("r\"\\ü", "{ }").payload()).startsWith("{\"_cron\":{\"ts\":\"");
        assertThat(column("next_at")).isEqualTo("-infinity");
        assertThat(column("last_job_id is null")).isEqualTo("true");
    }

    private Job bySql(String name, String payload) {
        long id = db.sql("select id from {schema}.pgworker_trigger_schedule(?, ?::json)")
                .params(Arrays.asList(name, payload))
                .query(Long.class)
                .single();
        return db.queries().find(id).orElseThrow();
    }

    @Test
    void whatIsTriggeredIsIntercepted() {
        ScheduleInterceptor interceptor = request -> request.identifier().equals("dropped")
                ? null
                : JobRequest.of("other", request.payload(), request.spec());
        RecurringJobs intercepted = WorkerClient.recurringJobs(
                db.dataSource(),
                db.schema(),
                db.codec(),
                WorkerClient.jobScheduler(db.dataSource(), db.schema(), db.codec(), () -> List.of(interceptor)),
                List::of);
        intercepted.put(daily("r").build());
        intercepted.put(Schedule.builder("d", Recurrence.fixedDelay(Duration.ofHours(1)), "dropped", null)
                .build());

        assertThat(intercepted.trigger("r").taskIdentifier()).isEqualTo("other");
        assertThat(intercepted.trigger("d").isSkipped()).isTrue();
        assertThat(db.jobs()).isEqualTo(1);
    }

    @Test
    void onlyWhatIsThereIsTriggeredWithAnObject() {
        schedules().put(daily("r").build());

        assertThatIllegalArgumentException()
                .isThrownBy(() -> schedules().trigger("nobody"))
                .withMessage(
                        "id \"nobody\" must be that of a schedule or an item of this application's crontab, but there is none");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> schedules().trigger("r", List.of(1)))
                .withMessage("payload must be serialized as a JSON object, to which _cron is added, but is array");
        assertRefused("select {schema}.pgworker_trigger_schedule('nobody')", "There is no schedule 'nobody'.");
        assertRefused("select {schema}.pgworker_trigger_schedule(null)", "There is no schedule null.");
        assertRefused(
                "select {schema}.pgworker_trigger_schedule('r', '[]')",
                "payload must be a JSON object, to which _cron is added, but is 'array'");
        assertThat(db.jobs()).isZero();
    }

    private void assertRefused(String statement, String message) {
        assertThatThrownBy(() -> db.sql(statement).query().listOfRows())
                .as(statement)
                .rootCause()
                .isInstanceOfSatisfying(PSQLException.class, e -> {
                    assertThat(e.getServerErrorMessage().getMessage()).startsWith(message);
                    assertThat(e.getSQLState()).isEqualTo("22023");
                });
    }

    @Test
    void sqlIsToldWhatIsWrongAndWhatIsAllowed() {
        Map<String, String> refused = new LinkedHashMap<>();
        refused.put("null, 't', cron => '@daily'", "name must have 1 to 128 characters, but is null");
        refused.put("'', 't', cron => '@daily'", "name must have 1 to 128 characters, but has 0");
        refused.put("repeat('n', 129), 't', cron => '@daily'", "name must have 1 to 128 characters, but has 129");
        refused.put("'n', null, cron => '@daily'", "identifier must have 1 to 128 characters, but is null");
        refused.put("'n', repeat('n', 129), cron => '@daily'", "identifier must have 1 to 128 characters, but has 129");
        refused.put("'n', 't'", "exactly one of crontab, cron, fixed_rate and fixed_delay must be given, but 0 are");
        refused.put(
                "'n', 't', cron => '@daily', fixed_delay => '1 h'",
                "exactly one of crontab, cron, fixed_rate and fixed_delay must be given, but 2 are");
        refused.put(
                "'n', 't', crontab => '* * * *'",
                "crontab must be minute, hour, day of month, month and day of week, each a number, a range a-b, * or */n, or"
                        + " several joined by commas, but is '* * * *'");
        refused.put(
                "'n', 't', cron => '* * * * *'",
                "cron must be second, minute, hour, day of month, month and day of week, or a macro such as @daily, but is"
                        + " '* * * * *'");
        refused.put("'n', 't', cron => repeat('x', 1001)", "cron must have 1 to 1000 characters, but has 1001");
        refused.put(
                "'n', 't', cron => '@daily', zone => 'Central Europe'",
                "zone must be the name of a time zone, such as Europe/Berlin, but is 'Central Europe'");
        refused.put("'n', 't', cron => '@daily', zone => ''", "zone must have 1 to 128 characters, but has 0");
        refused.put(
                "'n', 't', fixed_delay => '1 h', zone => 'UTC'",
                "zone must be null without crontab or cron, but is 'UTC'");
        refused.put(
                "'n', 't', fixed_rate => '1 h'",
                "origin must be given with fixed_rate, a time at which it is due, and else be null, but is null");
        refused.put("'n', 't', fixed_rate => '1 h', origin => 'infinity'", "origin must be finite, but is 'infinity'");
        refused.put(
                "'n', 't', fixed_delay => '0.999 s'",
                "fixed_delay must be between 00:00:01 and 3650 days, but is '00:00:00.999'");
        refused.put(
                "'n', 't', fixed_delay => '1 month'",
                "fixed_delay must be given in days, hours, minutes and seconds, as months differ in length, but is '1 mon'");
        refused.put(
                "'n', 't', fixed_rate => '20 years', origin => 'epoch'",
                "fixed_rate must be between 00:00:01 and 3650 days, but is '20 years'");
        refused.put(
                "'n', 't', cron => '@daily', starts_at => '-infinity'",
                "starts_at must be finite, or null for no limit, but is '-infinity'");
        refused.put(
                "'n', 't', cron => '@daily', ends_at => 'infinity'",
                "ends_at must be finite, or null for no limit, but is 'infinity'");
        refused.put(
                "'n', 't', cron => '@daily', starts_at => '2026-01-01Z', ends_at => '2026-01-01Z'",
                "ends_at must be after starts_at, ");
        refused.put(
                "'n', 't', cron => '@daily', jitter => '-1 s'",
                "jitter must be between 0 and 7 days, but is '-00:00:01'");
        refused.put(
                "'n', 't', cron => '@daily', jitter => '8 d'", "jitter must be between 0 and 7 days, but is '8 days'");
        refused.put(
                "'n', 't', cron => '@daily', jitter => '-1 month 31 days'",
                "jitter must be given in days, hours, minutes and seconds, as months differ in length, but is '-1 mons +31 days'");
        refused.put(
                "'n', 't', fixed_rate => '1 h', origin => 'epoch', jitter => '1 h'",
                "jitter must be less than fixed_rate, 01:00:00, but is '01:00:00'");
        refused.put(
                "'n', 't', '[1]', cron => '@daily'",
                "payload must be a JSON object, to which _cron is added, but is 'array'");
        refused.put(
                "'n', 't', json_build_object('a', repeat('x', 100000)), cron => '@daily'",
                "payload must have at most 100000 characters, but has 100010");
        refused.put(
                "'n', 't', cron => '@daily', max_attempts => 0",
                "max_attempts must be between 1 and 32767, but is '0'");
        refused.put(
                "'n', 't', cron => '@daily', priority => 32768",
                "priority must be between -32768 and 32767, but is '32768'");
        refused.put(
                "'n', 't', cron => '@daily', queue_name => ''", "queue_name must have 1 to 128 characters, but has 0");
        refused.put(
                "'n', 't', cron => '@daily', job_key => repeat('k', 513)",
                "job_key must have 1 to 512 characters, but has 513");
        refused.put(
                "'n', 't', cron => '@daily', job_key_mode => 'x'",
                "job_key_mode must be replace, preserve_run_at, unsafe_dedupe or replace_and_cancel, but is 'x'");
        refused.put("'n', 't', cron => '@daily', overlap => 'x'", "overlap must be allow, queue or skip, but is 'x'");
        refused.put(
                "'n', 't', cron => '@daily', misfire => 'x'", "misfire must be skip, run_once or run_all, but is 'x'");
        refused.put(
                "'n', 't', cron => '@daily', backfill => '0'",
                "backfill must be between 00:00:01 and 3650 days, but is '00:00:00'");
        for (String flags : List.of("{a,a}", "{NULL}", "{\"\"}")) {
            refused.put(
                    "'n', 't', cron => '@daily', flags => '" + flags + "'",
                    "flags must be different texts, none null and none empty, but is '" + flags + "'");
        }
        refused.forEach((arguments, message) ->
                assertRefused("select {schema}.pgworker_put_schedule(" + arguments + ")", message));
        assertRefused(
                "select {schema}.pgworker_pause_schedule('n', '')", "by must have 1 to 255 characters, but has 0");
        assertThat(schedules().list(RecurringQuery.ALL)).isEmpty();
    }

    @Test
    void whatSqlPutsIsRead() {
        db.sql(
                        "select {schema}.pgworker_put_schedule('n', 't', fixed_rate => '1 day 30 minutes', origin => '2026-01-01Z',"
                                + " flags => '{{a,b},{c,d}}', jitter => '1.5 seconds', payload => '{\"a\":\"\\u0000\"}')")
                .query()
                .listOfRows();

        RecurringJob read = schedules().find("n").orElseThrow();

        assertThat(read.problem()).isNull();
        assertThat(read.schedule().recurrence())
                .isEqualTo(Recurrence.fixedRate(Duration.ofMinutes(1_470), Instant.parse("2026-01-01T00:00:00Z")));
        assertThat(read.schedule().job().spec().flags()).containsExactly("a", "b", "c", "d");
        assertThat(read.schedule().jitter()).isEqualTo(Duration.ofMillis(1_500));
        assertThat(schedules().put(read.schedule())).isEqualTo(read);
    }

    @Test
    void aRowThatCannotBeReadHurtsOnlyItself() {
        schedules().put(daily("m").build());
        for (String row : List.of(
                "'a', 'crontab', '61 * * * *', 'UTC', null, null",
                "'b', 'cron', '0 0 0 30 2 *', 'UTC', null, null",
                "'c', 'cron', '@daily', 'Mars/Olympus', null, null",
                "'d', 'delay', null, null, '3650 days', '{NULL}'",
                "'z', 'cron', 'x y', 'UTC', null, '{\"\"}'")) {
            db.sql(
                            "insert into {schema}.pgworker_schedules (name, kind, expression, zone, every, flags, task_identifier)"
                                    + " values (" + row + ", 't')")
                    .update();
        }
        db.sql("update {schema}.pgworker_schedules set payload = ?::json where name = 'z'")
                .param("{\"a\":" + "[".repeat(5_000) + "]".repeat(5_000) + "}")
                .update();

        List<RecurringJob> all = schedules().list(RecurringQuery.ALL);

        assertThat(all).extracting(RecurringJob::id).containsExactly("a", "b", "c", "d", "m", "z");
        assertThat(all.get(4).schedule()).isNotNull();
        for (int i : new int[] {0, 1, 2, 3, 5}) {
            assertThat(all.get(i).schedule()).isNull();
            assertThat(all.get(i).problem()).isNotEmpty();
            assertThat(all.get(i).nextRun()).isNull();
        }
        assertThat(all.get(0).problem()).contains("minute must be 0 to 59");
        assertThat(all.get(2).problem()).contains("Mars/Olympus");
        assertThat(schedules().trigger("c").taskIdentifier()).isEqualTo("t");
        assertThatThrownBy(() -> schedules().trigger("z"))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageStartingWith("Schedule \"z\" cannot be read: ");
        assertThat(schedules().pause("a")).isTrue();
        assertThat(schedules().delete("z")).isTrue();
        assertThat(schedules().put(daily("a").build()).schedule()).isNotNull();
    }

    @Test
    void namesAndPayloadsMayBeAnythingThatTheDatabaseCanStore() {
        for (String name : List.of("😀".repeat(128), "a b\n%_\\'\"", "{schema}", "?", "null")) {
            schedules().put(daily(name).build());
            assertThat(schedules().find(name)).isPresent();
            assertThat(schedules().list(new RecurringQuery(name, null, null, null, 10)))
                    .hasSize(1);
            assertThat(schedules().pause(name)).isTrue();
            assertThat(schedules().trigger(name).isSkipped()).isFalse();
            assertThat(schedules().delete(name)).isTrue();
        }
        for (String name : List.of("", "n".repeat(129), "a\0b", "\ud800")) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> daily(name).build())
                    .withMessageStartingWith("name must ");
        }
        for (String id : List.of("", "a\0b", "\ud800")) {
            for (Consumer<RecurringJobs> call : List.<Consumer<RecurringJobs>>of(
                    all -> all.find(id),
                    all -> all.pause(id),
                    all -> all.resume(id),
                    all -> all.delete(id),
                    all -> all.trigger(id))) {
                assertThatIllegalArgumentException()
                        .isThrownBy(() -> call.accept(schedules()))
                        .withMessageStartingWith("id must ");
            }
        }
        Map<Object, String> payloads = new LinkedHashMap<>();
        payloads.put(
                List.of(1),
                "payload of schedule \"r\" must be serialized as a JSON object, to which _cron is added, but is array");
        payloads.put(
                "x".repeat(100_000),
                "payload of schedule \"r\" must have at most 100000 characters as JSON, but has 100002");
        payloads.put(JobSpec.DEFAULT, "payload of schedule \"r\" must not be a JobSpec: ");
        payloads.put(new RawValue("{"), "payload of schedule \"r\" cannot be read as JSON: ");
        payloads.put(Map.of("a", "\ud800"), "payload of schedule \"r\" must not contain a lone surrogate");
        payloads.forEach((payload, message) -> assertThatIllegalArgumentException()
                .isThrownBy(() -> schedules().put(daily("r").payload(payload).build()))
                .withMessageStartingWith(message));
        Map<String, Object> largest = Map.of("a", "ü".repeat(99_992));
        assertThat(schedules().put(daily("r").payload(largest).build()).problem())
                .isNull();
        assertThat(schedules()
                        .put(daily("r").payload(Map.of("a", "\0")).build())
                        .problem())
                .isNull();
    }

    @Test
    void listsPagesOfWhatIsAskedFor() {
        for (String name : List.of("a%", "a_", "ab", "aé", "b", "B")) {
            schedules().put(daily(name).build());
        }
        schedules()
                .put(Schedule.builder("other", Recurrence.fixedDelay(Duration.ofHours(1)), "t", null)
                        .build());
        schedules().pause("ab");

        assertThat(names(new RecurringQuery(null, null, null, null, 1000)))
                .containsExactly("B", "a%", "a_", "ab", "aé", "b", "other");
        assertThat(names(new RecurringQuery("a", null, null, "a_", 1))).containsExactly("ab");
        assertThat(names(new RecurringQuery("a", null, null, "ab", 5))).containsExactly("aé");
        assertThat(names(new RecurringQuery("a%", null, null, null, 5))).containsExactly("a%");
        assertThat(names(new RecurringQuery("", "report", true, null, 5))).containsExactly("ab");
        assertThat(names(new RecurringQuery(null, "report", false, "aé", 5))).containsExactly("b");
        assertThat(names(new RecurringQuery(null, "t", null, null, 5))).containsExactly("other");
        assertThat(names(new RecurringQuery(null, "nobody's", null, null, 5))).isEmpty();
        db.sql("update {schema}.pgworker_schedules set problem = 'p' where name in ('b', 'B')")
                .update();
        assertThat(names(new RecurringQuery(null, null, null, true, RecurringQuery.SCHEDULES, null, 5)))
                .containsExactly("B", "b");
        assertThat(names(new RecurringQuery("a", null, null, false, RecurringQuery.SCHEDULES, "a_", 5)))
                .containsExactly("ab", "aé");
    }

    private List<String> names(RecurringQuery query) {
        return schedules().list(query).stream().map(RecurringJob::id).toList();
    }

    @Test
    void aTriggerThatKeepsRowsOutIsNamed() {
        db.sql("create function {schema}.keep_out() returns trigger language plpgsql as 'begin return null; end'")
                .update();
        db.sql(
                        "create trigger keep_out before insert or update on {schema}.pgworker_schedules for each row execute function"
                                + " {schema}.keep_out()")
                .update();

        assertThatThrownBy(() -> schedules().put(daily("r").build()))
                .hasStackTraceContaining("keeps the schedule 'r' out");
        assertThatThrownBy(() -> schedules().create(daily("r").build()))
                .hasStackTraceContaining("keeps the schedule 'r' out");
    }

    @Test
    void aUserIsNamedInTheLogAndInThePause() {
        try (LogCapture log = new LogCapture(ScheduleControl.class)) {
            RecurringJobs ada = schedules().actingAs("Ada\n");
            ada.create(daily("r").build());
            assertThat(ada.pause("r")).isTrue();
            transaction().executeWithoutResult(status -> {
                ada.trigger("r");
                status.setRollbackOnly();
            });
            schedules().put(daily("r").misfire(Misfire.RUN_ALL).build());

            assertThat(schedules().find("r").orElseThrow().pausedBy()).isEqualTo("Ada\n");
            assertThat(log.messages())
                    .containsExactly(
                            "Schedule \"r\" created by user \"Ada\\u000A\"",
                            "Schedule \"r\" paused by user \"Ada\\u000A\"");
        }
        assertThatIllegalArgumentException().isThrownBy(() -> schedules().actingAs(""));
        assertThat(schedules().resume("r")).isTrue();
        assertThat(schedules().actingAs("\0\ud800x").pause("r")).isTrue();
        assertThat(schedules().find("r").orElseThrow().pausedBy()).isEqualTo("\ufffd\ufffdx");
    }

    @Test
    void executionsDoNotOverlapUnlessThatIsSaid() {
        assertThat(daily("r").build().overlap()).isEqualTo(Overlap.SKIP);
        assertThat(daily("r").misfire(Misfire.RUN_ALL).build().overlap())
                .as("each takes place")
                .isEqualTo(Overlap.QUEUE);
        for (String[] arguments : new String[][] {
            {"", "skip"},
            {", misfire => 'run_once'", "skip"},
            {", misfire => 'run_all'", "queue"},
            {", overlap => 'allow'", "allow"}
        }) {
            db.sql("select {schema}.pgworker_put_schedule('r', 't', cron => '@daily'" + arguments[0] + ")")
                    .query()
                    .listOfRows();
            assertThat(column("overlap")).as(arguments[0]).isEqualTo(arguments[1]);
        }
    }

    @Test
    void declaredOnesStayDeclared() {
        ScheduleControl all = new ScheduleControl(db.dataSource(), db.schema(), db.codec(), db.scheduler());
        all.put(daily("r").build());
        for (String name : List.of("r", "s")) {
            all.declare(daily(name).build(), Duration.ofSeconds(1));
        }

        assertThat(all.put(daily("r").misfire(Misfire.RUN_ALL).build()).origin())
                .isEqualTo(RecurringJob.Origin.DECLARED);
        assertThat(all.find("s").orElseThrow().origin()).isEqualTo(RecurringJob.Origin.DECLARED);
        assertThat(all.put(daily("t").build()).origin()).isEqualTo(RecurringJob.Origin.DATABASE);
    }

    /** Each statement reads about as many rows as it returns. */
    @Test
    @Tag("thorough")
    void findsAmongAHundredThousand() {
        db.sql("insert into {schema}.pgworker_schedules (name, kind, expression, zone, task_identifier, paused_at)"
                        + " select 'tenant-' || i, 'cron', '@daily', 'UTC', case when i % 1000 = 0 then 'rare' else 'usual' end,"
                        + " case when i % 500 = 0 then now() end from generate_series(1, 100000) i")
                .update();
        db.sql("analyze {schema}.pgworker_schedules").update();
        Map<String, Runnable> calls = new LinkedHashMap<>();
        calls.put("find", () -> schedules().find("tenant-5000"));
        calls.put("put", () -> schedules().put(daily("tenant-5000").build()));
        calls.put("pause", () -> schedules().pause("tenant-5001"));
        calls.put("all", () -> schedules().list(RecurringQuery.ALL));
        calls.put("after", () -> schedules().list(new RecurringQuery(null, null, null, "tenant-7", 100)));
        calls.put("prefix", () -> schedules().list(new RecurringQuery("tenant-99", null, null, null, 100)));
        calls.put("no such prefix", () -> schedules().list(new RecurringQuery("tenant-99x", null, null, null, 100)));
        calls.put("rare", () -> schedules().list(new RecurringQuery(null, "rare", null, null, 100)));
        calls.put("no such task", () -> schedules().list(new RecurringQuery(null, "none", null, null, 100)));
        calls.put("paused", () -> schedules().list(new RecurringQuery(null, null, true, null, 100)));
        calls.put("not paused", () -> schedules().list(new RecurringQuery(null, null, false, null, 100)));
        calls.put(
                "all of a prefix and rare",
                () -> schedules().list(new RecurringQuery("tenant-", "rare", null, null, 100)));
        for (int round = 0; round < 12; round++) {
            calls.forEach((name, call) -> assertThat(rowsRead(call)).as(name).isLessThan(1_000));
        }
    }

    private long rowsRead(Runnable call) {
        return Objects.requireNonNull(transaction().execute(status -> {
            long before = rowsRead();
            call.run();
            long after = rowsRead();
            status.setRollbackOnly();
            return after - before;
        }));
    }

    private long rowsRead() {
        return db.sql("select seq_tup_read + coalesce(idx_tup_fetch, 0) from pg_stat_xact_user_tables"
                        + " where relid = '{schema}.pgworker_schedules'::regclass")
                .query(Long.class)
                .single();
    }
}
