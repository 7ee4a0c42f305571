package dev.pgworker.internal.crontab;

import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.Worker;
import dev.pgworker.WorkerClient;
import dev.pgworker.crontab.Crontab;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.internal.store.CrontabStore;
import dev.pgworker.internal.store.CrontabStore.Execution;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.schedule.Overlap;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.RecurringJob;
import dev.pgworker.schedule.RecurringJob.Origin;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.schedule.RecurringQuery;
import dev.pgworker.schedule.Schedule;
import dev.pgworker.testing.OwnThread;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Recurring jobs in the hands of an operator. */
class CrontabItemsTest {

    private static final Instant TICK = Instant.parse("2026-03-01T04:30:00Z");

    @RegisterExtension
    final TestSchema db = new TestSchema(10);

    @Test
    void listsItsOwnItemsAndThoseOfOthers() throws SQLException {
        store().register(List.of("of_another"), TICK);
        store().execute(List.of(execution("nightly", TICK)), CrontabStore.Adding.IN_TIME);
        RecurringJobs recurring = worker("30 4 * * * report ?id=nightly&tz=Asia/Kathmandu\n0 0 29 2 * leap")
                .recurringJobs();

        List<RecurringJob> items = recurring.list(RecurringQuery.ALL);

        assertThat(items).extracting(RecurringJob::id).containsExactly("leap", "nightly", "of_another");
        RecurringJob nightly = items.get(1);
        assertThat(nightly.origin()).isEqualTo(Origin.CRONTAB);
        assertThat(nightly.schedule().recurrence())
                .isEqualTo(Recurrence.crontab("30 4 * * *", ZoneId.of("Asia/Kathmandu")));
        assertThat(nightly.schedule().overlap()).isEqualTo(Overlap.ALLOW);
        assertThat(nightly.lastRun()).isEqualTo(TICK);
        assertThat(nightly.createdAt()).isEqualTo(TICK);
        assertThat(nightly.nextRun().atZone(ZoneId.of("Asia/Kathmandu")))
                .satisfies(next ->
                        assertThat(next.getHour() * 100 + next.getMinute()).isEqualTo(430));
        assertThat(nightly.nextRun()).isBetween(now(), now().plus(1, ChronoUnit.DAYS));
        RecurringJob leap = items.get(0);
        assertThat(leap.nextRun()).isEqualTo(leap.schedule().nextDue(now()));
        assertThat(leap.createdAt()).as("no worker has registered it").isNull();
        assertThat(leap.schedule().recurrence().zone()).isEqualTo(ZoneOffset.UTC);
        assertThat(items.get(2))
                .isEqualTo(new RecurringJob(
                        "of_another", Origin.CRONTAB, null, null, null, null, null, null, null, TICK, null));
        assertThat(recurring.find("of_another")).contains(items.get(2));
        assertThat(recurring.find("nobody")).isEmpty();
    }

    @Test
    void aTriggeredItemRunsAtOnceAsTheScheduleWouldRunIt() {
        RecordingListener events = new RecordingListener();
        Worker worker = db.start(db.worker()
                .task(Task.of("report", JsonNode.class), (report, context) -> {})
                .listener(events)
                .crontab(Crontab.parse(
                        "t", "0 0 1 1 * report ?id=r&queue=q&max=3&priority=-2&jobKey=k {x: 1.10, _cron: 0}")));
        Instant before = now().truncatedTo(ChronoUnit.MILLIS);

        Job job = worker.recurringJobs().trigger("r");

        JsonNode payload = new JsonMapper().readTree(job.payload());
        assertThat(payload.path("x").asString()).isEqualTo("1.1");
        assertThat(payload.path("_cron").path("backfilled").asBoolean(true)).isFalse();
        assertThat(Instant.parse(payload.path("_cron").path("ts").asString())).isBetween(before, now());
        assertThat(job.taskIdentifier()).isEqualTo("report");
        assertThat(job.queueName()).isEqualTo("q");
        assertThat(job.maxAttempts()).isEqualTo(3);
        assertThat(job.priority()).isEqualTo(-2);
        assertThat(job.key()).isEqualTo("k");
        assertThat(events.await(JobCompleted.class).job().id()).isEqualTo(job.id());
        assertThat(worker.recurringJobs().find("r").flatMap(item -> Optional.ofNullable(item.lastRun())))
                .as("the schedule is not affected")
                .isEmpty();
    }

    @Test
    void aTriggerJoinsTheCallersTransaction() {
        RecurringJobs recurring = worker("0 0 1 1 * report").recurringJobs();
        TransactionTemplate transaction = new TransactionTemplate(new DataSourceTransactionManager(db.dataSource()));

        transaction.executeWithoutResult(status -> {
            recurring.trigger("report");
            status.setRollbackOnly();
        });

        assertThat(db.jobs()).isZero();
    }

