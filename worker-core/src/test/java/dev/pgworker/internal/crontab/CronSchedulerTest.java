package dev.pgworker.internal.crontab;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;

import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.AppenderBase;
import ch.qos.logback.core.read.ListAppender;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.slf4j.LoggerFactory;

import dev.pgworker.crontab.CronItem;
import dev.pgworker.crontab.Crontab;
import dev.pgworker.event.WorkerEvent.CronItemBehind;
import dev.pgworker.event.WorkerEvent.CronItemCaughtUp;
import dev.pgworker.event.WorkerEvent.CronJobAdded;
import dev.pgworker.event.WorkerEvent.CronJobFailed;
import dev.pgworker.event.WorkerEvent.CronJobSkipped;
import dev.pgworker.event.WorkerEvent.CronStarted;
import dev.pgworker.event.WorkerEvent.CronTicked;
import dev.pgworker.event.WorkerEvent.CronWokeEarly;
import dev.pgworker.internal.client.CrontabControl;
import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.store.CrontabStore;
import dev.pgworker.job.ScheduleInterceptor;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.testing.OwnThread;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** A crontab's jobs as time passes, told by a clock that stands in for the database's. */
@Tag("any-postgres")
class CronSchedulerTest {

    private static final Instant START = Instant.parse("2026-03-01T12:00:20Z");
    private static final Instant MINUTE = Instant.parse("2026-03-01T12:01:00Z");

    @RegisterExtension
    final TestSchema db = new TestSchema(10);

    private final RecordingListener events = new RecordingListener();
    private volatile Instant now = START;
    private volatile @Nullable SQLException outage;

    @Test
    void addsEachDueJobAtItsMinuteWithItsCron() throws SQLException {
        CronScheduler scheduler = scheduler("* * * * * a {x: 1.10, _cron: 5}\n2 12 * * * b");
        assertThat(run(scheduler)).isEqualTo(Duration.ofSeconds(40));
        assertThat(events.all(CronStarted.class)).hasSize(1);
        assertThat(db.jobs()).isZero();

        now = MINUTE;
        assertThat(run(scheduler)).isEqualTo(Duration.ofMinutes(1));

        assertThat(jobs()).containsExactly("a 12:01:00");
        assertThat(payloads())
                .containsExactly("{\"x\":1.1,\"_cron\":{\"ts\":\"2026-03-01T12:01:00.000Z\",\"backfilled\":false,"
                        + "\"schedule\":\"a\"}}");
        assertThat(events.all(CronJobAdded.class))
                .extracting(CronJobAdded::identifier, CronJobAdded::timestamp)
                .containsExactly(org.assertj.core.groups.Tuple.tuple("a", MINUTE));
        now = MINUTE.plusSeconds(60);
        run(scheduler);
        assertThat(jobs()).containsExactly("a 12:01:00", "a 12:02:00", "b 12:02:00");
    }

    @Test
    void aWaitThatEndedEarlyIsRepeated() throws SQLException {
        CronScheduler scheduler = scheduler("* * * * * a");
        run(scheduler);

        now = MINUTE.minusMillis(1);

        assertThat(run(scheduler)).isEqualTo(Duration.ofMillis(1));
        assertThat(db.jobs()).isZero();
    }

    @Test
    void aLateWaitExecutesEveryMinute() throws SQLException {
        CronScheduler scheduler = scheduler("* * * * * a");
        run(scheduler);

        now = MINUTE.plusSeconds(59 * 60);
        run(scheduler);

        assertThat(jobs()).hasSize(60).startsWith("a 12:01:00", "a 12:02:00").endsWith("a 13:00:00");
        assertThat(payloads()).noneMatch(payload -> payload.contains("true"));
    }

    @Test
    void aClockSetBackExecutesNothingTwice() throws SQLException {
        CronScheduler scheduler = scheduler("* * * * * a ?fill=1h");
        run(scheduler);
        now = MINUTE.plusSeconds(300);
        run(scheduler);

        now = MINUTE;
        run(scheduler);
        CronScheduler other = scheduler("* * * * * a ?fill=1h");
        run(other);
        now = MINUTE.plusSeconds(300);
        run(other);
        run(scheduler);

        assertThat(jobs()).hasSize(6).doesNotHaveDuplicates();
    }

