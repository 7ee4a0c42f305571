package dev.pgworker.internal.watch;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import io.micrometer.observation.ObservationRegistry;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.slf4j.LoggerFactory;

import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.lifecycle.PeriodicTasks;
import dev.pgworker.internal.store.JobTableStore;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

class SnapshotWatchTest {

    private static final Duration LONGEST = Duration.ofMillis(100);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final ListAppender<ILoggingEvent> log = new ListAppender<>();
    private final AtomicLong finished = new AtomicLong();

    /** What the watch has asked for, one job more each time; and no more than this are finished at first. */
    private volatile long most = Long.MAX_VALUE;

    private final PeriodicTasks tasks = new PeriodicTasks("test", ObservationRegistry.NOOP);
    private SnapshotWatch watch;

    @BeforeEach
    void start() {
        log.start();
        ((Logger) LoggerFactory.getLogger(SnapshotWatch.class)).addAppender(log);
        watch = new SnapshotWatch(
                new JobTableStore(db.dataSource(), db.schema()),
                () -> finished.get() < most ? finished.incrementAndGet() : most,
                LONGEST,
                5,
                new Outage());
    }

    @AfterEach
    void stop() {
        tasks.stop(Duration.ofSeconds(5));
        ((Logger) LoggerFactory.getLogger(SnapshotWatch.class)).detachAppender(log);
    }

    @Test
    @Tag("thorough")
    void namesTheSessionThatHoldsOneOnceAndSaysWhenItIsGivenUp() throws Exception {
        try (Connection holder = db.dataSource().getConnection()) {
            int session = hold(holder);
            tasks.start(watch);

            Awaitility.await().until(() -> watch.holder() != null);
            String held = Objects.requireNonNull(watch.holder());
            assertThat(watch.age()).isGreaterThan(LONGEST);
            assertThat(held).contains("session " + session + " of role ", "console", "idle in transaction");
            long lookedAt = finished.get();
            Awaitility.await().until(() -> finished.get() > lookedAt + 3);
            assertThat(log.list).hasSize(1);
            assertThat(log.list.get(0).getLevel()).isEqualTo(Level.WARN);
            assertThat(log.list.get(0).getFormattedMessage()).contains(held, "pg_terminate_backend(" + session + ")");

            holder.rollback();
            Awaitility.await().until(() -> watch.holder() == null);
            assertThat(log.list).hasSize(2);
            assertThat(log.list.get(1).getFormattedMessage()).contains("no longer held");
        }
    }

    @Test
    void saysNothingWhileFewJobsAreFinished() throws Exception {
        most = 4;
        try (Connection holder = db.dataSource().getConnection()) {
            hold(holder);
            tasks.start(watch);
            Awaitility.await().until(() -> finished.get() == most);

            AtomicLong more = new AtomicLong();
            Awaitility.await().pollInterval(LONGEST).until(() -> more.incrementAndGet() == 5);
            assertThat(watch.holder()).isNull();
            assertThat(log.list).isEmpty();
        }
    }

    private int hold(Connection holder) throws SQLException {
        holder.setAutoCommit(false);
        holder.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
        try (Statement statement = holder.createStatement()) {
            statement.execute("set local application_name = 'console'");
            try (var row = statement.executeQuery("select pg_backend_pid()")) {
                row.next();
                int session = row.getInt(1);
                // Others' snapshots are older than this one until a transaction has come and gone.
                db.sql("select txid_current()").query((r, n) -> 1).single();
                return session;
            }
        }
    }
}
