package dev.pgworker.internal.lifecycle;

import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import javax.sql.DataSource;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.jdbc.datasource.AbstractDataSource;

import static org.assertj.core.api.Assertions.assertThat;

/** Which threads hang, and which have a reason to take long. */
@Tag("any-postgres")
class ActivityTest {

    private static final Duration SHORT = Duration.ofMillis(20);

    private final Activity activity = new Activity();
    private final CountDownLatch begun = new CountDownLatch(1);
    private final CountDownLatch release = new CountDownLatch(1);
    private final Thread thread = new Thread(this::run, "test-activity");
    private volatile Runnable work = this::await;

    private void run() {
        activity.begin();
        begun.countDown();
        try {
            work.run();
        } finally {
            activity.end();
        }
    }

    private void await() {
        try {
            release.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private void start(Runnable atWork) throws InterruptedException {
        work = atWork;
        thread.start();
        begun.await();
        Awaitility.await().until(() -> thread.getState() == Thread.State.WAITING);
        awaitLongEnough();
    }

    /** Time itself is what is waited for. */
    private static void awaitLongEnough() {
        long start = System.nanoTime();
        Awaitility.await().pollInterval(SHORT).until(() -> System.nanoTime() - start > 2 * SHORT.toNanos());
    }

    @AfterEach
    void end() throws InterruptedException {
        release.countDown();
        thread.join();
        assertThat(activity.isStuck(Duration.ZERO)).isFalse();
    }

    @Test
    void aThreadThatHangs() throws InterruptedException {
        start(this::await);

        assertThat(activity.isStuck(Duration.ofHours(1))).isFalse();
        assertThat(activity.isStuck(SHORT)).isTrue();
        activity.progress();
        assertThat(activity.isStuck(Duration.ofMinutes(1))).isFalse();
    }

    @Test
    void aThreadWithNothingToDo() throws InterruptedException {
        start(() -> {
            activity.end();
            await();
            activity.begin();
        });

        assertThat(activity.isStuck(SHORT)).isFalse();
    }

    @Test
    void aThreadThatWaitsForAConnectionOfAnyPool() throws InterruptedException {
        DataSource pool = new AbstractDataSource() {
            @Override
            public java.sql.Connection getConnection() throws SQLException {
                await();
                throw new SQLException("none");
            }

            @Override
            public java.sql.Connection getConnection(String username, String password) throws SQLException {
                return getConnection();
            }

            private void await() {
                ActivityTest.this.await();
            }
        };
        start(() -> {
            try {
                pool.getConnection();
            } catch (SQLException e) {
                // Expected.
            }
        });

        assertThat(activity.isStuck(SHORT)).isFalse();
    }
}
