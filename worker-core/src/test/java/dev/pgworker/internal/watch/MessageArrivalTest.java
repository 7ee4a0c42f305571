package dev.pgworker.internal.watch;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
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
    private final List<PGNotification[]> parts = new ArrayList<>();
    private MessageArrival.Reception reception;
    private Connection connection;

    @BeforeEach
    void listen() throws SQLException {
        plain.setURL(TestPostgres.jdbcUrl());
        connection = MessageArrival.toldBy(plain).getConnection();
        reception = new MessageArrival.Reception(driver(), told::incrementAndGet, parts::add);
        execute("listen arrival_test");
    }

    @AfterEach
    void close() throws SQLException {
        connection.close();
    }

    @Test
    void aNotificationIsToldOnceAndLeftToTheDriver() throws SQLException {
        db.sql("notify arrival_test, 'one'").update();

        PGNotification[] notifications = reception.await(LONG);

        assertThat(told).hasValue(1);
        assertThat(notifications)
                .singleElement()
                .extracting(PGNotification::getParameter)
                .isEqualTo("one");
    }

    @Test
    void theWaitEndsWithItsTimeAndTellsNothing() throws SQLException {
        connection.setNetworkTimeout(Runnable::run, 12_345);

        assertThat(reception.await(20)).isNullOrEmpty();

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

        assertThatThrownBy(() -> reception.await(LONG)).isInstanceOf(SQLException.class);
    }

    @Test
    void aWaitCanBeEndedOnceItsSocketIsKnown() throws Exception {
        assertThat(reception.canBeEnded()).isFalse();
        assertThat(reception.await(20)).isNullOrEmpty();
        assertThat(reception.canBeEnded()).isTrue();
        AtomicReference<Throwable> end = new AtomicReference<>();
        Thread waiting = new Thread(() -> end.set(catchThrowable(() -> reception.await(LONG))));
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

        assertThatThrownBy(() -> reception.await(LONG)).isInstanceOf(SQLException.class);
        assertThat(reception.canBeEnded()).isTrue();
    }

    @Test
    void onOtherConnectionsAWaitCannotBeEnded() throws SQLException {
        try (Connection other = plain.getConnection()) {
            reception =
                    new MessageArrival.Reception(other.unwrap(PGConnection.class), told::incrementAndGet, parts::add);
            assertThat(reception.await(20)).isNullOrEmpty();
        }

        assertThat(reception.canBeEnded()).isFalse();
    }

    @Test
    void moreThanFitsIntoMemoryIsHandedOverInParts() throws SQLException {
        List<String> sent = flood(3_000);

        PGNotification[] rest = Objects.requireNonNull(reception.await(LONG));

        List<PGNotification[]> all = new ArrayList<>(parts);
        all.add(rest);
        assertThat(all.stream().flatMap(Stream::of).map(PGNotification::getParameter))
                .containsExactlyElementsOf(sent);
        assertThat(all)
                .hasSizeGreaterThan(50)
                .allSatisfy(part -> assertThat(Stream.of(part)
                                .mapToInt(notification ->
                                        notification.getParameter().length())
                                .sum())
                        .isLessThan(MessageArrival.Reception.PART_BYTES + 100_000));
        assertThat(told).hasValue(1);
    }

    @Test
    void whatComesBeforeAnAnswerIsHandedOverAsWell() throws SQLException {
        List<String> sent = flood(300);

        boolean valid = reception.call(driver -> connection.isValid(10));

        assertThat(valid).isTrue();
        PGNotification[] rest = reception.await(20);
        assertThat(Stream.concat(
                                parts.stream().flatMap(Stream::of),
                                Stream.ofNullable(rest).flatMap(Stream::of))
                        .map(PGNotification::getParameter))
                .containsExactlyElementsOf(sent);
        assertThat(parts).isNotEmpty();
        assertThat(told).as("in a wait that brings the rest").hasValueLessThanOrEqualTo(1);
    }

    /** Each of nearly 8,000 bytes, the most that there may be. */
    private List<String> flood(int count) {
        db.sql("select pg_notify('arrival_test', rpad(n::text, 7990, 'x')) from generate_series(1, ?) n")
                .param(count)
                .query()
                .listOfRows();
        return IntStream.rangeClosed(1, count)
                .mapToObj(n -> n + "x".repeat(7_990 - String.valueOf(n).length()))
                .toList();
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
