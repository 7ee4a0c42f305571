package dev.pgworker.crontab;

import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;

import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.event.WorkerEvent.CronJobAdded;
import dev.pgworker.event.WorkerEvent.CronJobFailed;
import dev.pgworker.event.WorkerEvent.CronStarted;
import dev.pgworker.event.WorkerEvents;
import dev.pgworker.lifecycle.Outage;
import dev.pgworker.store.CrontabStore;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** A crontab's jobs as time passes, told by a clock that stands in for the database's. */
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
                .containsExactly("{\"x\":1.1,\"_cron\":{\"ts\":\"2026-03-01T12:01:00.000Z\",\"backfilled\":false}}");
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
        assertThat(run(scheduler)).isEqualTo(Duration.ofMinutes(6));
        CronScheduler other = scheduler("* * * * * a ?fill=1h");
        run(other);
        now = MINUTE.plusSeconds(300);
        run(other);
        run(scheduler);

        assertThat(jobs()).hasSize(6).doesNotHaveDuplicates();
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
    void whileMuchIsMadeUpForOtherItemsAreExecutedInTime() throws SQLException {
        String crontab = "* * * * * a ?fill=999999999w\n* * * * * b";
        run(scheduler(crontab));
        db.sql("update {schema}._private_known_crontabs set known_since = ?")
                .param(java.sql.Timestamp.from(START.minus(Duration.ofDays(20))))
                .update();
        CronScheduler scheduler = scheduler(crontab);
        scheduler.work();
        scheduler.work();
        assertThat(db.jobs()).isEqualTo(500);

        now = MINUTE;
        scheduler.work();

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
        db.sql("alter table {schema}._private_jobs drop constraint no_bad").update();
        now = MINUTE.plusSeconds(60);
        run(scheduler);
        assertThat(jobs()).contains("bad 12:02:00", "a 12:02:00");
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
    void aPayloadThatIsNoObjectIsRefused() {
        CronItem list = CronItem.of("a").everyMinute().payload(List.of(1)).build();

        assertThatThrownBy(() -> scheduler(Crontab.of(List.of(list)), ZoneOffset.UTC))
                .hasMessageContaining("payload of cron item \"a\" must be written as a JSON object");
    }

    private CronScheduler scheduler(String crontab) {
        return scheduler(Crontab.parse("test", crontab), ZoneOffset.UTC);
    }

    private CronScheduler scheduler(Crontab crontab, ZoneId zone) {
        return new CronScheduler(
                "w",
                CronPlan.of(crontab, zone, db.codec()),
                new CrontabStore(db.dataSource(), db.schema()),
                this::now,
                new WorkerEvents("w", List.of(events), List.of()),
                new Outage());
    }

    private Instant now() throws SQLException {
        if (outage != null) {
            throw outage;
        }
        return now;
    }

    /** Works until there is nothing to do, and returns for how long. */
    private static Duration run(CronScheduler scheduler) throws SQLException {
        Duration wait = scheduler.work();
        while (wait.isZero()) {
            wait = scheduler.work();
        }
        return wait;
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