    @Test
    void aPauseHoldsAcrossWorkers() throws SQLException {
        RecurringJobs recurring = worker("* * * * * report").recurringJobs();
        store().execute(List.of(execution("report", TICK)), CrontabStore.Adding.IN_TIME);
        new TransactionTemplate(new DataSourceTransactionManager(db.dataSource())).executeWithoutResult(status -> {
            assertThat(recurring.pause("report")).isTrue();
            status.setRollbackOnly();
        });
        assertThat(recurring.find("report").orElseThrow().isPaused())
                .as("rolled back")
                .isFalse();
        assertThat(recurring.pause("report")).isTrue();
        assertThat(recurring.pause("report")).isFalse();

        CrontabStore.Result result =
                store().execute(List.of(execution("report", TICK.plusSeconds(60))), CrontabStore.Adding.IN_TIME);

        assertThat(result.added()).isEmpty();
        assertThat(result.paused()).containsExactly(execution("report", TICK.plusSeconds(60)));
        RecurringJob paused = recurring.find("report").orElseThrow();
        assertThat(paused.isPaused()).isTrue();
        assertThat(paused.pausedSince()).isBetween(now().minusSeconds(60), now());
        assertThat(paused.nextRun()).isNull();
        assertThat(paused.lastRun()).isEqualTo(TICK.plusSeconds(60));
        recurring.trigger("report");
        assertThat(db.jobs()).as("triggered although paused").isEqualTo(2);

        assertThat(recurring.resume("report")).isTrue();
        assertThat(recurring.resume("report")).isFalse();

        RecurringJob resumed = recurring.find("report").orElseThrow();
        assertThat(resumed.isPaused()).isFalse();
        Instant minute = resumed.lastRun();
        assertThat(minute).isEqualTo(minute.truncatedTo(ChronoUnit.MINUTES)).isBetween(now().minusSeconds(120), now());
        assertThat(resumed.nextRun()).isBetween(minute.plusSeconds(60), now().plusSeconds(60));
        assertThat(store().execute(List.of(execution("report", minute)), CrontabStore.Adding.IN_TIME)
                        .added())
                .isEmpty();
        assertThat(store().execute(List.of(execution("report", minute.plusSeconds(60))), CrontabStore.Adding.IN_TIME)
                        .added())
                .hasSize(1);
    }

    @Test
    void oneItemPausedLeavesTheOthersOfItsMinuteAlone() throws SQLException {
        RecurringJobs recurring = worker("* * * * * a\n* * * * * b").recurringJobs();
        recurring.pause("a");

        CrontabStore.Result result =
                store().execute(List.of(execution("a", TICK), execution("b", TICK)), CrontabStore.Adding.IN_TIME);

        assertThat(result.added().keySet()).containsExactly(execution("b", TICK));
        assertThat(result.paused()).containsExactly(execution("a", TICK));
        assertThat(store().register(List.of("a", "b"), TICK))
                .extractingFromEntries(entry -> entry.getValue().lastExecution())
                .containsExactly(TICK, TICK);
    }

    /** Otherwise a job could be added after the pause has been confirmed. */
    @Test
    void aPauseWaitsForTheExecutionUnderWay() throws Exception {
        RecurringJobs recurring = worker("* * * * * report").recurringJobs();
        store().register(List.of("report"), TICK);
        CompletableFuture<Boolean> pause;
        try (Connection tick = db.dataSource().getConnection()) {
            tick.setAutoCommit(false);
            tick.createStatement().execute(db.schema().in("select from {schema}._private_known_crontabs for update"));
            pause = CompletableFuture.supplyAsync(() -> recurring.pause("report"), OwnThread.EACH);
            Awaitility.await().until(() -> waitingForLocks() == 1);
            assertThat(pause).isNotDone();
            tick.commit();
        }
        assertThat(pause.get()).isTrue();
    }

    @Test
    void anItemMayBePausedBeforeAnyWorkerKnowsIt() throws SQLException {
        RecurringJobs recurring = worker("* * * * * report").recurringJobs();

        recurring.pause("report");

        assertThat(recurring.find("report").orElseThrow().isPaused()).isTrue();
        assertThat(store().execute(List.of(execution("report", TICK)), CrontabStore.Adding.IN_TIME)
                        .added())
                .isEmpty();
    }

