package dev.pgworker.internal.schedule;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import java.util.stream.Stream;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import tools.jackson.databind.node.ObjectNode;

import dev.pgworker.WorkerClient;
import dev.pgworker.event.ScheduleSkipReason;
import dev.pgworker.event.WorkerEvent.ScheduleExecuted;
import dev.pgworker.event.WorkerEvent.ScheduleFailed;
import dev.pgworker.event.WorkerEvent.ScheduleSkipped;
import dev.pgworker.internal.client.ScheduleControl;
import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.store.ScheduleStore;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.ScheduleInterceptor;
import dev.pgworker.schedule.Misfire;
import dev.pgworker.schedule.Overlap;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.RecurringJob;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.schedule.Schedule;
import dev.pgworker.testing.LogCapture;
import dev.pgworker.testing.OwnThread;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

/** The jobs of schedules as time passes, told by a clock that stands in for the database's. */
@Tag("any-postgres")
class ScheduleServiceTest {

    private static final Instant START = Instant.parse("2026-03-01T12:00:20Z");
    private static final Instant MINUTE = Instant.parse("2026-03-01T12:01:00Z");
    private static final ZoneId UTC = ZoneId.of("UTC");
    private static final ZoneId BERLIN = ZoneId.of("Europe/Berlin");
    private static final Recurrence MINUTELY = Recurrence.crontab("* * * * *", UTC);

    @RegisterExtension
    final TestSchema db = new TestSchema(12);

    private final RecordingListener events = new RecordingListener();
    private final List<ScheduleInterceptor> interceptors = new ArrayList<>();
    private volatile Instant now = START;

    @Test
    void addsEachDueJobWithItsCron() throws Exception {
        put("a", Recurrence.cron("30 * * * * *", UTC), schedule -> schedule.payload(java.util.Map.of("x", 1)));
        put("b", MINUTELY, schedule -> schedule);
        ScheduleService service = service();

        assertThat(run(service)).as("until the first is due").isBetween(Duration.ofMillis(1), Duration.ofSeconds(5));
        assertThat(db.jobs()).isZero();
        now = START.plusSeconds(7);
        assertThat(run(service)).isEqualTo(Duration.ofSeconds(3));
        now = START.plusSeconds(10);
        run(service);
        now = MINUTE;
        run(service);

        assertThat(jobs()).containsExactly("a 12:00:30", "b 12:01:00");
        assertThat(payloads())
                .containsExactly(
                        "{\"x\":1,\"_cron\":{\"ts\":\"2026-03-01T12:00:30.000Z\",\"backfilled\":false,\"schedule\":\"a\"}}",
                        "{\"_cron\":{\"ts\":\"2026-03-01T12:01:00.000Z\",\"backfilled\":false,\"schedule\":\"b\"}}");
        assertThat(events.all(ScheduleExecuted.class))
                .extracting(ScheduleExecuted::schedule, ScheduleExecuted::dueAt, ScheduleExecuted::backfilled)
                .containsExactly(
                        org.assertj.core.groups.Tuple.tuple("a", START.plusSeconds(10), false),
                        org.assertj.core.groups.Tuple.tuple("b", MINUTE, false));
        assertThat(schedules().find("a").orElseThrow()).satisfies(status -> {
            assertThat(status.lastRun()).isEqualTo(START.plusSeconds(10));
            assertThat(status.nextRun()).isEqualTo(START.plusSeconds(70));
            assertThat(status.lastJobId())
                    .isEqualTo(events.all(ScheduleExecuted.class).get(0).jobId());
        });
    }