    @Test
    void aClockSetBackIsToldOnceEachTime() throws SQLException {
        try (LogLines lines = new LogLines(ClockWatch.class)) {
            CronScheduler scheduler = scheduler("* * * * * a");
            run(scheduler);
            now = MINUTE.plusSeconds(3600);
            run(scheduler);
            now = now.minusSeconds(5);
            run(scheduler);
            assertThat(lines.all).as("what a clock kept in step may do").isEmpty();

            now = MINUTE.plusSeconds(10);
            run(scheduler);
            now = MINUTE.plusSeconds(70);
            run(scheduler);
            assertThat(lines.all)
                    .singleElement()
                    .asString()
                    .contains("set back from 2026-03-01T13:01:00Z to 2026-03-01T12:01:10Z", "not added again");

            now = MINUTE;
            run(scheduler);
            assertThat(lines.all).hasSize(2);
        }
    }

    /** A clock that was wrong for a while must not silence what it has skipped. */
    @Test
    void whatAClockSetForwardHasSkippedIsDueAgainWhenItIsSetBack() throws SQLException {
        String crontab = "0 15 * * * skipped\n0 20 * * * executed\n30 20 * * * later";
        CronScheduler scheduler = scheduler(crontab);
        run(scheduler);
        now = Instant.parse("2026-03-01T19:59:30Z");
        run(scheduler);
        now = Instant.parse("2026-03-01T20:00:00Z");
        run(scheduler);
        assertThat(jobs()).containsExactly("executed 20:00:00");

        now = START.plusSeconds(60);
        assertThat(run(scheduler)).isEqualTo(Duration.ofSeconds(40));
        for (now = Instant.parse("2026-03-01T12:02:00Z");
                now.isBefore(Instant.parse("2026-03-01T21:00:00Z"));
                now = now.plusSeconds(1800)) {
            run(scheduler);
        }

        assertThat(jobs()).containsExactly("executed 20:00:00", "skipped 15:00:00", "later 20:30:00");
    }

    @Test
    void anItemThatFailedIsTriedAgainSoonAfterTheClockIsSetBack() throws SQLException {
        db.sql("alter table {schema}._private_jobs add constraint no_bad check (payload->>'bad' is null)")
                .update();
        CronScheduler scheduler = scheduler("* * * * * bad {bad: 1}");
        run(scheduler);
        now = MINUTE.plusSeconds(1800);
        run(scheduler);
        assertThat(db.jobs()).isZero();
        db.sql("alter table {schema}._private_jobs drop constraint no_bad").update();

        now = MINUTE;
        run(scheduler);
        now = MINUTE.plusSeconds(60);
        run(scheduler);

        assertThat(jobs()).contains("bad 12:02:00");
    }

    @Test
    void theNextRunThatIsShownIsTheOneThatHappensAfterTheClockWasSetBack() throws SQLException {
        Instant present = Backfill.ceil(databaseNow());
        now = present.plusSeconds(7200);
        CronScheduler scheduler = scheduler("* * * * * a");
        run(scheduler);
        RecurringJobs recurring =
                db.worker().crontab(Crontab.parse("t", "* * * * * a")).build().recurringJobs();
        assertThat(recurring.find("a").orElseThrow().nextRun())
                .as("the clock stands two hours before the last execution")
                .isEqualTo(present.plusSeconds(7260));

        now = present;
        run(scheduler);
        for (int minute = 0; minute <= 122; minute += 1) {
            now = present.plusSeconds(60L * minute);
            run(scheduler);
        }

        assertThat(jobTimes())
                .containsExactly(present.plusSeconds(7200), present.plusSeconds(7260), present.plusSeconds(7320));
    }

    @Test
    void afterAFarJumpOnlyItemsWithAFillMakeUpForIt() throws SQLException {
        CronScheduler scheduler = scheduler("* * * * * a\n0 * * * * b ?fill=5h");
        run(scheduler);

        now = MINUTE.plus(Duration.ofDays(30)).plusSeconds(30);
        run(scheduler);

        assertThat(jobs()).containsExactly("b 08:00:00", "b 09:00:00", "b 10:00:00", "b 11:00:00", "b 12:00:00");
        assertThat(payloads()).allMatch(payload -> payload.contains("\"backfilled\":true"));
        now = now.plusSeconds(60);
        run(scheduler);
        assertThat(jobs()).endsWith("a 12:02:00").hasSize(6);
    }

