package dev.pgworker.engine;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.concurrent.atomic.AtomicInteger;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;
import org.postgresql.ds.PGSimpleDataSource;

import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Also says whether the driver in use makes its sockets so. */
class MessageArrivalTest {

    private static final int LONG = 10_000;

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final PGSimpleDataSource plain = new PGSimpleDataSource();
    private final AtomicInteger told = new AtomicInteger();
    private Connection connection;

    @BeforeEach
    void listen() throws SQLException {
        plain.setURL(TestPostgres.jdbcUrl());
        connection = MessageArrival.toldBy(plain).getConnection();
        execute("listen arrival_test");
    }

    @AfterEach
    void close() throws SQLException {
        connection.close();
    }

    @Test
    void aNotificationIsToldOnceAndLeftToTheDriver() throws SQLException {
        db.sql("notify arrival_test, 'one'").update();

        PGNotification[] notifications = MessageArrival.await(driver(), LONG, told::incrementAndGet);

        assertThat(told).hasValue(1);
        assertThat(notifications)
                .singleElement()
                .extracting(PGNotification::getParameter)
                .isEqualTo("one");
    }

    @Test
    void theWaitEndsWithItsTimeAndTellsNothing() throws SQLException {
        connection.setNetworkTimeout(Runnable::run, 12_345);

        assertThat(MessageArrival.await(driver(), 20, told::incrementAndGet)).isNullOrEmpty();

        assertThat(told).hasValue(0);
        assertThat(connection.getNetworkTimeout()).isEqualTo(12_345);
        execute("select 1");
        assertThat(told).as("an answer outside of a wait").hasValue(0);
    }

    @Test
    void theEndOfTheConnectionIsAnError() throws SQLException {
        db.sql("select pg_terminate_backend(?)")
                .param(driver().getBackendPID())
                .query(Boolean.class)
                .single();

        assertThatThrownBy(() -> MessageArrival.await(driver(), LONG, told::incrementAndGet))
                .isInstanceOf(SQLException.class);
    }

    @Test
    void otherDataSourcesAndOtherSocketFactoriesAreLeftAlone() {
        assertThat(MessageArrival.toldBy(db.dataSource())).isSameAs(db.dataSource());
        assertThat(MessageArrival.toldBy(plain)).isNotSameAs(plain);
        assertThat(plain.getSocketFactory()).isNull();
        plain.setSocketFactory("my.Factory");
        assertThat(MessageArrival.toldBy(plain)).isSameAs(plain);
    }

    private PGConnection driver() throws SQLException {
        return connection.unwrap(PGConnection.class);
    }

    private void execute(String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }
}
