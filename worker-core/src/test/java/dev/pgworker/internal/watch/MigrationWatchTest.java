package dev.pgworker.internal.watch;

import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

import io.micrometer.observation.ObservationRegistry;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.jdbc.datasource.DelegatingDataSource;

import dev.pgworker.event.WorkerEvent.SchemaMigrated;
import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.lifecycle.PeriodicTasks;
import dev.pgworker.internal.store.MigrationStore;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** What comes of announcements of migrations. */
class MigrationWatchTest {

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final Semaphore looks = new Semaphore(0);
    private final Semaphore stops = new Semaphore(0);
    private final RecordingListener events = new RecordingListener();
    private final WorkerEvents published = new WorkerEvents("w", List.of(events), List.of());
    private final PeriodicTasks tasks = new PeriodicTasks("test", ObservationRegistry.NOOP);
    private MigrationWatch watch;

    private void watch(Duration interval) {
        var counting = new DelegatingDataSource(db.dataSource()) {
            @Override
            public Connection getConnection() throws SQLException {
                looks.release();
                return super.getConnection();
            }
        };
        published.start();
        watch = new MigrationWatch(
                "w", new MigrationStore(counting, db.schema()), stops::release, published, new Outage(), interval);
        tasks.start(watch);
    }

    @AfterEach
    void stop() {
        tasks.stop(Duration.ofSeconds(10));
        published.close(Duration.ofSeconds(10));
    }

    private void awaitLooks(int count) throws InterruptedException {
        assertThat(looks.tryAcquire(count, 30, TimeUnit.SECONDS)).isTrue();
    }

    private void record(int id, boolean breaking) {
        db.sql("insert into {schema}.migrations (id, breaking) values (?, ?)")
                .params(id, breaking)
                .update();
    }

    @Test
    void anyNumberOfThemCostsTenLooksAndThenOneInAnInterval() throws InterruptedException {
        watch(Duration.ofDays(1));

        for (int i = 0; i < 10; i++) {
            watch.migrationAnnounced();
            awaitLooks(1);
        }
        for (int i = 0; i < 10_000; i++) {
            watch.migrationAnnounced();
        }

        assertThat(looks.tryAcquire(200, TimeUnit.MILLISECONDS)).isFalse();
        assertThat(stops.availablePermits()).isZero();
        assertThat(events.all(SchemaMigrated.class)).isEmpty();
    }

    @Test
    void theLedgerSaysWhatHasHappened() throws InterruptedException {
        watch(Duration.ofMillis(1));
        record(23, false);
        watch.migrationAnnounced();
        assertThat(events.await(SchemaMigrated.class, e -> e.migration() == 23).breaking())
                .isFalse();
        assertThat(stops.availablePermits()).isZero();

        record(24, true);
        watch.migrationAnnounced();
        assertThat(events.await(SchemaMigrated.class, e -> e.migration() == 24).breaking())
                .isTrue();
        assertThat(stops.tryAcquire(120, TimeUnit.SECONDS)).isTrue();

        awaitLooks(2);
        watch.migrationAnnounced();
        awaitLooks(1);
        assertThat(stops.tryAcquire(100, TimeUnit.MILLISECONDS)).isFalse();
    }

    @Test
    void whatIsAnnouncedJustAfterALookIsSeenAtOnce() throws InterruptedException {
        watch(Duration.ofDays(1));
        record(23, false);
        watch.migrationAnnounced();
        events.await(SchemaMigrated.class, e -> e.migration() == 23);

        record(24, true);
        watch.migrationAnnounced();

        assertThat(stops.tryAcquire(120, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    void aLookThatFailsIsRepeated() throws InterruptedException {
        watch(Duration.ofDays(1));
        record(24, true);
        db.sql("alter table {schema}.migrations rename to hidden").update();
        watch.migrationAnnounced();
        awaitLooks(2);

        db.sql("alter table {schema}.hidden rename to migrations").update();

        assertThat(stops.tryAcquire(120, TimeUnit.SECONDS)).isTrue();
    }
}