    @Test
    void unknownIdsAreRefused() throws SQLException {
        store().register(List.of("of_another"), TICK);
        RecurringJobs recurring = worker("* * * * * report").recurringJobs();

        assertThatThrownBy(() -> recurring.trigger("raport"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(
                        "id \"raport\" must be that of a schedule or an item of this application's crontab, but there is none");
        assertThatThrownBy(() -> recurring.trigger("of_another")).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> recurring.pause("raport"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("id \"raport\" must be that of a recurring job, but there is none");
        assertThatThrownBy(() -> recurring.resume("")).hasMessage("id must not be empty");
        assertThat(recurring.pause("of_another")).isTrue();
    }

    @Test
    void aClientWithoutACrontabAdministersWhatIsKnown() throws SQLException {
        store().register(List.of("of_another"), TICK);
        RecurringJobs recurring = WorkerClient.recurringJobs(db.dataSource(), db.schema(), db.codec());

        assertThat(recurring.list(RecurringQuery.ALL))
                .extracting(RecurringJob::id)
                .containsExactly("of_another");
        assertThat(recurring.pause("of_another")).isTrue();
        assertThatThrownBy(() -> recurring.trigger("of_another")).hasMessageEndingWith("crontab, but there is none");
    }

    @Test
    void whatLeftTheCrontabsCanBeForgotten() throws SQLException {
        store().register(List.of("gone", "report"), TICK);
        RecurringJobs recurring = worker("* * * * * report").recurringJobs();
        recurring.pause("gone");
        recurring.pause("report");

        assertThatThrownBy(() -> recurring.delete("report"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContainingAll(
                        "\"report\" is an item of this application's crontab", "remove it there first");
        assertThat(recurring.delete("nobody")).isFalse();
        assertThat(recurring.delete("gone")).isTrue();

        assertThat(recurring.list(RecurringQuery.ALL))
                .extracting(RecurringJob::id)
                .containsExactly("report");
        assertThat(recurring.find("report").orElseThrow().isPaused()).isTrue();
        store().execute(List.of(execution("gone", TICK)), CrontabStore.Adding.IN_TIME);
        assertThat(recurring.find("gone").orElseThrow().isPaused())
                .as("another worker that has it registers it again, without the pause")
                .isFalse();
        assertThat(db.jobs()).isEqualTo(1);
    }

    @Test
    void anItemThatIsOnlyPausedCanBeForgottenByAClient() {
        worker("* * * * * report").recurringJobs().pause("report");
        RecurringJobs client = WorkerClient.recurringJobs(db.dataSource(), db.schema(), db.codec());

        assertThat(client.delete("report")).isTrue();
        assertThat(client.list(RecurringQuery.ALL)).isEmpty();
    }

    @Test
    void itemsAndSchedulesAreListedTogetherInPages() {
        RecurringJobs recurring = worker("* * * * * b\n* * * * * d").recurringJobs();
        for (String name : List.of("a", "b", "c", "e")) {
            recurring.put(Schedule.builder(name, Recurrence.fixedDelay(Duration.ofHours(1)), "report", null)
                    .build());
        }

        List<String> ids = new ArrayList<>();
        String after = null;
        while (ids.size() < 6) {
            List<RecurringJob> page = recurring.list(new RecurringQuery(null, null, null, after, 2));
            page.forEach(job -> ids.add(job.id() + " " + job.origin()));
            after = page.get(page.size() - 1).id();
        }
        assertThat(ids)
                .containsExactlyInAnyOrder(
                        "a DATABASE", "b CRONTAB", "b DATABASE", "c DATABASE", "d CRONTAB", "e DATABASE");
        assertThat(recurring.find("b").orElseThrow().origin())
                .as("the schedule comes before the item")
                .isEqualTo(Origin.DATABASE);
        assertThat(recurring.delete("b")).isTrue();
        assertThat(recurring.find("b").orElseThrow().origin()).isEqualTo(Origin.CRONTAB);
    }

    @Test
    void failuresOfTheDatabaseAreSpringsExceptions() {
        RecurringJobs recurring = worker("* * * * * report").recurringJobs();
        db.sql("drop table {schema}.pgworker_paused_crontabs").update();

        assertThatThrownBy(() -> recurring.list(RecurringQuery.ALL)).isInstanceOf(DataAccessException.class);
        assertThatThrownBy(() -> recurring.pause("report")).isInstanceOf(DataAccessException.class);
    }

    private Worker worker(String crontab) {
        return db.worker().crontab(Crontab.parse("test", crontab)).build();
    }

    private CrontabStore store() {
        return new CrontabStore(db.dataSource(), db.schema());
    }

    private static Execution execution(String identifier, Instant tick) {
        return new Execution(identifier, tick, "report", "{}", JobSpec.DEFAULT);
    }

    private Instant now() {
        return db.sql("select clock_timestamp()")
                .query((row, i) -> row.getTimestamp(1).toInstant())
                .single();
    }

    private long waitingForLocks() {
        return db.sql("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%"
                        + db.schema().name() + "%'")
                .query(Long.class)
                .single();
    }
}
