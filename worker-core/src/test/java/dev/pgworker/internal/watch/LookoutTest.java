package dev.pgworker.internal.watch;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.internal.lifecycle.Hearing;
import dev.pgworker.internal.store.LookoutStore;
import dev.pgworker.internal.store.LookoutStore.Subject;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

class LookoutTest {

    @RegisterExtension
    final TestSchema db = new TestSchema(3);

    private final Set<Subject> told = EnumSet.noneOf(Subject.class);
    private volatile boolean listening = true;
    private Lookout lookout;
    private Connection connection;

    @BeforeEach
    void connect() throws SQLException {
        connection = db.dataSource().getConnection();
        lookout = new Lookout(
                new LookoutStore(db.schema()),
                () -> listening,
                Map.of(
                        Subject.PAUSES, () -> told.add(Subject.PAUSES),
                        Subject.LIMITS, () -> told.add(Subject.LIMITS),
                        Subject.SCHEDULES, () -> told.add(Subject.SCHEDULES),
                        Subject.CANCELLATIONS, () -> told.add(Subject.CANCELLATIONS),
                        Subject.CONTINUATIONS, () -> told.add(Subject.CONTINUATIONS)));
    }

    @AfterEach
    void disconnect() throws SQLException {
        connection.close();
    }

    private void assertHearing(Hearing expected) {
        for (Subject subject : Subject.values()) {
            assertThat(lookout.hearing(subject)).as(subject.name()).isEqualTo(expected);
        }
    }

    private void look() throws SQLException {
        told.clear();
        assertThat(lookout.answers(connection)).isTrue();
    }

    @Test
    void isRelaidOnWhileItHasFoundNothing() throws SQLException {
        assertHearing(Hearing.NOTIFICATIONS);

        look();

        assertHearing(Hearing.LOOKOUT);
        assertThat(told).isEmpty();
        listening = false;
        assertHearing(Hearing.NOTHING);
    }

    @Test
    void tellsOnceOfWhatThereIs() throws SQLException {
        look();
        assertTold(Subject.PAUSES, "insert into {schema}.pgworker_pauses (kind, name) values ('all', '')");
        assertTold(
                Subject.LIMITS,
                "insert into {schema}.pgworker_limits (name, task_identifiers, max_running) values ('a', '{a}', 1)");
        assertTold(
                Subject.SCHEDULES,
                "insert into {schema}.pgworker_schedules (name, kind, expression, zone, task_identifier)"
                        + " values ('a', 'cron', '* * * * *', 'UTC', 'a')");

        assertTold(
                Subject.CANCELLATIONS,
                "insert into {schema}.pgworker_cancellations values (1, now(), null, 'other', 'cancelled', now())");

        assertTold(
                Subject.CONTINUATIONS,
                "insert into {schema}.pgworker_signals (name, expires_at) values ('a', 'infinity')");

        db.sql("delete from {schema}.pgworker_pauses").update();
        look();
        assertThat(told).as("nobody waits for that").isEmpty();
        assertThat(lookout.hearing(Subject.PAUSES)).isEqualTo(Hearing.LOOKOUT);
    }

    private void assertTold(Subject subject, String sql) throws SQLException {
        db.sql(sql).update();
        look();
        assertThat(told).containsExactly(subject);
        assertThat(lookout.hearing(subject)).isEqualTo(Hearing.NOTIFICATIONS);
        look();
        assertThat(told).isEmpty();
    }

    @Test
    void aLockedTableIsAnAnswerAndLeavesTheLooksToOthers() throws SQLException {
        look();
        try (Connection other = db.dataSource().getConnection();
                Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute(db.schema().in("lock table {schema}.pgworker_limits in access exclusive mode"));
            look();

            assertThat(told).containsExactlyInAnyOrder(Subject.values());
            assertHearing(Hearing.NOTIFICATIONS);
            other.rollback();
        }

        look();
        assertHearing(Hearing.LOOKOUT);
    }

    @Test
    void aSchemaThatLacksItIsNotAskedAgainAtOnce() throws SQLException {
        look();
        db.sql("alter function {schema}.pgworker_look_out() rename to hidden").update();
        look();
        assertThat(told).containsExactlyInAnyOrder(Subject.values());

        db.sql("alter function {schema}.hidden() rename to pgworker_look_out").update();
        look();
        assertHearing(Hearing.NOTIFICATIONS);
    }

    @Test
    void aBrokenConnectionIsToldOf() throws SQLException {
        look();
        connection.abort(Runnable::run);

        assertThatThrownBy(() -> lookout.answers(connection)).isInstanceOf(SQLException.class);
        assertHearing(Hearing.NOTIFICATIONS);
    }
}
