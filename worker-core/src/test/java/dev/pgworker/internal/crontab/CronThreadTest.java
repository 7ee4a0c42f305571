package dev.pgworker.internal.crontab;

import java.sql.SQLException;
import java.sql.Timestamp;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.List;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.micrometer.observation.ObservationRegistry;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.jdbc.core.simple.JdbcClient;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.crontab.Crontab;
import dev.pgworker.event.WorkerEvent.CronJobAdded;
import dev.pgworker.event.WorkerEvent.CronStarted;
import dev.pgworker.event.WorkerEvent.CronTicked;
import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.lifecycle.PeriodicTasks;
import dev.pgworker.internal.store.CrontabStore;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.testing.OwnDatabase;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * The scheduler's thread as minutes really pass, by the clock of a database that the test may take away. So that no test
 * waits for a minute, the clock is ahead by as much as lets the next one begin soon.
 */
@Tag("any-postgres")
class CronThreadTest {

    private static final Duration SOON = Duration.ofSeconds(5);

    private final OwnDatabase database = new OwnDatabase();
    private final RecordingListener events = new RecordingListener();
    private final Outage outage = new Outage();
    private final PeriodicTasks tasks = new PeriodicTasks("test", ObservationRegistry.NOOP);
    private HikariDataSource pool;
    private CrontabStore store;
    private Instant minute;
    private Duration ahead;
    private CronScheduler scheduler;

    @BeforeEach
    void createDatabase() throws SQLException {
        database.create();
        HikariConfig config = TestSchema.poolConfig(database.url(), 4);
        config.setConnectionTimeout(3_000);
        pool = new HikariDataSource(config);
        new SchemaMigrator(pool, WorkerSchema.DEFAULT).migrate();
        store = new CrontabStore(pool, WorkerSchema.DEFAULT);
        Instant now = store.now();
        minute = Backfill.ceil(now.plus(SOON));
        ahead = Duration.between(now, minute.minus(SOON));
        scheduler = new CronScheduler(
                "w",
                CronPlan.of(Crontab.parse("t", "* * * * * a"), ZoneOffset.UTC, new PayloadCodec(new JsonMapper())),
                store,
                () -> store.now().plus(ahead),
                new WorkerEvents("w", List.of(events), List.of()),
                outage,
                () -> {});
    }

    @AfterEach
    void dropDatabase() {
        tasks.stop(Duration.ofSeconds(10));
        pool.close();
        database.drop();
    }

    @Test
    void aMinuteIsExecutedWhenItBegins() {
        tasks.start(scheduler);

        CronJobAdded added = events.await(CronJobAdded.class);

        assertThat(added.timestamp()).isEqualTo(minute);
        assertThat(added.backfilled()).isFalse();
        CronTicked ticked = events.await(CronTicked.class);
        assertThat(ticked.timestamp()).isEqualTo(minute);
        assertThat(ticked.delay()).isGreaterThanOrEqualTo(Duration.ZERO);
        assertThat(jobs()).containsExactly(minute);
    }

    @Test
    @Tag("thorough")
    void aMinuteThatBeganWithoutTheDatabaseIsExecutedWhenItIsBack() {
        tasks.start(scheduler);
        events.await(CronStarted.class);

        database.forbidConnections();
        database.cut();
        Awaitility.await().until(() -> outage.isPresent() && theMinuteHasBegun());
        database.allowConnections();

        CronJobAdded added = events.await(CronJobAdded.class);
        assertThat(added.timestamp()).isEqualTo(minute);
        assertThat(added.backfilled()).isTrue();
        assertThat(jobs()).containsExactly(minute);
    }

    private boolean theMinuteHasBegun() {
        return database.onServer("select clock_timestamp() > ?")
                .param(Timestamp.from(minute.minus(ahead)))
                .query(Boolean.class)
                .single();
    }

    private List<Instant> jobs() {
        return JdbcClient.create(pool)
                .sql("select run_at from graphile_worker.jobs")
                .query((row, i) -> row.getTimestamp(1).toInstant())
                .list();
    }
}
