package dev.pgworker.internal.watch;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.postgresql.ds.PGSimpleDataSource;

import dev.pgworker.event.WorkerEvent.ListenerConnected;
import dev.pgworker.event.WorkerEvent.ListenerDisconnected;
import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.engine.floor.Floors;
import dev.pgworker.internal.engine.floor.JobAnnouncements;
import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.internal.lifecycle.Started;
import dev.pgworker.internal.lifecycle.WorkSignal;
import dev.pgworker.testing.LogCapture;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

class NotificationListenerTest {

    @RegisterExtension
    final TestSchema db = new TestSchema();

    private final BlockingQueue<String> told = new LinkedBlockingQueue<>();
    private final BlockingQueue<String> toldSchedules = new LinkedBlockingQueue<>();
    private final RecordingListener events = new RecordingListener();
    private NotificationListener listener;

    @AfterEach
    void stop() {
        listener.stop(Duration.ofSeconds(10));
    }

    private String next() throws InterruptedException {
        return String.valueOf(told.poll(120, TimeUnit.SECONDS));
    }

    @Test
    void whatThoseWhoAreToldMakeOfItDoesNotEndTheListening() throws InterruptedException {
        PGSimpleDataSource plain = new PGSimpleDataSource();
        plain.setURL(TestPostgres.jdbcUrl());
        listener = new NotificationListener(
                new WorkerContext(
                        "w",
                        new WorkerEvents("w", List.of(events), List.of()),
                        new Outage(),
                        new WorkSignal(),
                        new Started(() -> false)),
                MessageArrival.promptly(plain),
                new JobAnnouncements(List.of(new Floors()), () -> {}, ids -> {}),
                new NotificationListener.Told(
                        () -> {
                            told.add("jobs");
                            throw new AssertionError("on purpose");
                        },
                        (connection, jobId) -> {
                            told.add("job " + jobId);
                            throw new AssertionError("on purpose");
                        },
                        connection -> connection.isValid(3),
                        Map.of(
                                "worker:migrate",
                                text -> {
                                    told.add("migration " + text);
                                    throw new IllegalArgumentException("on purpose");
                                },
                                "pgworker:schedules",
                                text -> {
                                    toldSchedules.add("schedules " + text);
                                    throw new AssertionError("on purpose");
                                })));
        listener.start();
        assertThat(next()).as("on connecting").isEqualTo("jobs");
        assertThat(next()).as("on connecting").isEqualTo("migration null");
        assertThat(toldSchedules.poll(120, TimeUnit.SECONDS))
                .as("on connecting")
                .isEqualTo("schedules null");

        db.sql("notify \"pgworker:schedules\", 'anything'").update();
        assertThat(toldSchedules.poll(120, TimeUnit.SECONDS)).isEqualTo("schedules anything");

        db.sql("notify \"worker:migrate\", 'not JSON'").update();
        assertThat(next()).isEqualTo("migration not JSON");
        db.sql("notify \"jobs:insert\"").update();
        assertThat(next()).isEqualTo("jobs");
        db.sql("notify \"jobs:insert\", '{\"count\":1,\"p\":[0],\"id\":7}'").update();
        assertThat(next()).isEqualTo("job 7");
        assertThat(next()).as("what could not be claimed").isEqualTo("jobs");

        assertThat(events.all(ListenerConnected.class)).hasSize(1);
        assertThat(events.all(ListenerDisconnected.class)).isEmpty();
        assertThat(listener.isListening()).isTrue();

        assertThat(listener.stop(Duration.ofMinutes(2))).isTrue();
        assertThat(events.all(ListenerDisconnected.class))
                .as("a stop that ends the wait")
                .isEmpty();
    }

    @Test
    void aFloodIsTakenInAndToldOfOnce() throws InterruptedException {
        PGSimpleDataSource plain = new PGSimpleDataSource();
        plain.setURL(TestPostgres.jdbcUrl());
        BlockingQueue<String> last = new LinkedBlockingQueue<>();
        try (LogCapture log = new LogCapture(NotificationListener.class)) {
            listener = new NotificationListener(
                    new WorkerContext(
                            "w",
                            new WorkerEvents("w", List.of(events), List.of()),
                            new Outage(),
                            new WorkSignal(),
                            new Started(() -> false)),
                    MessageArrival.promptly(plain),
                    new JobAnnouncements(List.of(new Floors()), () -> {}, ids -> {}),
                    new NotificationListener.Told(
                            () -> {},
                            (connection, jobId) -> false,
                            connection -> connection.isValid(3),
                            Map.of("pgworker:limits", text -> {
                                if (text == null || text.length() < 10) {
                                    last.add(String.valueOf(text));
                                }
                            })));
            listener.start();
            assertThat(last.poll(120, TimeUnit.SECONDS)).as("on connecting").isEqualTo("null");

            for (String channel : List.of("pgworker:limits", "jobs:insert")) {
                db.sql("select pg_notify(?, rpad(n::text, 7990, 'x')) from generate_series(1, 4000) n")
                        .param(channel)
                        .query()
                        .listOfRows();
            }
            db.sql("notify \"pgworker:limits\", 'last'").update();

            assertThat(last.poll(120, TimeUnit.SECONDS)).isEqualTo("last");
            assertThat(log.messages())
                    .singleElement()
                    .asString()
                    .contains("more than 16 MB", "pgworker:limits", "pg_stat_activity");
            assertThat(events.all(ListenerDisconnected.class)).isEmpty();
        }
    }
}