    @Test
    void theFirstRegistrationMissesNothing() throws SQLException {
        run(scheduler("* * * * * a ?fill=1d"));

        assertThat(db.jobs()).isZero();
    }

    @Test
    void missedExecutionsAreMadeUpForOnceInOrder() throws SQLException {
        String crontab = "*/2 * * * * a ?fill=10m\n*/3 * * * * b ?fill=1h\n* * * * * c";
        run(scheduler(crontab));
        now = START.plusSeconds(15 * 60);

        run(scheduler(crontab));
        run(scheduler(crontab));

        // From 12:00:20, when they became known; item a from ten minutes before 12:16.
        assertThat(jobs())
                .containsExactly(
                        "b 12:03:00",
                        "a 12:06:00",
                        "b 12:06:00",
                        "a 12:08:00",
                        "b 12:09:00",
                        "a 12:10:00",
                        "a 12:12:00",
                        "b 12:12:00",
                        "a 12:14:00",
                        "b 12:15:00");
        assertThat(payloads()).allMatch(payload -> payload.contains("\"backfilled\":true"));
    }

    @Test
    @Tag("thorough")
    void whileMuchIsMadeUpForOtherItemsAreExecutedInTime() throws SQLException {
        String crontab = "* * * * * a ?fill=999999999w\n* * * * * b";
        run(scheduler(crontab));
        db.sql("update {schema}._private_known_crontabs set known_since = ?")
                .param(java.sql.Timestamp.from(START.minus(Duration.ofDays(20))))
                .update();
        CronScheduler scheduler = scheduler(crontab);
        runThoseInTime(scheduler);
        makingUp(scheduler).work();
        assertThat(db.jobs()).isEqualTo(500);

        now = MINUTE;
        runThoseInTime(scheduler);

        assertThat(jobs()).last().isEqualTo("b 12:01:00");
        run(scheduler);
        assertThat(db.sql("select count(distinct run_at) from {schema}.jobs where task_identifier = 'a'")
                        .query(Long.class)
                        .single())
                .isEqualTo(20 * 1440 + 1);
        assertThat(db.jobs()).isEqualTo(20 * 1440 + 2);
        assertThat(db.sql("select count(*) from (select run_at < lag(run_at) over (order by id) as back"
                                + " from {schema}.jobs where task_identifier = 'a') j where back")
                        .query(Long.class)
                        .single())
                .isZero();
    }

    @Test
    void anItemThatFailsDoesNotStopTheOthers() throws SQLException {
        db.sql("alter table {schema}._private_jobs add constraint no_bad check (payload->>'bad' is null)")
                .update();
        CronScheduler scheduler = scheduler("* * * * * bad {bad: 1}\n* * * * * a");
        run(scheduler);

        now = MINUTE;
        run(scheduler);

        assertThat(jobs()).containsExactly("a 12:01:00");
        assertThat(events.all(CronJobFailed.class))
                .singleElement()
                .satisfies(failed -> assertThat(failed.identifier()).isEqualTo("bad"));
    }

    @Test
    @Tag("thorough")
    void anOpenTransactionOnTheRegisterDelaysOnlyThatItem() throws SQLException {
        CronScheduler scheduler = scheduler("* * * * * held\n* * * * * a");
        try (Connection other = db.dataSource().getConnection();
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute(
                    db.schema()
                            .in(
                                    "insert into {schema}._private_known_crontabs (identifier, known_since) values ('held', now())"));

            run(scheduler);
            now = MINUTE;
            run(scheduler);

            assertThat(jobs()).containsExactly("a 12:01:00");
            other.rollback();
        }

        now = MINUTE.plusSeconds(3);
        run(scheduler);

        assertThat(jobs()).containsExactlyInAnyOrder("a 12:01:00", "held 12:01:00");
    }

