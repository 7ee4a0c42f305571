package dev.pgworker.internal.crontab;

import java.math.BigDecimal;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Map;
import java.util.Objects;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.SerializationFeature;
import tools.jackson.databind.cfg.JsonNodeFeature;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

import dev.pgworker.crontab.CronItem;
import dev.pgworker.crontab.Crontab;
import dev.pgworker.event.WorkerEvent.CronJobFailed;
import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.store.CrontabStore;
import dev.pgworker.internal.store.CrontabStore.Execution;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.ScheduleInterceptor;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** What the jobs of recurring items are made of, and what interceptors may do to them. */
class CronPlanTest {

    private static final Instant START = Instant.parse("2026-03-01T12:00:20Z");

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final RecordingListener events = new RecordingListener();
    private Instant now = START;

    private void runAMinute(String crontab, ScheduleInterceptor interceptor) throws SQLException {
        CronPlan plan = CronPlan.of(Crontab.parse("test", crontab), ZoneOffset.UTC, db.codec())
                .with(List.of(interceptor));
        CronScheduler scheduler = new CronScheduler(
                "w",
                plan,
                new CrontabStore(db.dataSource(), db.schema()),
                () -> now,
                new WorkerEvents("w", List.of(events), List.of()),
                new Outage(),
                () -> {});
        work(scheduler);
        now = START.plus(Duration.ofMinutes(1));
        work(scheduler);
    }

    private static void work(CronScheduler scheduler) throws SQLException {
        while (scheduler.work().isZero()) {
            // Does the next piece of work.
        }
    }

    private List<String> jobs() {
        return db.sql("select task_identifier || ' ' || v.priority || ' ' || payload from {schema}._private_jobs j"
                        + " join {schema}.jobs v using (id) order by id")
                .query(String.class)
                .list();
    }

    @Test
    void theyChangeAJob() throws SQLException {
        runAMinute(
                "* * * * * a {price: 1.10}",
                request -> JobRequest.of(
                        "b",
                        request.payload(),
                        request.spec().toBuilder().priority(-1).build()));

        assertThat(jobs())
                .containsExactly(
                        "b -1 {\"price\":1.1,\"_cron\":{\"ts\":\"2026-03-01T12:01:00.000Z\",\"backfilled\":false,"
                                + "\"schedule\":\"a\"}}");
    }

    @Test
    void theySkipAndRefuseWhatTheyWantAndNothingElse() throws SQLException {
        runAMinute("* * * * * a\n* * * * * skipped\n* * * * * refused", request -> {
            assertThat(((JsonNode) request.payload()).has("_cron")).isTrue();
            if (request.identifier().equals("refused")) {
                throw new IllegalStateException("refused");
            }
            return request.identifier().equals("skipped") ? null : request;
        });

        assertThat(jobs()).singleElement().asString().startsWith("a 0 ");
        assertThat(events.all(CronJobFailed.class)).singleElement().satisfies(failed -> {
            assertThat(failed.identifier()).isEqualTo("refused");
            assertThat(failed.error()).hasMessage("refused");
        });
    }

    @Test
    void theyMaySkipAll() throws SQLException {
        runAMinute("* * * * * a", request -> null);

        assertThat(jobs()).isEmpty();
        assertThat(events.all(CronJobFailed.class)).isEmpty();
    }

    @Test
    void aTreeThatIsChangedAfterwardsChangesNoJob() {
        ObjectNode given = new JsonMapper().createObjectNode().put("size", 1);
        CronItem item = CronItem.of("a").everyMinute().payload(given).build();
        CronPlan plan = CronPlan.of(Crontab.of(List.of(item)), ZoneOffset.UTC, db.codec());

        given.put("size", 2);
        ((ObjectNode) Objects.requireNonNull(plan.job(item, null, START, false).payload())).put("size", 3);

        assertThat(plan.job(item, null, START, true).payload())
                .hasToString("{\"size\":1,\"_cron\":{\"ts\":\"2026-03-01T12:00:20.000Z\",\"backfilled\":true,"
                        + "\"schedule\":\"a\"}}");
    }

    @Test
    void aTreeIsWrittenInItsOwnOrderAndWithItsOwnDigits() {
        PayloadCodec pretty = new PayloadCodec(JsonMapper.builder()
                .enable(SerializationFeature.INDENT_OUTPUT)
                .enable(JsonNodeFeature.WRITE_PROPERTIES_SORTED)
                .build());
        CronPlan plan = CronPlan.of(
                Crontab.of(List.of(CronItem.of("a")
                        .everyMinute()
                        .payload(Map.of("z", new BigDecimal("0.12345678901234567890")))
                        .build())),
                ZoneOffset.UTC,
                pretty);

        Execution execution = plan.execution(plan.items().get(0), START, false);

        assertThat(execution.payload())
                .startsWith("{\"z\":0.12345678901234567890,\"_cron\":{")
                .doesNotContain("\n");
    }
}
