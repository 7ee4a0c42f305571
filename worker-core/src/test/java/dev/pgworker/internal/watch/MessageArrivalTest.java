package dev.pgworker.internal.watch;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;

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
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.awaitility.Awaitility.await;

/** Also says whether the driver in use makes its sockets so. */
class MessageArrivalTest {

    private static final int LONG = 10_000;

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final PGSimpleDataSource plain = new PGSimpleDataSource();
    private final AtomicInteger told = new AtomicInteger();
    private final MessageArrival.Reception reception = new MessageArrival.Reception(told::incrementAndGet);
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

        PGNotification[] notifications = reception.await(driver(), LONG);

        assertThat(told).hasValue(1);
        assertThat(notifications)
                .singleElement()
                .extracting(PGNotification::getParameter)
                .isEqualTo("one");
    }

    @Test
    void theWaitEndsWithItsTimeAndTellsNothing() throws SQLException {
        connection.setNetworkTimeout(Runnable::run, 12_345);

        assertThat(reception.await(driver(), 20)).isNullOrEmpty();

        assertThat(told).hasValue(0);
        assertThat(connection.getNetworkTimeout()).isEqualTo(12_345);
        execute("select 1");
        assertThat(told).as("an answer outside of a reception").hasValue(0);
    }

    @Test
    void theEndOfTheConnectionIsAnError() throws SQLException {
        db.sql("select pg_terminate_backend(?)")
                .param(driver().getBackendPID())
                .query(Boolean.class)
                .single();

        assertThatThrownBy(() -> reception.await(driver(), LONG)).isInstanceOf(SQLException.class);
    }

    @Test
    void aWaitCanBeEndedOnceItsSocketIsKnown() throws Exception {
        assertThat(reception.canBeEnded()).isFalse();
        assertThat(reception.await(driver(), 20)).isNullOrEmpty();
        assertThat(reception.canBeEnded()).isTrue();
        AtomicReference<Throwable> end = new AtomicReference<>();
        Thread waiting = new Thread(() -> end.set(catchThrowable(() -> reception.await(driver(), LONG))));
        waiting.start();
        await().until(() -> Stream.of(waiting.getStackTrace())
                .anyMatch(frame -> frame.getClassName().equals(MessageArrival.Reception.class.getName())));

        reception.end();

        waiting.join(LONG / 2);
        assertThat(end.get()).isInstanceOf(SQLException.class);
    }

    @Test
    void aWaitThatBeginsAfterItsEndDoesNotLast() {
        reception.end();

        assertThatThrownBy(() -> reception.await(driver(), LONG)).isInstanceOf(SQLException.class);
        assertThat(reception.canBeEnded()).isTrue();
    }

    @Test
    void onOtherConnectionsAWaitCannotBeEnded() throws SQLException {
        try (Connection other = plain.getConnection()) {
            assertThat(reception.await(other.unwrap(PGConnection.class), 20)).isNullOrEmpty();
        }

        assertThat(reception.canBeEnded()).isFalse();
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
