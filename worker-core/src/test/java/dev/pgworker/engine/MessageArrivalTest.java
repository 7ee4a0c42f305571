package dev.pgworker.engine;

import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Objects;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.postgresql.PGConnection;

import dev.pgworker.engine.MessageArrival.Message;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Also says whether the driver in use lets anybody wait. */
class MessageArrivalTest {

    private static final int LONG = 10_000;

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private Connection connection;
    private MessageArrival arrival;

    @BeforeEach
    void listen() throws SQLException {
        connection = db.dataSource().getConnection();
        execute("listen arrival_test");
        arrival = Objects.requireNonNull(MessageArrival.on(connection));
    }

    @AfterEach
    void close() {
        // A connection that listens, or is broken, does not go back.
        db.dataSource().evictConnection(connection);
    }

    @Test
    void aNotificationIsSeenAndLeftToTheDriver() throws SQLException {
        db.sql("notify arrival_test, 'one'").update();

        assertThat(arrival.await(LONG)).isEqualTo(Message.NOTIFICATION);
        assertThat(arrival.await(LONG)).as("seen again").isEqualTo(Message.NOTIFICATION);
        assertThat(connection.unwrap(PGConnection.class).getNotifications(LONG))
                .singleElement()
                .extracting(notification -> notification.getParameter())
                .isEqualTo("one");
    }

    @Test
    void theWaitEndsWithItsTimeAndLeavesTheConnectionAsItWas() throws SQLException {
        connection.setNetworkTimeout(Runnable::run, 12_345);

        assertThat(arrival.await(20)).isEqualTo(Message.NONE);

        assertThat(connection.getNetworkTimeout()).isEqualTo(12_345);
        execute("select 1");
    }

    @Test
    void theEndOfTheConnectionIsForTheDriverToTell() throws SQLException {
        int server = connection.unwrap(PGConnection.class).getBackendPID();
        db.sql("select pg_terminate_backend(?)")
                .param(server)
                .query(Boolean.class)
                .single();

        assertThat(arrival.await(LONG)).isEqualTo(Message.OTHER);
        assertThatThrownBy(() -> connection.unwrap(PGConnection.class).getNotifications(LONG))
                .isInstanceOf(SQLException.class);
    }

    @Test
    void aConnectionThatIsClosedMeanwhileIsAnError() throws SQLException {
        connection.abort(Runnable::run);

        assertThatThrownBy(() -> arrival.await(LONG))
                .isInstanceOf(SQLException.class)
                .hasMessageContaining("broke");
    }

    @Test
    void anotherDriverDoesWithout() {
        Object other = Proxy.newProxyInstance(
                getClass().getClassLoader(), new Class<?>[] {Connection.class}, (proxy, method, arguments) -> {
                    throw new SQLException("not a wrapper");
                });

        assertThat(MessageArrival.on((Connection) other)).isNull();
    }

    private void execute(String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }
}