    @Test
    @Tag("thorough")
    void anOpenTransactionOnAJobKeyDelaysOnlyThatItem() throws SQLException {
        ListAppender<ILoggingEvent> log = new ListAppender<>();
        log.start();
        Logger logger = (Logger) LoggerFactory.getLogger(CronExecutor.class);
        logger.addAppender(log);
        CronScheduler scheduler = scheduler("* * * * * held ?jobKey=k1\n* * * * * a ?jobKey=k2\n* * * * * b");
        run(scheduler);
        try (Connection other = db.dataSource().getConnection();
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute(db.schema().in("select {schema}.add_job('other', job_key => 'k1')"));
            now = MINUTE;

            assertThat(run(scheduler)).isEqualTo(CronScheduler.HELD_RETRY);

            assertThat(jobs()).containsExactly("a 12:01:00", "b 12:01:00");
            now = MINUTE.plusSeconds(3);
            assertThat(run(scheduler)).isEqualTo(CronScheduler.HELD_RETRY);
            assertThat(log.list)
                    .singleElement()
                    .satisfies(
                            line -> assertThat(line.getFormattedMessage()).contains("held", "k1", "open transaction"));
            assertThat(events.all(CronJobFailed.class))
                    .extracting(CronJobFailed::identifier)
                    .containsExactly("held");
            other.rollback();

            now = MINUTE.plusSeconds(6);
            run(scheduler);

            assertThat(jobs()).containsExactlyInAnyOrder("a 12:01:00", "b 12:01:00", "held 12:01:00");
            now = MINUTE.plusSeconds(9);
            run(scheduler);
            assertThat(jobs()).hasSize(3);
            now = MINUTE.plusSeconds(60);
            run(scheduler);
            assertThat(jobs()).contains("held 12:02:00", "a 12:02:00");
        } finally {
            logger.detachAppender(log);
        }
    }

    @Test
    void anItemThatFailedMakesUpForItAsSoonAsItCan() throws SQLException {
        db.sql("alter table {schema}._private_jobs add constraint no_bad check (payload->>'bad' is null)")
                .update();
        CronScheduler scheduler = scheduler("* * * * * bad {bad: 1}\n* * * * * a");
        run(scheduler);
        for (int minute = 0; minute < 3; minute++) {
            now = MINUTE.plusSeconds(60L * minute);
            run(scheduler);
        }
        assertThat(jobs()).containsExactly("a 12:01:00", "a 12:02:00", "a 12:03:00");
        assertThat(events.all(CronItemBehind.class)).containsExactly(new CronItemBehind("w", "bad", MINUTE));
        assertThat(events.all(CronJobFailed.class))
                .extracting(CronJobFailed::timestamp)
                .as("once a minute")
                .containsExactly(MINUTE, MINUTE.plusSeconds(60), MINUTE.plusSeconds(120));

        db.sql("alter table {schema}._private_jobs drop constraint no_bad").update();
        now = MINUTE.plusSeconds(180);
        run(scheduler);

        assertThat(jobs())
                .endsWith("a 12:04:00", "bad 12:01:00", "bad 12:02:00", "bad 12:03:00", "bad 12:04:00")
                .hasSize(8);
        assertThat(payloads()).filteredOn(payload -> payload.contains("true")).hasSize(4);
        assertThat(events.all(CronItemCaughtUp.class)).containsExactly(new CronItemCaughtUp("w", "bad"));
        now = MINUTE.plusSeconds(240);
        run(scheduler);
        assertThat(jobs()).endsWith("bad 12:05:00", "a 12:05:00").hasSize(10);
    }

    @Test
    void anItemThatFailsWhileItMakesUpLosesNoMinuteAndBlocksNoOther() throws SQLException {
        String crontab = "* * * * * bad ?fill=1d {bad: 1}\n* * * * * a ?fill=1d";
        run(scheduler(crontab));
        db.sql("alter table {schema}._private_jobs add constraint no_bad check (payload->>'bad' is null)")
                .update();
        now = START.plus(Duration.ofHours(10));
        CronScheduler scheduler = scheduler(crontab);
        run(scheduler);
        assertThat(jobs()).hasSize(600).allMatch(job -> job.startsWith("a "));
        db.sql("alter table {schema}._private_jobs drop constraint no_bad").update();

        now = now.plusSeconds(60);
        run(scheduler);

        assertThat(jobs()).hasSize(1202).doesNotHaveDuplicates().endsWith("bad 22:00:00", "bad 22:01:00");
        assertThat(jobs().stream().filter(job -> job.startsWith("bad"))).isSorted();
    }

    @Test
    void tellsHowLateAMinuteWasAndHowEarlyAWaitEnded() throws SQLException {
        CronScheduler scheduler = scheduler("0 0 * * * a");
        run(scheduler);
        now = MINUTE.minusMillis(3);
        run(scheduler);
        now = MINUTE.plusMillis(7);
        run(scheduler);

        assertThat(events.all(CronWokeEarly.class))
                .containsExactly(new CronWokeEarly("w", MINUTE, Duration.ofMillis(3)));
        assertThat(events.all(CronTicked.class)).containsExactly(new CronTicked("w", MINUTE, Duration.ofMillis(7)));
    }

