package dev.pgworker;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.time.ZoneId;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.postgresql.PGConnection;
import org.springframework.jdbc.datasource.DelegatingDataSource;

import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.LimitApplied;
import dev.pgworker.event.WorkerEvent.PauseBegan;
import dev.pgworker.event.WorkerEvent.PauseEnded;
import dev.pgworker.event.WorkerEvent.ScheduleExecuted;
import dev.pgworker.job.Job;
import dev.pgworker.job.PauseTarget;
import dev.pgworker.job.Task;
import dev.pgworker.limit.Limit;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.Schedule;
import dev.pgworker.step.StepSettings;
import dev.pgworker.testing.RecordingListener;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** A worker listens on a connection that works and brings no notification, as a pooler's may that gives the session to others. */
class LostNotificationTest {

    private static final Task<Integer> WORK = Task.of("work", Integer.class);

    /** A look of the worker's own follows after a minute only. */
    private static final Duration SOON = Duration.ofSeconds(50);

    @RegisterExtension
    final TestSchema db = new TestSchema(20);

    private final RecordingListener events = new RecordingListener();
    private final Semaphore statements = new Semaphore(0);

    private DataSource deaf() {
        return new DelegatingDataSource(db.dataSource()) {
            @Override
            public Connection getConnection() throws SQLException {
                Connection connection = super.getConnection();
                PGConnection silent = proxy(PGConnection.class, connection.unwrap(PGConnection.class), null);
                return proxy(Connection.class, connection, silent);
            }
        };
    }

    private <T> T proxy(Class<T> type, T target, Object unwrapped) {
        return type.cast(Proxy.newProxyInstance(
                type.getClassLoader(), new Class<?>[] {type}, (self, method, arguments) -> {
                    if (method.getName().equals("unwrap") && unwrapped != null) {
                        return unwrapped;
                    }
                    try {
                        Object result = method.invoke(target, arguments);
                        if (method.getName().equals("createStatement")) {
                            statements.release();
                        }
                        return method.getName().equals("getNotifications") ? null : result;
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                }));
    }

    private void startAndLookOut() throws InterruptedException {
        db.start(db.worker().listenDataSource(deaf()).listener(events).task(WORK, (n, context) -> {}));
        // It begins to listen, and looks out twice: whoever watches pauses has looked since the first time, and relies
        // on it.
        assertThat(statements.tryAcquire(3, 120, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    @Tag("thorough")
    void aPauseHoldsAndEndsWithinSeconds() throws InterruptedException {
        startAndLookOut();

        long begin = System.nanoTime();
        db.operations().pause(PauseTarget.task("work"), null);
        events.await(PauseBegan.class);
        assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(SOON);

        db.scheduler().addJob(WORK, 1);
        begin = System.nanoTime();
        db.operations().resume(PauseTarget.task("work"));
        events.await(PauseEnded.class);
        events.await(JobCompleted.class);
        assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(SOON);
    }

    @Test
    @Tag("thorough")
    void schedulesAreExecutedAndLimitsTakeEffect() throws InterruptedException {
        startAndLookOut();

        WorkerClient.recurringJobs(db.dataSource(), db.schema(), db.codec())
                .create(Schedule.builder("a", Recurrence.cron("* * * * * *", ZoneId.of("UTC")), "tick", null)
                        .build());
        WorkerClient.jobLimits(db.dataSource(), db.schema()).put(Limit.concurrency("l", 1, "work"));

        events.await(LimitApplied.class);
        events.await(ScheduleExecuted.class);
    }

    @Test
    @Tag("thorough")
    void aSignalIsReceived() throws InterruptedException {
        db.start(db.worker()
                .listenDataSource(deaf())
                .listener(events)
                .task(WORK, (n, context) -> context.steps().await("go", Duration.ofDays(1))));
        assertThat(statements.tryAcquire(3, 120, TimeUnit.SECONDS)).isTrue();
        Job job = db.scheduler().addJob(WORK, 1);
        Awaitility.await("job that waits, and has been seen to")
                .until(() -> db.sql(
                                        "select count(*) from {schema}._private_jobs j join {schema}.pgworker_steps s on s.job_id = j.id"
                                                + " where j.id = ? and j.run_at > now() and j.locked_at is null and not s.fresh")
                                .param(job.id())
                                .query(Integer.class)
                                .single()
                        == 1);

        long begin = System.nanoTime();
        WorkerClient.jobSignals(db.dataSource(), db.schema(), db.codec(), StepSettings.DEFAULT)
                .send("go", null);

        events.await(JobCompleted.class);
        assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(SOON);
    }
}
