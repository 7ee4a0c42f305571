package dev.pgworker;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import com.zaxxer.hikari.HikariDataSource;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.datasource.DelegatingDataSource;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.ListenerConnected;
import dev.pgworker.event.WorkerEvent.ListenerDisconnected;
import dev.pgworker.event.WorkerEvent.WorkerStarted;
import dev.pgworker.internal.failure.Outage;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.Task;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.testing.OwnDatabase;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** What a worker does while its database is away. Each test has a database of its own, which it may close. */
@Tag("any-postgres")
class OutageTest {

    private static final Task<Integer> NUMBER = Task.of("number", Integer.class);
    private static final Duration POLL = Duration.ofMinutes(5);

    private final OwnDatabase database = new OwnDatabase();
    private final RecordingListener events = new RecordingListener();
    private final ListAppender<ILoggingEvent> log = new ListAppender<>();
    private HikariDataSource pool;
    private Worker worker;

    private Duration reconcileInterval = Duration.ofMinutes(1);

    @BeforeEach
    void createDatabase() {
        database.create();
        pool = new HikariDataSource(TestSchema.poolConfig(database.url(), 4));
        new SchemaMigrator(pool, WorkerSchema.DEFAULT).migrate();
        log.start();
        outageLogger().addAppender(log);
    }

    @AfterEach
    void dropDatabase() {
        outageLogger().detachAppender(log);
        if (worker != null) {
            worker.stop();
        }
        pool.close();
        database.drop();
    }

    @Test
    void afterAnOutageUnderLoadListeningAndFetchingRecoverAndNothingIsLost() throws Exception {
        Set<Integer> done = ConcurrentHashMap.newKeySet();
        CountDownLatch half = new CountDownLatch(100);
        start(pool, 4, number -> {
            done.add(number);
            half.countDown();
        });
        add(0, 200);
        half.await();

        database.forbidConnections();
        database.cut();
        events.await(ListenerDisconnected.class);
        database.allowConnections();

        events.await(ListenerConnected.class, 2);
        Awaitility.await().until(() -> jobs() == 0);
        assertThat(done).hasSize(200);
        add(200, 201);
        Awaitility.await().until(() -> done.contains(200));
        assertThat(messages(Level.WARN)).hasSize(1);
        Awaitility.await().until(() -> !messages(Level.INFO).isEmpty());
    }

    @Test
    void aWorkerStartedWithoutItsDatabaseBeginsWhenItIsThere() {
        add(0, 1);
        database.forbidConnections();
        database.cut();
        start(pool, 2, number -> {});
        Awaitility.await().until(() -> !messages(Level.WARN).isEmpty());

        database.allowConnections();

        events.await(JobCompleted.class);
    }

    @Test
    @Tag("thorough")
    void stoppingDuringAnOutageIsBounded() {
        start(pool, 2, number -> {});
        database.forbidConnections();
        database.cut();
        events.await(ListenerDisconnected.class);

        worker.stop();

        assertThat(worker.isRunning()).isFalse();
        database.allowConnections();
    }

    @Test
    void jobsClaimedInAnAnswerThatNeverArrivedAreGivenBackAndRun() {
        AtomicInteger broken = new AtomicInteger();
        DataSource losesFirstAnswer = new LosingDataSource(pool, sql -> {
            return sql.contains("pgworker_claim") && broken.getAndIncrement() == 0;
        });
        add(0, 3);
        start(losesFirstAnswer, 3, number -> {});

        List<JobCompleted> completed = events.await(JobCompleted.class, 3);

        assertThat(completed).allSatisfy(e -> assertThat(e.job().attempts()).isEqualTo(1));
        assertThat(broken.get()).isGreaterThan(1);
    }

    @Test
    void theNextJobOfAQueueClaimedInAnAnswerThatNeverArrivedIsGivenBackAndRun() {
        AtomicBoolean lost = new AtomicBoolean();
        addToOneQueue(3);
        start(
                new LosingDataSource(pool, sql -> sql.contains("pgworker_complete") && lost.compareAndSet(false, true)),
                3,
                number -> {});

        Awaitility.await().until(() -> jobs() == 0);
        assertThat(lost).isTrue();
    }

