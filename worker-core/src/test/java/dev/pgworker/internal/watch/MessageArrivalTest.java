package dev.pgworker.internal.watch;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
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
    private final List<PGNotification[]> parts = new ArrayList<>();
    private MessageArrival.Reception reception;
    private Connection connection;

    @BeforeEach
    void listen() throws SQLException {
        plain.setURL(TestPostgres.jdbcUrl());
        connection = MessageArrival.promptly(plain).getConnection();
        reception = new MessageArrival.Reception(driver(), parts::add);
        execute("listen arrival_test");
    }

    @AfterEach
    void close() throws SQLException {
        connection.close();
    }

    @Test
    void aWaitEndsWithTheFirstNotificationAndTheNextOneIsNotLost() throws SQLException {
        long shortest = Long.MAX_VALUE;
        for (int i = 0; i < 20 || (i < 500 && shortest >= 900_000); i++) {
            db.sql("notify arrival_test, 'one'").update();
            awaitBytes();
            long begin = System.nanoTime();
            PGNotification[] notifications = reception.await(LONG);
            shortest = Math.min(shortest, System.nanoTime() - begin);

            assertThat(notifications)
                    .singleElement()
                    .extracting(PGNotification::getParameter)
                    .isEqualTo("one");
        }
        assertThat(shortest).as("the driver looks for more for a millisecond").isLessThan(900_000);
    }

    /** What the server has sent before it answers another session is there. */
    private void awaitBytes() {
        await().pollInterval(Duration.ofMillis(1))
                .until(() -> db.sql(
                                "select state_change > now() - interval '1 minute' and wait_event = 'ClientRead' from pg_stat_activity where pid = ?")
                        .param(driver().getBackendPID())
                        .query(Boolean.class)
                        .single());
    }

    @Test
    void notificationsThatHaveArrivedTogetherAreReadTogether() throws SQLException {
        db.sql("select pg_notify('arrival_test', i::text) from generate_series(1, 3) i")
                .query()
                .listOfRows();

        assertThat(reception.await(LONG))
                .extracting(PGNotification::getParameter)
                .containsExactly("1", "2", "3");
    }

    @Test
    void theWaitEndsWithItsTime() throws SQLException {
        connection.setNetworkTimeout(Runnable::run, 12_345);

        assertThat(reception.await(20)).isNullOrEmpty();

        assertThat(connection.getNetworkTimeout()).isEqualTo(12_345);
        execute("select 1");
    }

    @Test
    void anEndDoesNotBreakAStatement() throws SQLException {
        assertThat(reception.await(20)).isNullOrEmpty();

        assertThat(reception.using(() -> {
                    reception.end();
                    execute("select 1");
                    return 1;
                }))
                .isOne();

        assertThatThrownBy(() -> execute("select 1")).isInstanceOf(SQLException.class);
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
            reception = new MessageArrival.Reception(other.unwrap(PGConnection.class), parts::add);
            assertThat(reception.await(20)).isNullOrEmpty();
        }

        assertThat(reception.canBeEnded()).isFalse();
    }

    @Test
    void moreThanFitsIntoMemoryIsHandedOverInParts() throws SQLException {
        List<String> sent = flood(3_000);

        assertThat(received(sent.size())).containsExactlyElementsOf(sent);
        assertThat(parts)
                .hasSizeGreaterThan(50)
                .allSatisfy(part -> assertThat(Stream.of(part)
                                .mapToInt(notification ->
                                        notification.getParameter().length())
                                .sum())
                        .isLessThan(MessageArrival.Reception.PART_BYTES + 100_000));
    }

    @Test
    void whatComesBeforeAnAnswerIsHandedOverAsWell() throws SQLException {
        List<String> sent = flood(300);

        boolean valid = reception.using(() -> connection.isValid(10));

        assertThat(valid).isTrue();
        assertThat(parts).isNotEmpty();
        assertThat(received(sent.size())).containsExactlyElementsOf(sent);
    }

    private List<String> received(int count) throws SQLException {
        List<String> texts;
        do {
            PGNotification[] rest = reception.await(LONG);
            if (rest != null) {
                parts.add(rest);
            }
            texts = parts.stream()
                    .flatMap(Stream::of)
                    .map(PGNotification::getParameter)
                    .toList();
        } while (texts.size() < count);
        return texts;
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
        assertThat(MessageArrival.promptly(db.dataSource())).isSameAs(db.dataSource());
        assertThat(MessageArrival.promptly(plain)).isNotSameAs(plain);
        assertThat(plain.getSocketFactory()).isNull();
        plain.setSocketFactory("my.Factory");
        assertThat(MessageArrival.promptly(plain)).isSameAs(plain);
    }

    /** It may do more than the driver's data source does. */
    @Test
    void ofASubclassACopyIsUsedThatItSupplies() {
        PGSimpleDataSource unknown = new PGSimpleDataSource() {
            private static final long serialVersionUID = 1L;
        };
        assertThat(MessageArrival.promptly(unknown)).isSameAs(unknown);
        Copied copied = new Copied();
        assertThat(MessageArrival.promptly(copied))
                .isNotSameAs(copied)
                .isInstanceOfSatisfying(
                        Copied.class,
                        copy -> assertThat(copy.getSocketFactory()).isEqualTo(MessageArrival.class.getName()));
        assertThat(copied.getSocketFactory()).isNull();
    }

    private static final class Copied extends PGSimpleDataSource implements Supplier<PGSimpleDataSource> {

        private static final long serialVersionUID = 1L;

        @Override
        public PGSimpleDataSource get() {
            return new Copied();
        }
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
