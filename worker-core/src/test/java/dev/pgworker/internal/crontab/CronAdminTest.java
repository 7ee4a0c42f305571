package dev.pgworker.internal.crontab;

import java.sql.Connection;
import java.sql.SQLException;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
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
import dev.pgworker.crontab.CronAdmin;
import dev.pgworker.crontab.CronItemStatus;
import dev.pgworker.crontab.Crontab;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.internal.store.CrontabStore;
import dev.pgworker.internal.store.CrontabStore.Execution;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.testing.OwnThread;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Recurring jobs in the hands of an operator. */
class CronAdminTest {

    private static final Instant TICK = Instant.parse("2026-03-01T04:30:00Z");

    @RegisterExtension
    final TestSchema db = new TestSchema(10);

    @Test
    void listsItsOwnItemsAndThoseOfOthers() throws SQLException {
        store().register(List.of("of_another"), TICK);
        store().execute(List.of(execution("nightly", TICK)), CrontabStore.Adding.IN_TIME);
        CronAdmin admin = worker("30 4 * * * report ?id=nightly&tz=Asia/Kathmandu\n0 0 29 2 * leap")
                .cronAdmin();

        List<CronItemStatus> items = admin.list();

        assertThat(items).extracting(CronItemStatus::identifier).containsExactly("nightly", "leap", "of_another");
        CronItemStatus nightly = items.get(0);
        assertThat(nightly.item().schedule()).isEqualTo("30 4 * * *");
        assertThat(nightly.item().zone()).isEqualTo(ZoneId.of("Asia/Kathmandu"));
        assertThat(nightly.lastExecution()).isEqualTo(TICK);
        assertThat(nightly.knownSince()).isEqualTo(TICK);
        assertThat(nightly.nextExecution().atZone(ZoneId.of("Asia/Kathmandu")))
                .satisfies(next ->
                        assertThat(next.getHour() * 100 + next.getMinute()).isEqualTo(430));
        assertThat(nightly.nextExecution()).isBetween(now(), now().plus(1, ChronoUnit.DAYS));
        assertThat(items.get(1))
                .isEqualTo(new CronItemStatus(
                        "leap", items.get(1).item(), items.get(1).item().nextDue(now()), null, null, null));
        assertThat(items).extracting(CronItemStatus::isInThisCrontab).containsExactly(true, true, false);
        assertThat(items.get(1).item().zone()).isEqualTo(ZoneOffset.UTC);
        assertThat(items.get(2)).isEqualTo(new CronItemStatus("of_another", null, null, null, TICK, null));
        assertThat(admin.find("of_another")).contains(items.get(2));
        assertThat(admin.find("nobody")).isEmpty();
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

        Job job = worker.cronAdmin().trigger("r");

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
        assertThat(worker.cronAdmin().find("r").flatMap(item -> Optional.ofNullable(item.lastExecution())))
                .as("the schedule is not affected")
                .isEmpty();
    }

    @Test
    void aTriggerJoinsTheCallersTransaction() {
        CronAdmin admin = worker("0 0 1 1 * report").cronAdmin();
        TransactionTemplate transaction = new TransactionTemplate(new DataSourceTransactionManager(db.dataSource()));

        transaction.executeWithoutResult(status -> {
            admin.trigger("report");
            status.setRollbackOnly();
        });

        assertThat(db.jobs()).isZero();
    }

    @Test
    void aPauseHoldsAcrossWorkersAndTransactions() throws SQLException {
        CronAdmin admin = worker("* * * * * report").cronAdmin();
        store().execute(List.of(execution("report", TICK)), CrontabStore.Adding.IN_TIME);
        new TransactionTemplate(new DataSourceTransactionManager(db.dataSource())).executeWithoutResult(status -> {
            assertThat(admin.pause("report")).isTrue();
            status.setRollbackOnly();
        });
        assertThat(admin.pause("report")).isFalse();

        CrontabStore.Result result =
                store().execute(List.of(execution("report", TICK.plusSeconds(60))), CrontabStore.Adding.IN_TIME);

        assertThat(result.added()).isEmpty();
        assertThat(result.paused()).containsExactly(execution("report", TICK.plusSeconds(60)));
        CronItemStatus paused = admin.find("report").orElseThrow();
        assertThat(paused.isPaused()).isTrue();
        assertThat(paused.pausedSince()).isBetween(now().minusSeconds(60), now());
        assertThat(paused.nextExecution()).isNull();
        assertThat(paused.lastExecution()).isEqualTo(TICK.plusSeconds(60));
        admin.trigger("report");
        assertThat(db.jobs()).as("triggered although paused").isEqualTo(2);

        assertThat(admin.resume("report")).isTrue();
        assertThat(admin.resume("report")).isFalse();

        CronItemStatus resumed = admin.find("report").orElseThrow();
        assertThat(resumed.isPaused()).isFalse();
        Instant minute = resumed.lastExecution();
        assertThat(minute).isEqualTo(minute.truncatedTo(ChronoUnit.MINUTES)).isBetween(now().minusSeconds(120), now());
        assertThat(resumed.nextExecution()).isBetween(minute.plusSeconds(60), now().plusSeconds(60));
        assertThat(store().execute(List.of(execution("report", minute)), CrontabStore.Adding.IN_TIME)
                        .added())
                .isEmpty();
        assertThat(store().execute(List.of(execution("report", minute.plusSeconds(60))), CrontabStore.Adding.IN_TIME)
                        .added())
                .hasSize(1);
    }