    @Test
    void anItemWhoseJobIsAddedSlowlyDelaysNoOther() throws Exception {
        db.sql("create sequence {schema}.go").update();
        db.sql("create sequence {schema}.waits").update();
        db.sql(
                        "create function {schema}.slow() returns trigger language plpgsql as $$ begin loop exit when (select is_called"
                                + " from {schema}.go); perform nextval('{schema}.waits'), pg_sleep(0.02); end loop; return new; end $$")
                .update();
        db.sql("create trigger slow before insert on {schema}._private_jobs for each row"
                        + " when (new.payload->>'slow' is not null) execute function {schema}.slow()")
                .update();
        CronScheduler scheduler = scheduler("* * * * * slow {slow: 1}\n* * * * * b");
        run(scheduler);
        now = MINUTE;
        runThoseInTime(scheduler);
        assertThat(jobs()).containsExactly("b 12:01:00");
        assertThat(db.sql("select last_value from {schema}.waits")
                        .query(Long.class)
                        .single())
                .as("waits of 20 ms, with others behind")
                .isLessThan(150);

        runThoseInTime(scheduler);
        CompletableFuture<Void> slow = CompletableFuture.runAsync(() -> work(makingUp(scheduler)), OwnThread.EACH);
        for (int minute = 1; minute < 4; minute++) {
            now = MINUTE.plusSeconds(60L * minute);
            runThoseInTime(scheduler);
        }
        assertThat(jobs()).containsExactly("b 12:01:00", "b 12:02:00", "b 12:03:00", "b 12:04:00");
        assertThat(slow).isNotDone();

        db.sql("select nextval('{schema}.go')").query(Long.class).single();
        slow.get(120, TimeUnit.SECONDS);
        run(scheduler);
        assertThat(jobs())
                .containsExactlyInAnyOrder(
                        "b 12:01:00",
                        "b 12:02:00",
                        "b 12:03:00",
                        "b 12:04:00",
                        "slow 12:01:00",
                        "slow 12:02:00",
                        "slow 12:03:00",
                        "slow 12:04:00");
        assertThat(events.all(CronJobFailed.class)).isEmpty();
    }

