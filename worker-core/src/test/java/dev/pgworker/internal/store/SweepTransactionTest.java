package dev.pgworker.internal.store;

import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import javax.sql.DataSource;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.datasource.SingleConnectionDataSource;

import dev.pgworker.internal.store.SweepStore.Request;
import dev.pgworker.internal.store.SweepStore.Result;
import dev.pgworker.job.Task;
import dev.pgworker.recovery.RecoverySettings;
import dev.pgworker.task.RecoveryDecision;
import dev.pgworker.testing.OwnThread;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** A process may be paused or cut off in the middle of a sweep. */
class SweepTransactionTest {

    private static final Request REQUEST =
            new Request(Duration.ofMinutes(1), null, RecoverySettings.DEFAULT, Duration.ZERO, true, false);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    @Test
    void aSweepThatStandsStillDoesNotKeepOthersFromSweepingForGood() throws Exception {
        db.scheduler().addJob(Task.of("work", Integer.class), 1);
        db.sql("update {schema}._private_jobs set locked_at = now(), locked_by = 'dead', attempts = 1")
                .update();
        db.sql(
                        "insert into {schema}._private_workers (id, last_heartbeat_at) values ('dead', now() - interval '1 hour')")
                .update();
        CountDownLatch asked = new CountDownLatch(1);
        CountDownLatch answer = new CountDownLatch(1);
        SweepStore paused = new SweepStore(
                db.dataSource(),
                db.schema(),
                List.of((job, worker) -> {
                    asked.countDown();
                    awaitQuietly(answer);
                    return RecoveryDecision.useDefault();
                }),
                Duration.ofMillis(300),
                Duration.ofSeconds(55));
        SweepStore other = new SweepStore(db.dataSource(), db.schema(), List.of());

        CompletableFuture<Result> first = CompletableFuture.supplyAsync(() -> sweep(paused), OwnThread.EACH);
        asked.await();
        assertThat(other.sweep(REQUEST, "w").locked())
                .as("while the first sweep may go on")
                .isFalse();
        Awaitility.await().until(() -> other.sweep(REQUEST, "w").workerIds().equals(List.of("dead")));
        answer.countDown();

        assertThatThrownBy(first::join).hasRootCauseInstanceOf(SQLException.class);
        assertThat(db.sql("select locked_by is null and attempts = 0 and recoveries = 1"
                                + " from {schema}._private_jobs join {schema}.pgworker_recoveries on job_id = id")
                        .query(Boolean.class)
                        .single())
                .isTrue();
    }

    @Test
    void aSweepLeavesNoSettingOnItsConnection() throws Exception {
        SingleConnectionDataSource one = new SingleConnectionDataSource(TestPostgres.jdbcUrl(), true);
        try {
            String before = idleLimit(one);

            new SweepStore(one, db.schema(), List.of()).sweep(REQUEST, "w");

            assertThat(idleLimit(one)).isEqualTo(before);
            assertThat(one.getConnection().getNetworkTimeout()).isZero();
            assertThat(one.getConnection().getAutoCommit()).isTrue();
        } finally {
            one.destroy();
        }
    }

    private static String idleLimit(DataSource dataSource) {
        return JdbcClient.create(dataSource)
                .sql("show idle_in_transaction_session_timeout")
                .query(String.class)
                .single();
    }

    private static Result sweep(SweepStore store) {
        try {
            return store.sweep(REQUEST, "w");
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void awaitQuietly(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