    /** What happened between two looks: nothing was missed, one execution, several, or all are too late. */
    static Stream<Arguments> misfires() {
        return Stream.of(
                // name, from, to, cron, zone, jobs for skip, run once, run all
                Arguments.of(
                        "in time",
                        "2026-03-01T12:00:20Z",
                        "2026-03-01T12:01:59Z",
                        "0 * * * * *",
                        UTC,
                        "01",
                        "01",
                        "01"),
                Arguments.of(
                        "outage",
                        "2026-03-01T12:00:20Z",
                        "2026-03-01T12:05:10Z",
                        "0 * * * * *",
                        UTC,
                        "05",
                        "05",
                        "b01 b02 b03 b04 05"),
                Arguments.of(
                        "outage, last late",
                        "2026-03-01T12:00:20Z",
                        "2026-03-01T12:05:10Z",
                        "0 1-3 * * * *",
                        UTC,
                        "",
                        "b03",
                        "b01 b02 b03"),
                Arguments.of(
                        "clock set forward a day",
                        "2026-03-01T12:00:20Z",
                        "2026-03-02T12:00:20Z",
                        "0 10 */12 * * *",
                        UTC,
                        "",
                        "b10",
                        "b10 b10"),
                Arguments.of(
                        "clock set back",
                        "2026-03-01T12:05:20Z",
                        "2026-03-01T12:00:00Z",
                        "0 * * * * *",
                        UTC,
                        "",
                        "",
                        ""),
                Arguments.of(
                        "DST forward, in the gap",
                        "2026-03-29T00:00:20Z",
                        "2026-03-29T01:00:10Z",
                        "0 30 2 * * *",
                        BERLIN,
                        "00",
                        "00",
                        "00"),
                Arguments.of(
                        "DST forward, after the gap",
                        "2026-03-29T00:00:20Z",
                        "2026-03-29T01:00:10Z",
                        "0 0 3 * * *",
                        BERLIN,
                        "00",
                        "00",
                        "00"),
                Arguments.of(
                        "DST forward, outage over the gap",
                        "2026-03-29T00:00:20Z",
                        "2026-03-29T01:20:10Z",
                        "0 */30 1-3 * * *",
                        BERLIN,
                        "",
                        "b00",
                        "b30 b00"),
                Arguments.of(
                        "DST back, hour that is there twice",
                        "2026-10-25T00:00:20Z",
                        "2026-10-25T00:30:10Z",
                        "0 30 2 * * *",
                        BERLIN,
                        "30",
                        "30",
                        "30"),
                Arguments.of(
                        "DST back, outage over both hours",
                        "2026-10-24T23:50:20Z",
                        "2026-10-25T02:00:10Z",
                        "0 0 1-3 * * *",
                        BERLIN,
                        "00",
                        "00",
                        "b00 00"));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("misfires")
    void missedExecutionsTakePlaceAsTheScheduleSays(
            String name, String from, String to, String cron, ZoneId zone, String skip, String once, String all)
            throws Exception {
        Recurrence recurrence = Recurrence.cron(cron, zone);
        now = Instant.parse(from);
        put("skip", recurrence, schedule -> schedule.misfire(Misfire.SKIP));
        put("once", recurrence, schedule -> schedule.misfire(Misfire.RUN_ONCE));
        put("all", recurrence, schedule -> schedule.misfire(Misfire.RUN_ALL));
        run(service());

        now = Instant.parse(to);
        run(service());

        assertThat(minutes("skip")).isEqualTo(skip);
        assertThat(minutes("once")).isEqualTo(once);
        assertThat(minutes("all")).isEqualTo(all);
        run(service());
        assertThat(schedules().find("all").orElseThrow().nextRun()).isAfter(now);
    }

    /** The minutes of a schedule's jobs; b stands for backfilled. */
    private String minutes(String schedule) {
        return String.join(
                " ",
                db.sql("select case when payload->'_cron'->>'backfilled' = 'true' then 'b' else '' end"
                                + " || to_char(run_at at time zone 'UTC', 'MI') from {schema}._private_jobs"
                                + " where payload->'_cron'->>'schedule' = ? order by id")
                        .param(schedule)
                        .query(String.class)
                        .list());
    }

    @Test
    void whatIsSkippedIsTold() throws Exception {
        put("a", MINUTELY, schedule -> schedule);
        run(service());
        now = MINUTE.plusSeconds(600);
        run(service());

        assertThat(events.all(ScheduleSkipped.class))
                .containsExactly(new ScheduleSkipped("w", "a", MINUTE, 10, ScheduleSkipReason.MISFIRE));
    }

    @Test
    void theBackfillPeriodLimitsWhatIsMadeUpFor() throws Exception {
        put("all", MINUTELY, schedule -> schedule.misfire(Misfire.RUN_ALL).backfill(Duration.ofMinutes(3)));
        put(
                "once",
                Recurrence.cron("0 1 12 * * *", UTC),
                schedule -> schedule.misfire(Misfire.RUN_ONCE).backfill(Duration.ofMinutes(3)));
        run(service());
        now = MINUTE.plusSeconds(615);
        run(service());

        assertThat(minutes("all")).isEqualTo("b09 b10 11");
        assertThat(minutes("once")).isEmpty();
    }

    @Test
    void muchIsMadeUpForInPartsWhileOthersAreInTime() throws Exception {
        for (int i = 0; i < 30; i++) {
            put(
                    "all" + i,
                    Recurrence.fixedRate(Duration.ofSeconds(1), START),
                    schedule -> schedule.misfire(Misfire.RUN_ALL));
        }
        put("b", MINUTELY, schedule -> schedule);
        run(service());
        now = START.plus(Duration.ofMinutes(15));
        ScheduleService service = service();
        service.work();
        long afterOne = db.jobs();
        assertThat(afterOne).isLessThan(7_000);

        now = MINUTE.plus(Duration.ofMinutes(15));
        service.work();

        assertThat(jobs()).anyMatch(job -> job.equals("b 12:16:00"));
        run(service);
        assertThat(db.sql("select count(*) from {schema}.jobs where task_identifier like 'all%'")
                        .query(Long.class)
                        .single())
                .isEqualTo(30 * Duration.between(START, now).toSeconds());
        assertThat(db.sql(
                                "select count(*) from (select run_at < lag(run_at) over (partition by task_identifier order by id)"
                                        + " as back from {schema}.jobs) j where back")
                        .query(Long.class)
                        .single())
                .as("jobs that are not in order")
                .isZero();
    }

    @Test
    void aClockSetBackExecutesNothingTwiceAndIsToldOnce() throws Exception {
        put("a", MINUTELY, schedule -> schedule.misfire(Misfire.RUN_ALL));
        ScheduleService service = service();
        run(service);
        now = MINUTE.plusSeconds(300);
        run(service);
        assertThat(db.jobs()).isEqualTo(6);
        Instant next = schedules().find("a").orElseThrow().nextRun();

        try (LogCapture log = new LogCapture(ScheduleService.class)) {
            for (int minute = 0; minute < 5; minute++) {
                now = MINUTE.plusSeconds(60L * minute);
                run(service);
            }
            assertThat(log.messages()).singleElement().asString().contains("set back", "12:06:00", "12:01:00");
        }
        assertThat(db.jobs()).isEqualTo(6);
        assertThat(schedules().find("a").orElseThrow().nextRun())
                .isEqualTo(next)
                .isEqualTo(MINUTE.plusSeconds(360));
        now = MINUTE.plusSeconds(360);
        run(service);
        assertThat(jobs()).hasSize(7).doesNotHaveDuplicates();
    }

    @Test
    void anOverlappingExecutionIsSkippedWhileTheJobWaitsOrRunsOrIsRetried() throws Exception {
        put(
                "a",
                MINUTELY,
                schedule -> schedule.overlap(Overlap.SKIP)
                        .spec(JobSpec.builder().maxAttempts(2).build()));
        ScheduleService service = service();
        run(service);
        tick(service, 0);
        long job = jobId();
        tick(service, 1);
        db.sql("update {schema}._private_jobs set locked_at = now(), locked_by = 'x', attempts = 2")
                .update();
        tick(service, 2);
        db.sql("update {schema}._private_jobs set locked_at = null, locked_by = null, attempts = 1")
                .update();
        tick(service, 3);
        assertThat(db.jobs()).isEqualTo(1);
        assertThat(events.all(ScheduleSkipped.class))
                .containsExactly(
                        skipped(1, ScheduleSkipReason.OVERLAP),
                        skipped(2, ScheduleSkipReason.OVERLAP),
                        skipped(3, ScheduleSkipReason.OVERLAP));

        assertThat(db.changes().permanentlyFail(List.of(job), "enough")).hasSize(1);
        tick(service, 4);

        assertThat(db.jobs()).as("one that has failed for good has ended").isEqualTo(2);
    }

    private static ScheduleSkipped skipped(int minute, ScheduleSkipReason reason) {
        return new ScheduleSkipped("w", "a", MINUTE.plusSeconds(60L * minute), 1, reason);
    }

    @Test
    void aLockThatProtectsNobodyDoesNotKeepAScheduleFromBeingExecuted() throws Exception {
        put("a", MINUTELY, schedule -> schedule.overlap(Overlap.SKIP));
        ScheduleService service = service();
        run(service);
        tick(service, 0);
        db.sql(
                        "update {schema}._private_jobs set locked_at = now() - interval '5 hours', locked_by = 'gone', attempts = 25")
                .update();

        tick(service, 1);

        assertThat(db.jobs()).isEqualTo(2);
    }

    @Test
    void overlappingExecutionsOfAQueueWaitInIt() throws Exception {
        put("a", MINUTELY, schedule -> schedule.overlap(Overlap.QUEUE));
        put(
                "b",
                MINUTELY,
                schedule -> schedule.overlap(Overlap.QUEUE)
                        .spec(JobSpec.builder().queueName("own").build()));
        ScheduleService service = service();
        run(service);
        tick(service, 0);

        assertThat(db.sql("select queue_name from {schema}.jobs order by id")
                        .query(String.class)
                        .list())
                .containsExactly("a", "own");
    }

    @Test
    void ofWhatIsMadeUpForOneIsAddedIfExecutionsDoNotOverlap() throws Exception {
        put("a", MINUTELY, schedule -> schedule.overlap(Overlap.SKIP).misfire(Misfire.RUN_ALL));
        ScheduleService service = service();
        run(service);
        tick(service, 5);

        assertThat(minutes("a")).isEqualTo("b01");
        assertThat(events.all(ScheduleSkipped.class))
                .containsExactly(new ScheduleSkipped("w", "a", MINUTE.plusSeconds(60), 5, ScheduleSkipReason.OVERLAP));
    }

    @Test
    void aFixedDelayBeginsAtTheEndOfItsJobWhoeverEndsIt() throws Exception {
        put("a", Recurrence.fixedDelay(Duration.ofSeconds(10)), schedule -> schedule);
        ScheduleService service = service();
        run(service);
        assertThat(jobs()).as("at once").containsExactly("a 12:00:20");
        now = START.plusSeconds(100);
        assertThat(run(service)).as("the next look for the end").isEqualTo(Duration.ofSeconds(1));
        assertThat(db.jobs()).isEqualTo(1);

        end("select {schema}.complete_jobs(array[%s])");
        assertNext(service, 111);
        end("select {schema}.permanently_fail_jobs(array[%s], 'enough')");
        assertNext(service, 140);
        end("update {schema}._private_jobs set key = 'k' where id = %s returning 1");
        end("select {schema}.remove_job('k')");
        assertNext(service, 170);
        end("delete from {schema}._private_jobs where id = %s returning 1");
        assertNext(service, 200);
        now = START.plusSeconds(300);
        run(service);
        assertThat(schedules().find("a").orElseThrow().nextRun()).isNull();
    }

    @Test
    void aDelayWhoseStartIsMovedWhileItsJobRunsWaitsForIt() throws Exception {
        Recurrence delay = Recurrence.fixedDelay(Duration.ofSeconds(10));
        put("a", delay, schedule -> schedule);
        ScheduleService service = service();
        run(service);
        Instant later = START.plusSeconds(500);
        put("a", delay, schedule -> schedule.startsAt(later));
        end("select {schema}.complete_jobs(array[%s])");
        now = START.plusSeconds(100);
        run(service);
        assertThat(schedules().find("a").orElseThrow().nextRun()).isEqualTo(later);

        put("a", delay, schedule -> schedule.startsAt(later.plusSeconds(7)));
        run(service);
        assertThat(schedules().find("a").orElseThrow().nextRun())
                .as("its job has ended before")
                .isEqualTo(later.plusSeconds(7));
    }

    private void end(String sql) {
        String statement = String.format(java.util.Locale.ROOT, sql, jobId());
        List<Integer> unused = db.sql(statement).query((row, i) -> 1).list();
    }

    private void assertNext(ScheduleService service, int second) throws Exception {
        now = START.plusSeconds(second - 10L).plusMillis(0);
        run(service);
        assertThat(schedules().find("a").orElseThrow().nextRun()).isEqualTo(START.plusSeconds(second));
        long before = jobId();
        now = START.plusSeconds(second);
        run(service);
        assertThat(jobId()).isGreaterThan(before);
    }

    @Test
    void manyDelaysAreLookedThroughInParts() throws Exception {
        db.sql(
                        "insert into {schema}.pgworker_schedules (name, kind, every, task_identifier, next_at, awaits_end, last_job_id, last_at)"
                                + " select 's' || i, 'delay', '1 hour', 't', null, true, -i, now() from generate_series(1, 4500) i")
                .update();
        ScheduleService service = service();
        for (int second = 0; second < 4; second++) {
            now = START.plusSeconds(second);
            run(service);
        }

        assertThat(db.sql("select count(*) from {schema}.pgworker_schedules where awaits_end")
                        .query(Long.class)
                        .single())
                .isZero();
    }

    @Test
    void aScheduleWhoseJobKeyIsHeldDelaysNoOther() throws Exception {
        put(
                "held",
                MINUTELY,
                schedule -> schedule.spec(JobSpec.builder().jobKey("k1").build()));
        put(
                "free",
                MINUTELY,
                schedule -> schedule.spec(JobSpec.builder().jobKey("k2").build()));
        put("plain", MINUTELY, schedule -> schedule);
        ScheduleService service = service();
        run(service);
        try (LogCapture log = new LogCapture(ScheduleReporter.class);
                Connection other = db.dataSource().getConnection();
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute(db.schema().in("select {schema}.add_job('other', job_key => 'k1')"));
            now = MINUTE;
            assertThat(run(service)).isEqualTo(ScheduleExecutor.HELD_RETRY);
            assertThat(jobs()).containsExactlyInAnyOrder("free 12:01:00", "plain 12:01:00");
            for (int second = 3; second < 54; second += 3) {
                now = MINUTE.plusSeconds(second);
                run(service);
            }
            assertThat(log.messages()).singleElement().asString().contains("held", "open transaction");
            assertThat(schedules().find("held").orElseThrow().problem()).contains("open transaction");
            other.rollback();
        }

        now = MINUTE.plusSeconds(58);
        run(service);

        assertThat(jobs()).containsExactlyInAnyOrder("free 12:01:00", "plain 12:01:00", "held 12:01:00");
        assertThat(schedules().find("held").orElseThrow().problem()).isNull();
        tick(service, 1);
        assertThat(jobs()).anyMatch(job -> job.equals("held 12:02:00"));
    }

    @Test
    void aScheduleWhoseJobIsAddedSlowlyDelaysNoOther() throws Exception {
        db.sql("create sequence {schema}.go").update();
        db.sql("create sequence {schema}.waits").update();
        beforeSlowJobs(
                "loop exit when (select is_called from {schema}.go); perform nextval('{schema}.waits'), pg_sleep(0.02);"
                        + " end loop;");
        put("slow", MINUTELY, schedule -> schedule.payload(java.util.Map.of("slow", 1)));
        put("a", MINUTELY, schedule -> schedule);
        ScheduleService service = service();
        run(service);
        for (int minute = 0; minute < 3; minute++) {
            now = MINUTE.plusSeconds(60L * minute);
            runThoseInTime(service);
        }
        assertThat(jobs()).containsExactly("a 12:01:00", "a 12:02:00", "a 12:03:00");
        assertThat(db.sql("select last_value from {schema}.waits")
                        .query(Long.class)
                        .single())
                .as("waits of 20 ms, with others behind")
                .isLessThan(50);

        CompletableFuture<Duration> slow = CompletableFuture.supplyAsync(() -> lateWork(service), OwnThread.EACH);
        Awaitility.await()
                .until(() ->
                        db.sql("select count(*) from pg_locks where relation = '{schema}.go'::regclass and granted")
                                        .query(Integer.class)
                                        .single()
                                > 0);
        now = MINUTE.plusSeconds(180);
        runThoseInTime(service);
        assertThat(jobs()).hasSize(4).contains("a 12:04:00");
        assertThat(slow).isNotDone();

        db.sql("select nextval('{schema}.go')").query(Long.class).single();
        assertThat(slow.get(120, TimeUnit.SECONDS)).isZero();
        assertThat(jobs()).hasSize(5).contains("slow 12:03:00");
    }

    private static Duration lateWork(ScheduleService service) {
        try {
            return late(service).work();
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void aScheduleIsExecutedApartFromOthersForAsLongAsItIsSlow() throws Exception {
        beforeSlowJobs("perform pg_sleep(0.15);");
        put("slow", MINUTELY, schedule -> schedule.payload(java.util.Map.of("slow", 1)));
        ScheduleService service = service();
        run(service);
        tick(service, 0);
        assertThat(jobs()).containsExactly("slow 12:01:00");
        assertThat(schedules().find("slow").orElseThrow().problem()).isNull();
        now = MINUTE.plusSeconds(60);
        runThoseInTime(service);
        assertThat(db.jobs()).as("jobs added by those in time").isOne();
        run(service);
        assertThat(jobs()).containsExactly("slow 12:01:00", "slow 12:02:00");

        db.sql("drop trigger slow on {schema}._private_jobs").update();
        tick(service, 2);
        now = MINUTE.plusSeconds(180);
        Awaitility.await().until(() -> {
            runThoseInTime(service);
            if (db.jobs() == 4) {
                return true;
            }
            // The machine was slow this time.
            run(service);
            now = now.plusSeconds(60);
            return false;
        });
    }

    @Test
    void aDelayIsExecutedApartFromOthersForAsLongAsItIsSlow() throws Exception {
        beforeSlowJobs("perform pg_sleep(0.15);");
        put(
                "slow",
                Recurrence.fixedDelay(Duration.ofSeconds(10)),
                schedule -> schedule.payload(java.util.Map.of("slow", 1)));
        ScheduleService service = service();
        run(service);
        assertThat(jobs()).containsExactly("slow 12:00:20");
        for (int execution = 1; execution <= 2; execution++) {
            end("delete from {schema}._private_jobs where id = %s returning 1");
            now = START.plusSeconds(100L * execution);
            run(service);
            now = now.plusSeconds(10);
            runThoseInTime(service);
            assertThat(db.jobs()).as("jobs added by those in time").isZero();
            run(service);
            assertThat(db.jobs()).isOne();
        }
    }

    private void beforeSlowJobs(String plpgsql) {
        db.sql("create function {schema}.slow() returns trigger language plpgsql as $$ begin " + plpgsql
                        + " return new; end $$")
                .update();
        db.sql("create trigger slow before insert on {schema}._private_jobs for each row"
                        + " when (new.payload->>'slow' is not null) execute function {schema}.slow()")
                .update();
    }

    @Test
    void aJobThatTheDatabaseRefusesIsRetriedAndHurtsNoOther() throws Exception {
        db.sql("alter table {schema}._private_jobs add constraint no_bad check (payload->>'bad' is null)")
                .update();
        put(
                "bad",
                MINUTELY,
                schedule -> schedule.payload(java.util.Map.of("bad", 1)).misfire(Misfire.RUN_ALL));
        put("a", MINUTELY, schedule -> schedule);
        ScheduleService service = service();
        run(service);
        try (LogCapture log = new LogCapture(ScheduleReporter.class)) {
            for (int minute = 0; minute < 3; minute++) {
                tick(service, minute);
            }
            assertThat(log.messages()).singleElement().asString().contains("bad", "retried every minute");
        }
        assertThat(minutes("a")).isEqualTo("01 02 03");
        assertThat(schedules().find("bad").orElseThrow().problem()).contains("refuses its job", "no_bad");
        assertThat(events.all(ScheduleFailed.class))
                .extracting(ScheduleFailed::dueAt)
                .as("tried once a minute")
                .containsExactly(MINUTE, MINUTE, MINUTE);

        db.sql("alter table {schema}._private_jobs drop constraint no_bad").update();
        tick(service, 3);

        assertThat(minutes("bad")).isEqualTo("b01 b02 b03 04");
        assertThat(schedules().find("bad").orElseThrow().problem()).isNull();
        tick(service, 4);
        assertThat(minutes("bad")).endsWith(" 05");
    }

    @Test
    void rowsThatCannotBeReadAreSaidOnceAndHurtNoOther() throws Exception {
        put("a", MINUTELY, schedule -> schedule);
        insert("zone", "'crontab', '* * * * *', 'Mars/Olympus'");
        insert("never", "'cron', '0 0 0 30 2 *', 'UTC'");
        insert("expression", "'cron', 'quite wrong', 'UTC'");
        db.sql("update {schema}.pgworker_schedules set flags = '{x,null,x}' where name = 'a' and false")
                .update();
        try (LogCapture log = new LogCapture(ScheduleReporter.class)) {
            for (int i = 0; i < 2; i++) {
                run(service());
                now = MINUTE.plusSeconds(60L * i);
                run(service());
            }
            assertThat(log.messages()).hasSize(3).allMatch(line -> line.contains("is not executed"));
        }
        assertThat(minutes("a")).isEqualTo("01 02");
        assertThat(db.sql(
                                "select name from {schema}.pgworker_schedules where problem is not null and next_at is null order by 1")
                        .query(String.class)
                        .list())
                .containsExactly("expression", "never", "zone");
        assertThat(events.all(ScheduleFailed.class)).hasSize(3);

        put("zone", MINUTELY, schedule -> schedule);
        run(service());
        tick(service(), 2);
        assertThat(minutes("zone")).isEqualTo("03");
    }

    private void insert(String name, String kindExpressionZone) {
        db.sql("insert into {schema}.pgworker_schedules (name, kind, expression, zone, task_identifier) values ('"
                        + name + "', " + kindExpressionZone + ", 't')")
                .update();
    }

    @Test
    void anInterceptorThatThrowsOrWantsNoJobHurtsOnlyThatExecution() throws Exception {
        put("throws", MINUTELY, schedule -> schedule);
        put("null", MINUTELY, schedule -> schedule);
        put("error", MINUTELY, schedule -> schedule);
        put("changed", MINUTELY, schedule -> schedule);
        put("delay", Recurrence.fixedDelay(Duration.ofSeconds(30)), schedule -> schedule.startsAt(MINUTE));
        interceptors.add(job -> switch (job.identifier()) {
            case "throws" -> throw new IllegalStateException("on purpose");
            case "error" -> throw new AssertionError("on purpose");
            case "null", "delay" -> null;
            default -> {
                ObjectNode payload = (ObjectNode) job.payload();
                yield JobRequest.of("other", payload.put("seen", true), job.spec());
            }
        });
        ScheduleService service = service();
        run(service);
        try (LogCapture log = new LogCapture(ScheduleReporter.class)) {
            tick(service, 0);
            tick(service, 1);
            assertThat(log.messages()).as("once for each schedule").hasSize(2);
        }

        assertThat(jobs()).containsExactly("other 12:01:00", "other 12:02:00");
        assertThat(payloads()).allMatch(payload -> payload.endsWith("\"schedule\":\"changed\"},\"seen\":true}"));
        assertThat(events.all(ScheduleFailed.class)).hasSize(4);
        assertThat(events.all(ScheduleSkipped.class))
                .extracting(ScheduleSkipped::reason)
                .containsOnly(ScheduleSkipReason.REJECTED)
                .hasSize(4);
        assertThat(schedules().find("delay").orElseThrow().nextRun()).isEqualTo(MINUTE.plusSeconds(90));
    }

    @Test
    void whatFailsForManySchedulesDoesNotFillTheLog() throws Exception {
        for (int i = 0; i < 150; i++) {
            put("a" + i, MINUTELY, schedule -> schedule);
        }
        interceptors.add(job -> {
            throw new IllegalStateException("on purpose");
        });
        ScheduleService service = service();
        run(service);
        try (LogCapture log = new LogCapture(ScheduleReporter.class)) {
            tick(service, 0);
            tick(service, 1);
            assertThat(log.messages()).hasSize(101);
            assertThat(log.messages().get(100)).startsWith("More schedules are not executed");
        }
        assertThat(events.all(ScheduleFailed.class)).hasSize(300);
    }

    @Test
    @Tag("thorough")
    void slowInterceptorsKeepRowsLockedForASecondOrSo() throws Exception {
        for (int i = 0; i < 4; i++) {
            put("slow" + i, MINUTELY, schedule -> schedule);
        }
        interceptors.add(job -> {
            LockSupport.parkNanos(Duration.ofMillis(800).toNanos());
            return job;
        });
        ScheduleService service = service();
        run(service);
        now = MINUTE;

        assertThat(service.work()).isZero();
        assertThat(jobs()).as("jobs of the first transaction").hasSizeBetween(1, 3);
        run(service);
        assertThat(jobs()).hasSize(4);
    }

    @Test
    @Tag("thorough")
    void anInterceptorThatHangsKeepsNoOtherWorkerFromExecuting() throws Exception {
        put("a", MINUTELY, schedule -> schedule);
        run(service());
        now = MINUTE;
        CountDownLatch hanging = new CountDownLatch(1);
        CountDownLatch end = new CountDownLatch(1);
        ScheduleService others = service();
        interceptors.add(job -> {
            hanging.countDown();
            try {
                end.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            return job;
        });
        ScheduleService hangs = service();
        ExecutorService thread = Executors.newSingleThreadExecutor();
        try {
            Future<Duration> work = thread.submit(() -> run(hangs));
            assertThat(hanging.await(120, TimeUnit.SECONDS)).isTrue();
            assertThat(run(others)).isPositive();
            assertThat(jobs()).as("while the row is locked").isEmpty();
            Awaitility.await().until(() -> {
                run(others);
                return db.jobs() == 1;
            });
            end.countDown();
            assertThat(work.get(120, TimeUnit.SECONDS)).as("without an outage").isPositive();
        } finally {
            end.countDown();
            thread.shutdown();
        }
        assertThat(jobs()).containsExactly("a 12:01:00");
        assertThat(events.all(ScheduleExecuted.class)).hasSize(1);
    }

    @Test
    void aScheduleThatSomebodyIsChangingDelaysNoOther() throws Exception {
        put("held", MINUTELY, schedule -> schedule);
        put("a", MINUTELY, schedule -> schedule);
        ScheduleService service = service();
        run(service);
        try (Connection other = db.dataSource().getConnection();
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute(
                    db.schema().in("update {schema}.pgworker_schedules set priority = 1 where name = 'held'"));
            now = MINUTE;
            Duration wait = run(service);
            assertThat(wait).isBetween(Duration.ofMillis(10), Duration.ofSeconds(1));
            for (int i = 0; i < 10; i++) {
                wait = run(service);
            }
            assertThat(wait).isEqualTo(Duration.ofSeconds(1));
            assertThat(jobs()).containsExactly("a 12:01:00");
            try (LogCapture log = new LogCapture(ScheduleService.class)) {
                for (int seconds = 1; seconds < 60; seconds++) {
                    assertThat(log.messages()).hasSize(seconds > 30 ? 1 : 0);
                    now = MINUTE.plusSeconds(seconds);
                    run(service);
                }
                assertThat(log.messages())
                        .singleElement()
                        .asString()
                        .contains("due at " + MINUTE, "open transaction", "pg_stat_activity");
            }
            other.commit();
        }
        run(service);
        assertThat(jobs()).containsExactlyInAnyOrder("a 12:01:00", "held 12:01:00");
    }

    @Test
    @Tag("thorough")
    void aDeclaredScheduleThatSomebodyIsChangingDelaysNoOtherAndFollows() throws Exception {
        put("held", MINUTELY, schedule -> schedule);
        put("a", MINUTELY, schedule -> schedule);
        List<Schedule> declared =
                List.of(schedule("held", MINUTELY, s -> s.overlap(Overlap.SKIP)), schedule("mine", MINUTELY, s -> s));
        ScheduleService service = service(declared);
        try (LogCapture log = new LogCapture(DeclaredSchedules.class);
                Connection other = db.dataSource().getConnection();
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute(
                    db.schema().in("update {schema}.pgworker_schedules set priority = 1 where name = 'held'"));
            assertThat(run(service)).isLessThanOrEqualTo(DeclaredSchedules.RETRY);
            tick(service, 0);
            assertThat(jobs()).contains("a 12:01:00", "mine 12:01:00");
            assertThat(log.messages()).singleElement().asString().contains("[held]", "pgworker_schedules", "pg_locks");
            other.commit();
        }
        Awaitility.await().until(() -> {
            run(service);
            return schedules().find("held").orElseThrow().origin() == RecurringJob.Origin.DECLARED;
        });
        assertThat(schedules().find("held").orElseThrow().schedule().overlap()).isEqualTo(Overlap.SKIP);
    }

    @Test
    void aLockOfTheTableIsNamedWithTheRemedy() throws Exception {
        put("a", MINUTELY, schedule -> schedule);
        ScheduleService service = service();
        try (Connection other = db.dataSource().getConnection();
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute(db.schema().in("lock table {schema}.pgworker_schedules"));
            CompletableFuture<Throwable> failure =
                    CompletableFuture.supplyAsync(() -> catchThrowable(() -> service.work()), OwnThread.EACH);
            Awaitility.await()
                    .until(() -> db.sql(
                                            "select pg_catalog.count(pg_cancel_backend(l.pid)) from pg_locks l"
                                                    + " where l.relation = '{schema}.pgworker_schedules'::regclass and not l.granted")
                                    .query(Integer.class)
                                    .single()
                            > 0);
            assertThat(failure.get(120, TimeUnit.SECONDS))
                    .hasMessageContainingAll("pgworker_schedules", "pg_locks")
                    .isInstanceOfSatisfying(
                            SQLException.class, e -> assertThat(e.getSQLState()).isEqualTo("57014"));
        }
    }

    @Test
    void onlyThoseWhoDeclareAScheduleExecuteIt() throws Exception {
        for (String name : List.of("mine", "yours")) {
            schedulesOf().declare(schedule(name, MINUTELY, s -> s), Duration.ofSeconds(1));
        }
        put("free", MINUTELY, s -> s);
        ScheduleService service = service("mine");
        run(service);
        tick(service, 0);
        assertThat(jobs()).containsExactlyInAnyOrder("mine 12:01:00", "free 12:01:00");
        run(service("yours"));
        tick(service("yours"), 1);
        assertThat(jobs()).endsWith("free 12:02:00", "yours 12:02:00").hasSize(4);
    }

    @Test
    void jobsRunLaterByTheJitterAtMost() throws Exception {
        for (int i = 0; i < 40; i++) {
            put("a" + i, MINUTELY, schedule -> schedule.jitter(Duration.ofSeconds(20)));
        }
        ScheduleService service = service();
        run(service);
        tick(service, 0);

        List<Instant> times = db.sql("select run_at from {schema}._private_jobs")
                .query((row, i) -> row.getTimestamp(1).toInstant())
                .list();
        assertThat(times).hasSize(40).allMatch(time -> !time.isBefore(MINUTE) && !time.isAfter(MINUTE.plusSeconds(20)));
        assertThat(times.stream().distinct()).hasSizeGreaterThan(20);
        assertThat(payloads()).allMatch(payload -> payload.contains("12:01:00.000Z"));
    }

    @Test
    void startAndEndAreKept() throws Exception {
        put(
                "a",
                MINUTELY,
                schedule -> schedule.startsAt(MINUTE.plusSeconds(120)).endsAt(MINUTE.plusSeconds(240)));
        ScheduleService service = service();
        run(service);
        for (int minute = 0; minute < 8; minute++) {
            tick(service, minute);
        }
        assertThat(minutes("a")).isEqualTo("03 04");
        assertThat(schedules().find("a").orElseThrow().nextRun()).isNull();
        assertThat(schedules().find("a").orElseThrow().problem()).isNull();
    }

    /** Services begin, go on and end at random moments, each with a thread of its own, while schedules are edited. */
    @Test
    @Tag("thorough")
    void servicesThatComeAndGoAddEachJobOnce() throws Exception {
        for (int i = 0; i < 5; i++) {
            put(
                    "rate" + i,
                    Recurrence.fixedRate(Duration.ofSeconds(2 + i), START),
                    schedule -> schedule.misfire(Misfire.RUN_ALL));
        }
        put("keyed", Recurrence.fixedRate(Duration.ofSeconds(3), START), schedule -> schedule.misfire(Misfire.RUN_ALL));
        run(service());
        AtomicBoolean over = new AtomicBoolean();
        ExecutorService threads = Executors.newFixedThreadPool(5);
        List<Future<Integer>> workers = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            Random random = new Random(i);
            workers.add(threads.submit(() -> {
                int started = 0;
                while (!over.get()) {
                    ScheduleService service = service();
                    for (int steps = 1 + random.nextInt(12); steps > 0; steps--) {
                        service.work();
                        late(service).work();
                    }
                    started++;
                }
                return started;
            }));
        }
        Random random = new Random(42);
        while (db.jobs() < 200) {
            assertThat(now).as("time until there are enough jobs").isBefore(START.plusSeconds(1_000));
            now = now.plusMillis(random.nextInt(300));
            put(
                    "rate1",
                    Recurrence.fixedRate(Duration.ofSeconds(3), START),
                    schedule -> schedule.misfire(Misfire.RUN_ALL).payload(java.util.Map.of("n", random.nextInt())));
        }
        over.set(true);
        for (Future<Integer> worker : workers) {
            assertThat(worker.get(120, TimeUnit.SECONDS)).isGreaterThan(1);
        }
        threads.shutdown();
        run(service());

        long seconds = Duration.between(START, now).toSeconds();
        long expected = IntStream.range(0, 5).mapToLong(i -> seconds / (2 + i)).sum() + seconds / 3;
        assertThat(jobs()).doesNotHaveDuplicates();
        assertThat(db.jobs()).isEqualTo(expected);
        assertThat(events.all(ScheduleExecuted.class)).hasSize((int) expected);
    }

    private void tick(ScheduleService service, int minute) throws Exception {
        now = MINUTE.plusSeconds(60L * minute);
        run(service);
    }

    private long jobId() {
        return db.sql("select max(last_job_id) from {schema}.pgworker_schedules")
                .query(Long.class)
                .single();
    }

    private ScheduleControl schedulesOf() {
        return new ScheduleControl(db.dataSource(), db.schema(), db.codec(), db.scheduler());
    }

    private RecurringJobs schedules() {
        return WorkerClient.recurringJobs(db.dataSource(), db.schema(), db.codec());
    }

    private void put(String name, Recurrence recurrence, UnaryOperator<Schedule.Builder> with) {
        schedules().put(schedule(name, recurrence, with));
    }

    private static Schedule schedule(String name, Recurrence recurrence, UnaryOperator<Schedule.Builder> with) {
        return with.apply(Schedule.builder(name, recurrence, name, null).overlap(Overlap.ALLOW))
                .build();
    }

    private ScheduleService service(String... declared) {
        return service(List.of(declared), List.of());
    }

    private ScheduleService service(List<Schedule> declared) {
        return service(declared.stream().map(Schedule::name).toList(), declared);
    }

    private ScheduleService service(List<String> names, List<Schedule> declared) {
        ScheduleStore store = new ScheduleStore(db.dataSource(), db.schema(), names);
        WorkerEvents published = new WorkerEvents("w", List.of(events), List.of());
        SchedulePlan plan = new SchedulePlan(List.of(), db.codec(), interceptors);
        return new ScheduleService(
                () -> new ScheduleExecutor(store, new ScheduleRules(plan), new ScheduleReporter("w", published)),
                store,
                new DeclaredSchedules(schedulesOf(), declared, () -> {}),
                ScheduleService.Intervals.of(Duration.ofSeconds(5)),
                look -> now,
                published,
                new Outage());
    }

    /** Works until there is nothing to do, and returns for how long. */
    private static Duration run(ScheduleService service) throws Exception {
        while (true) {
            Duration wait = runThoseInTime(service);
            if (!late(service).work().isZero()) {
                return wait;
            }
        }
    }

    private static Duration runThoseInTime(ScheduleService service) throws Exception {
        Duration wait = service.work();
        while (wait.isZero()) {
            wait = service.work();
        }
        return wait;
    }

    private static LateSchedules late(ScheduleService service) {
        return (LateSchedules) service.late();
    }

    private List<String> jobs() {
        return db.sql("select task_identifier || to_char(run_at at time zone 'UTC', ' HH24:MI:SS') from {schema}.jobs"
                        + " order by id")
                .query(String.class)
                .list();
    }

    private List<String> payloads() {
        return db.sql("select payload::text from {schema}._private_jobs order by id")
                .query(String.class)
                .list();
    }
}
