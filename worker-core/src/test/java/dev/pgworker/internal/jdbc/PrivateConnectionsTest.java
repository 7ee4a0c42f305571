package dev.pgworker.internal.jdbc;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import javax.sql.DataSource;

import com.zaxxer.hikari.HikariDataSource;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.jdbc.datasource.AbstractDataSource;
import org.springframework.jdbc.datasource.DriverManagerDataSource;

import dev.pgworker.Worker;
import dev.pgworker.WorkerSettings;
import dev.pgworker.event.WorkerEvent.ListenerConnected;
import dev.pgworker.job.Task;
import dev.pgworker.recovery.RecoverySettings;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

@Tag("any-postgres")
class PrivateConnectionsTest {

    private static final Task<Void> HOLD = Task.of("hold", Void.class);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private static DataSource opening(AtomicInteger opened) {
        DriverManagerDataSource driver = new DriverManagerDataSource(TestPostgres.jdbcUrl());
        return new AbstractDataSource() {
            @Override
            public Connection getConnection() throws SQLException {
                opened.incrementAndGet();
                return driver.getConnection();
            }

            @Override
            public Connection getConnection(String user, String password) throws SQLException {
                throw new UnsupportedOperationException();
            }
        };
    }

    private static DataSource failing(String state) {
        return new AbstractDataSource() {
            @Override
            public Connection getConnection() throws SQLException {
                throw new SQLException("on purpose", state);
            }

            @Override
            public Connection getConnection(String user, String password) throws SQLException {
                throw new UnsupportedOperationException();
            }
        };
    }

    private static int pid(DataSource dataSource) throws SQLException {
        try (Connection connection = dataSource.getConnection();
                Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery("select pg_backend_pid()")) {
            row.next();
            return row.getInt(1);
        }
    }

    @Test
    void aConnectionIsKeptUntilItBreaks() throws SQLException {
        AtomicInteger opened = new AtomicInteger();
        try (PrivateConnections kept = PrivateConnections.keeping(opening(opened), failing("08001"))) {
            int pid = pid(kept);
            assertThat(pid(kept)).isEqualTo(pid);
            assertThat(opened).hasValue(1);

            db.sql("select pg_terminate_backend(" + pid + ")").query().listOfRows();

            assertThat(pid(kept)).isNotEqualTo(pid);
            assertThat(opened).hasValue(2);
        }
    }

    @Test
    void whereTheServerRefusesThePoolIsUsedAndNothingOfItKept() throws SQLException {
        try (HikariDataSource pool = TestSchema.pool(1);
                PrivateConnections kept = PrivateConnections.keeping(failing("53300"), pool)) {
            pid(kept);
            pid(kept);
            assertThat(pool.getHikariPoolMXBean().getActiveConnections()).isZero();
        }
        assertThatThrownBy(() -> pid(PrivateConnections.keeping(failing("08001"), db.dataSource())))
                .isInstanceOf(SQLException.class)
                .hasMessageContaining("on purpose");
    }

    /** With heartbeats and listener behind the handlers the worker would take itself for dead. */
    @Test
    void aWorkerWhoseHandlersHoldAllConnectionsLivesAndListens() throws Exception {
        CountDownLatch holding = new CountDownLatch(1);
        CountDownLatch release = new CountDownLatch(1);
        RecordingListener events = new RecordingListener();
        try (HikariDataSource pool = TestSchema.pool(2)) {
            Worker worker = db.start(worker(pool, events, context -> {
                try (Connection first = pool.getConnection();
                        Connection second = pool.getConnection()) {
                    assertThat(first).isNotSameAs(second);
                    holding.countDown();
                    release.await();
                } catch (SQLException | InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            }));
            events.await(ListenerConnected.class);
            String id = worker.id();
            db.scheduler().addJob(HOLD, null);
            assertThat(holding.await(120, TimeUnit.SECONDS)).isTrue();
            String before = lastHeartbeat(id);

            Awaitility.await().until(() -> !lastHeartbeat(id).equals(before));
            assertThat(worker.status().listening()).isTrue();
            assertThat(worker.id()).isEqualTo(id);

            release.countDown();
            Awaitility.await().until(() -> db.jobs() == 0);
            worker.stop();
            Awaitility.await("connections left open")
                    .until(() -> db.sql("select count(*) from pg_stat_activity where application_name = 'private-"
                                            + db.schema().name() + "'")
                                    .query(Long.class)
                                    .single()
                            == 0);
        }
    }

    private Worker.Builder worker(HikariDataSource pool, RecordingListener events, Consumer<Object> handler) {
        return Worker.builder(pool)
                .schema(db.schema())
                .privateDataSource(new DriverManagerDataSource(TestPostgres.jdbcUrl() + "&ApplicationName=private-"
                        + db.schema().name()))
                .settings(WorkerSettings.builder()
                        .concurrency(2)
                        .recovery(RecoverySettings.builder()
                                .heartbeatInterval(Duration.ofMillis(200))
                                .build())
                        .build())
                .listener(events)
                .task(HOLD, (payload, context) -> handler.accept(context));
    }

    private String lastHeartbeat(String worker) {
        return db.sql("select last_heartbeat_at::text from {schema}._private_workers where id = ?")
                .param(worker)
                .query(String.class)
                .single();
    }
}