    @Test
    void oneItemPausedLeavesTheOthersOfItsMinuteAlone() throws SQLException {
        CronAdmin admin = worker("* * * * * a\n* * * * * b").cronAdmin();
        admin.pause("a");

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
        CronAdmin admin = worker("* * * * * report").cronAdmin();
        store().register(List.of("report"), TICK);
        CompletableFuture<Boolean> pause;
        try (Connection tick = db.dataSource().getConnection()) {
            tick.setAutoCommit(false);
            tick.createStatement().execute(db.schema().in("select from {schema}._private_known_crontabs for update"));
            pause = CompletableFuture.supplyAsync(() -> admin.pause("report"), OwnThread.EACH);
            Awaitility.await().until(() -> waitingForLocks() == 1);
            assertThat(pause).isNotDone();
            tick.commit();
        }
        assertThat(pause.get()).isTrue();
    }

    @Test
    void anItemMayBePausedBeforeAnyWorkerKnowsIt() throws SQLException {
        CronAdmin admin = worker("* * * * * report").cronAdmin();

        admin.pause("report");

        assertThat(admin.find("report").orElseThrow().isPaused()).isTrue();
        assertThat(store().execute(List.of(execution("report", TICK)), CrontabStore.Adding.IN_TIME)
                        .added())
                .isEmpty();
    }

    @Test
    void unknownIdentifiersAreRefusedWithThoseThereAre() throws SQLException {
        store().register(List.of("of_another"), TICK);
        CronAdmin admin = worker("* * * * * report").cronAdmin();

        assertThatThrownBy(() -> admin.trigger("raport"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("identifier \"raport\" is not an item of this application's crontab, which has \"report\"");
        assertThatThrownBy(() -> admin.trigger("of_another")).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> admin.pause("raport"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("identifier \"raport\" is not a known cron item; there are \"report\", \"of_another\"");
        assertThatThrownBy(() -> admin.resume("")).hasMessage("identifier must not be empty");
        assertThat(admin.pause("of_another")).isTrue();
    }

    @Test
    void aClientWithoutACrontabAdministersWhatIsKnown() throws SQLException {
        store().register(List.of("of_another"), TICK);
        CronAdmin admin = WorkerClient.cronAdmin(db.dataSource(), db.schema());

        assertThat(admin.list()).extracting(CronItemStatus::identifier).containsExactly("of_another");
        assertThat(admin.pause("of_another")).isTrue();
        assertThatThrownBy(() -> admin.trigger("of_another")).hasMessageEndingWith("crontab, which has none");
    }

    @Test
    void whatLeftTheCrontabsCanBeForgotten() throws SQLException {
        store().register(List.of("gone", "report"), TICK);
        CronAdmin admin = worker("* * * * * report").cronAdmin();
        admin.pause("gone");
        admin.pause("report");

        assertThatThrownBy(() -> admin.forget("report"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContainingAll(
                        "\"report\" is an item of this application's crontab", "remove it there first");
        assertThatThrownBy(() -> admin.forget("nobody"))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("identifier \"nobody\" is not a known cron item; there are \"report\", \"gone\"");
        assertThat(admin.forget("gone")).isTrue();

        assertThat(admin.list()).extracting(CronItemStatus::identifier).containsExactly("report");
        assertThat(admin.find("report").orElseThrow().isPaused()).isTrue();
        store().execute(List.of(execution("gone", TICK)), CrontabStore.Adding.IN_TIME);
        assertThat(admin.find("gone").orElseThrow().isPaused())
                .as("another worker that has it registers it again, without the pause")
                .isFalse();
        assertThat(db.jobs()).isEqualTo(1);
    }

    @Test
    void anItemThatIsOnlyPausedCanBeForgottenByAClient() {
        worker("* * * * * report").cronAdmin().pause("report");
        CronAdmin client = WorkerClient.cronAdmin(db.dataSource(), db.schema());

        assertThat(client.forget("report")).isTrue();
        assertThat(client.list()).isEmpty();
    }

    @Test
    void failuresOfTheDatabaseAreSpringsExceptions() {
        CronAdmin admin = worker("* * * * * report").cronAdmin();
        db.sql("drop table {schema}.pgworker_paused_crontabs").update();

        assertThatThrownBy(admin::list).isInstanceOf(DataAccessException.class);
        assertThatThrownBy(() -> admin.pause("report")).isInstanceOf(DataAccessException.class);
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