    private static void work(MakingUp makingUp) {
        try {
            makingUp.work();
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Schedulers begin, go on and end at random moments around each minute, each with a thread of its own. */
    @Test
    void schedulersThatComeAndGoAroundEachMinuteAddEachJobOnce() throws Exception {
        String crontab = "* * * * * a ?fill=2h\n*/3 * * * * b ?fill=2h\n* * * * * c ?fill=2h";
        run(scheduler(crontab));
        AtomicBoolean over = new AtomicBoolean();
        ExecutorService threads = Executors.newFixedThreadPool(5);
        List<Future<Integer>> workers = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            Random random = new Random(i);
            workers.add(threads.submit(() -> {
                int started = 0;
                while (!over.get()) {
                    CronScheduler scheduler = scheduler(crontab);
                    for (int steps = 1 + random.nextInt(12); steps > 0; steps--) {
                        scheduler.work();
                        makingUp(scheduler).work();
                    }
                    started++;
                }
                return started;
            }));
        }
        Random random = new Random(42);
        while (db.jobs() < 120) {
            now = now.plusMillis(random.nextInt(4_000));
        }
        over.set(true);
        for (Future<Integer> worker : workers) {
            assertThat(worker.get(120, TimeUnit.SECONDS)).isGreaterThan(1);
        }
        threads.shutdown();
        run(scheduler(crontab));

        long minutes = Duration.between(START, now).plusSeconds(20).toMinutes();
        long thirds = minutes / 3;
        assertThat(jobs()).doesNotHaveDuplicates().hasSize((int) (2 * minutes + thirds));
        assertThat(events.all(CronJobAdded.class)).hasSize((int) (2 * minutes + thirds));
    }

    @Test
    void aPausedItemIsPassedOverByTicksAndBackfillOnce() throws SQLException {
        String crontab = "* * * * * a ?fill=1h\n* * * * * b ?fill=1h";
        CronScheduler scheduler = scheduler(crontab);
        run(scheduler);
        CrontabControl control = new CrontabControl(db.dataSource(), db.schema());
        assertThat(control.pause("a")).isTrue();

        now = MINUTE;
        run(scheduler);
        now = MINUTE.plusSeconds(60);
        run(scheduler(crontab));
        run(scheduler);

        assertThat(jobs()).containsExactly("b 12:01:00", "b 12:02:00");
        assertThat(events.all(CronJobSkipped.class))
                .containsExactly(
                        new CronJobSkipped("w", "a", MINUTE), new CronJobSkipped("w", "a", MINUTE.plusSeconds(60)));
        assertThat(control.resume("a")).isTrue();
        now = Backfill.ceil(db.sql("select clock_timestamp()")
                .query((row, i) -> row.getTimestamp(1).toInstant())
                .single());
        run(scheduler(crontab));
        assertThat(jobs())
                .filteredOn(job -> job.startsWith("a"))
                .as("nothing but the minute after the resume, whatever the fill")
                .hasSize(1);
        now = now.plusSeconds(60);
        run(scheduler(crontab));
        assertThat(jobs()).filteredOn(job -> job.startsWith("a")).hasSize(2);
    }

    /** Whether an interceptor skips the execution or refuses it: it is over, for this worker and for the next. */
    @Test
    void whatInterceptorsDoNotWantIsNotMadeUpForLater() throws SQLException {
        String crontab = "* * * * * a ?fill=1h\n* * * * * skipped ?fill=1h\n* * * * * refused ?fill=1h";
        ScheduleInterceptor strict = request -> {
            if (request.identifier().equals("refused")) {
                throw new IllegalStateException("refused");
            }
            return request.identifier().equals("skipped") ? null : request;
        };
        CronScheduler scheduler = scheduler(crontab, strict);
        run(scheduler);
        for (int minute = 0; minute < 3; minute++) {
            now = MINUTE.plusSeconds(60L * minute);
            run(scheduler);
        }
        run(scheduler(crontab));

        assertThat(jobs()).containsExactly("a 12:01:00", "a 12:02:00", "a 12:03:00");
        assertThat(events.all(CronJobFailed.class)).hasSize(3);
        assertThat(events.all(CronJobSkipped.class))
                .as("skipped because of a pause")
                .isEmpty();
        now = MINUTE.plusSeconds(600);
        run(scheduler(crontab, strict));
        run(scheduler(crontab));
        assertThat(jobs()).hasSize(11).allMatch(job -> job.startsWith("a "));
    }

    @Test
    void whatAnOutageDelayedIsAddedAfterwards() throws SQLException {
        CronScheduler scheduler = scheduler("* * * * * a");
        run(scheduler);
        outage = new SQLTransientConnectionException("away");
        now = MINUTE.plusSeconds(130);
        assertThatThrownBy(scheduler::work).isSameAs(outage);

        outage = null;
        run(scheduler);

        assertThat(jobs()).containsExactly("a 12:01:00", "a 12:02:00", "a 12:03:00");
        assertThat(payloads()).allMatch(payload -> payload.contains("\"backfilled\":true"));
        now = MINUTE.plusSeconds(180);
        run(scheduler);
        assertThat(payloads()).last().asString().contains("\"backfilled\":false");
    }

    @Test
    void theZoneOfTheCrontabAppliesToItemsWithoutOne() throws SQLException {
        Crontab crontab = Crontab.parse("t", "1 13 * * * berlin\n1 12 * * * utc ?tz=UTC");
        CronScheduler scheduler = scheduler(crontab, ZoneId.of("Europe/Berlin"));
        run(scheduler);

        now = MINUTE;
        run(scheduler);

        assertThat(jobs()).containsExactly("berlin 12:01:00", "utc 12:01:00");
    }

    @Test
    void racingSchedulersAddEachJobOnce() throws Exception {
        String crontab = "* * * * * a\n*/2 * * * * b ?fill=1h\n* * * * * c ?fill=1h";
        run(scheduler(crontab));
        now = START.plusSeconds(30 * 60);
        ExecutorService threads = Executors.newFixedThreadPool(6);
        try {
            List<Callable<Duration>> workers = new ArrayList<>();
            IntStream.range(0, 6).forEach(worker -> workers.add(() -> run(scheduler(crontab))));
            for (Future<Duration> worker : threads.invokeAll(workers)) {
                assertThat(worker.get()).isPositive();
            }
        } finally {
            threads.shutdown();
        }
        assertThat(jobs()).hasSize(45).doesNotHaveDuplicates();
    }

    @Test
    void anInterceptorThatFailsOfTheStopLosesNoExecution() throws SQLException {
        String crontab = "* * * * * a ?fill=1h";
        AtomicReference<CronScheduler> stopped = new AtomicReference<>();
        CronScheduler scheduler = scheduler(crontab, request -> {
            stopped.get().beginStop();
            throw new IllegalStateException("interrupted");
        });
        stopped.set(scheduler);
        run(scheduler);
        now = MINUTE;
        assertThatThrownBy(() -> run(scheduler)).isInstanceOf(CancellationException.class);

        assertThat(events.all(CronJobFailed.class)).isEmpty();
        run(scheduler(crontab));
        assertThat(jobs()).containsExactly("a 12:01:00");
    }

    @Test
    void aPayloadThatIsNoObjectIsRefused() {
        CronItem list = CronItem.of("a").everyMinute().payload(List.of(1)).build();

        assertThatThrownBy(() -> scheduler(Crontab.of(List.of(list)), ZoneOffset.UTC))
                .hasMessageContaining("payload of cron item \"a\" must be serialized as a JSON object");
    }

    private CronScheduler scheduler(String crontab) {
        return scheduler(Crontab.parse("test", crontab), ZoneOffset.UTC);
    }

    private CronScheduler scheduler(String crontab, ScheduleInterceptor interceptor) {
        return scheduler(CronPlan.of(Crontab.parse("test", crontab), ZoneOffset.UTC, db.codec())
                .with(List.of(interceptor)));
    }

    private CronScheduler scheduler(Crontab crontab, ZoneId zone) {
        return scheduler(CronPlan.of(crontab, zone, db.codec()));
    }

    private CronScheduler scheduler(CronPlan plan) {
        return new CronScheduler(
                "w",
                plan,
                new CrontabStore(db.dataSource(), db.schema()),
                this::now,
                new WorkerEvents("w", List.of(events), List.of()),
                new Outage(),
                () -> {});
    }

    private Instant now() throws SQLException {
        if (outage != null) {
            throw outage;
        }
        return now;
    }

    /** Works until there is nothing to do, and returns for how long. */
    private static Duration run(CronScheduler scheduler) throws SQLException {
        while (true) {
            Duration wait = runThoseInTime(scheduler);
            makingUp(scheduler).work();
            if (makingUp(scheduler).isIdle()) {
                return wait;
            }
        }
    }

    private static Duration runThoseInTime(CronScheduler scheduler) throws SQLException {
        Duration wait = scheduler.work();
        while (wait.isZero()) {
            wait = scheduler.work();
        }
        return wait;
    }

    private static MakingUp makingUp(CronScheduler scheduler) {
        return (MakingUp) scheduler.makingUp();
    }

    private List<String> jobs() {
        return db.sql("select task_identifier || to_char(run_at at time zone 'UTC', ' HH24:MI:SS') from {schema}.jobs"
                        + " order by id")
                .query(String.class)
                .list();
    }

    private Instant databaseNow() {
        return db.sql("select clock_timestamp()")
                .query((row, i) -> row.getTimestamp(1).toInstant())
                .single();
    }

    private List<Instant> jobTimes() {
        return db.sql("select run_at from {schema}.jobs order by run_at")
                .query((row, i) -> row.getTimestamp(1).toInstant())
                .list();
    }

    /** What a class logs while this is open. */
    private static final class LogLines implements AutoCloseable {

        private final Logger logger;
        private final AppenderBase<ILoggingEvent> appender;
        final List<String> all = new ArrayList<>();

        LogLines(Class<?> type) {
            logger = (Logger) LoggerFactory.getLogger(type);
            appender = new AppenderBase<>() {
                @Override
                protected void append(ILoggingEvent event) {
                    all.add(event.getFormattedMessage());
                }
            };
            appender.start();
            logger.addAppender(appender);
        }

        @Override
        public void close() {
            logger.detachAppender(appender);
        }
    }

    private List<String> payloads() {
        return db.sql("select payload::text from {schema}._private_jobs order by id")
                .query(String.class)
                .list();
    }
}