    @Test
    void aQueueGoesOnAfterALostAnswerThatIsCheckedBeforeTheOutcomeIsWrittenAgain() {
        AtomicBoolean lost = new AtomicBoolean();
        AtomicBoolean checked = new AtomicBoolean();
        reconcileInterval = Duration.ofMillis(300);
        addToOneQueue(3);
        start(
                new LosingDataSource(pool, sql -> {
                    if (sql.contains("j.locked_by = ?")) {
                        checked.set(true);
                    }
                    if (sql.contains("pgworker_complete") && lost.get() && !checked.get()) {
                        throw new SQLException("Not before the check", "08006");
                    }
                    return sql.contains("pgworker_complete") && lost.compareAndSet(false, true);
                }),
                3,
                number -> {});

        Awaitility.await().until(() -> jobs() == 0);
        assertThat(checked).isTrue();
    }

    private void addToOneQueue(int amount) {
        for (int i = 0; i < amount; i++) {
            scheduler()
                    .addJob(
                            NUMBER,
                            i,
                            dev.pgworker.job.JobSpec.builder()
                                    .queueName("serial")
                                    .build());
        }
    }

    private void start(DataSource dataSource, int concurrency, java.util.function.IntConsumer handler) {
        worker = Worker.builder(dataSource)
                .settings(WorkerSettings.builder()
                        .concurrency(concurrency)
                        .pollInterval(POLL)
                        .shutdownGracePeriod(Duration.ofMillis(100))
                        .build())
                .reconcileInterval(reconcileInterval)
                .task(NUMBER, (number, context) -> handler.accept(number))
                .listener(events)
                .build();
        worker.start();
        if (database.allowsConnections()) {
            events.await(WorkerStarted.class);
            events.await(ListenerConnected.class);
        }
    }

    private JobScheduler scheduler() {
        return WorkerClient.jobScheduler(
                pool,
                WorkerSchema.DEFAULT,
                new dev.pgworker.task.PayloadCodec(new tools.jackson.databind.json.JsonMapper()));
    }

    private void add(int from, int to) {
        for (int i = from; i < to; i++) {
            scheduler().addJob(NUMBER, i);
        }
    }

    private long jobs() {
        return JdbcClient.create(pool)
                .sql("select count(*) from graphile_worker.jobs")
                .query(Long.class)
                .single();
    }

    private List<ILoggingEvent> messages(Level level) {
        synchronized (log) {
            return List.copyOf(log.list).stream()
                    .filter(e -> e.getLevel() == level)
                    .toList();
        }
    }

    private static Logger outageLogger() {
        return (Logger) LoggerFactory.getLogger(Outage.class);
    }

    /** Lets a statement take effect and then breaks its connection, as a cut between commit and answer does. */
    private static final class LosingDataSource extends DelegatingDataSource {

        private final Loses loses;

        LosingDataSource(DataSource target, Loses loses) {
            super(target);
            this.loses = loses;
        }

        @Override
        public Connection getConnection() throws SQLException {
            Connection connection = super.getConnection();
            return proxy(Connection.class, (method, args) -> {
                Object result = method.invoke(connection, args);
                if (method.getName().equals("prepareStatement") && loses.test((String) args[0])) {
                    PreparedStatement statement = (PreparedStatement) result;
                    return proxy(PreparedStatement.class, (m, a) -> {
                        Object answer = m.invoke(statement, a);
                        if (m.getName().equals("executeQuery")) {
                            connection.abort(Runnable::run);
                            throw new SQLException("The connection broke on purpose", "08006");
                        }
                        return answer;
                    });
                }
                return result;
            });
        }

        @FunctionalInterface
        private interface Loses {
            boolean test(String sql) throws SQLException;
        }

        @FunctionalInterface
        private interface Invocation {
            Object call(java.lang.reflect.Method method, Object[] args) throws Exception;
        }

        private static <T> T proxy(Class<T> type, Invocation invocation) {
            return type.cast(java.lang.reflect.Proxy.newProxyInstance(
                    type.getClassLoader(), new Class<?>[] {type}, (self, method, args) -> {
                        try {
                            return invocation.call(method, args);
                        } catch (java.lang.reflect.InvocationTargetException e) {
                            throw e.getCause();
                        }
                    }));
        }
    }
}
