package dev.pgworker;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import dev.pgworker.job.JobSpec;
import dev.pgworker.job.PauseTarget;
import dev.pgworker.job.Task;
import dev.pgworker.task.TaskOptions;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testing.InterceptedDataSource;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

/** Jobs that are announced to a worker that has nothing else to do. Its poll does not help. */
class ToldJobTest {

    private static final Task<Integer> TASK = Task.of("t", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema(16);

    private final Queue<Integer> ran = new ConcurrentLinkedQueue<>();
    private final AtomicInteger told = new AtomicInteger();
    private final AtomicInteger broken = new AtomicInteger();
    private final AtomicInteger looked = new AtomicInteger();
    private int added;

    private Worker.Builder worker() {
        InterceptedDataSource seen = new InterceptedDataSource(db.dataSource(), (call, proceed) -> {
            @Nullable Object result;
            try {
                result = proceed.proceed();
            } catch (SQLException e) {
                if (call.is("executeQuery", "pgworker_claim_ids(")) {
                    broken.incrementAndGet();
                }
                throw e;
            }
            if (call.is("executeQuery", "pgworker_claim_ids(")) {
                told.incrementAndGet();
            } else if (call.is("executeQuery", "pgworker_claim(")) {
                looked.incrementAndGet();
            }
            return result;
        });
        return Worker.builder(seen)
                .schema(db.schema())
                .settings(WorkerSettings.builder()
                        .pollInterval(Duration.ofHours(1))
                        .concurrency(2)
                        .localQueueSize(0)
                        .build());
    }

    private void start() {
        db.start(worker().task(TASK, (n, context) -> ran.add(n)));
        awaitTold();
    }

    /** Adds jobs one by one until one is claimed by its id, which is when the worker knows that nothing else is due. */
    private void awaitTold() {
        int before = told.get();
        await().until(() -> {
            addAndAwait();
            return told.get() > before;
        });
    }

    private void addAndAwait() {
        db.scheduler().addJob(TASK, added++);
        await().pollInterval(Duration.ofMillis(2)).until(() -> ran.size() == added);
    }

    private long id(int n) {
        return db.sql("select id from {schema}._private_jobs where payload::text = ?")
                .param(String.valueOf(n))
                .query(Long.class)
                .single();
    }

    private void tell(String text) {
        db.sql("select pg_notify('jobs:insert', ?)").param(text).query().listOfRows();
    }

    @Test
    void areClaimedByTheirIds() {
        start();
        int before = looked.get();
        for (int i = 0; i < 50; i++) {
            addAndAwait();
        }
        // On a busy machine some are added before the worker is quiet again.
        assertThat(told.get()).isGreaterThan(25);
        assertThat(looked.get() - before).as("claims that looked for jobs").isLessThan(25);
        await().until(() -> db.jobs() == 0);
        assertThat(ran).doesNotHaveDuplicates();

        db.sql("select from {schema}.add_job('t', '1000', job_key => 'k')")
                .query()
                .listOfRows();
        await().until(() -> ran.contains(1000));
    }

    @Test
    @Tag("thorough")
    void areFollowedByAClaimThatLooksAtLast() {
        start();
        int before = looked.get();
        for (int i = 0; i < 520; i++) {
            addAndAwait();
        }
        assertThat(looked.get()).isGreaterThan(before);
    }

    @Test
    void runThoughNotificationsLie() {
        start();
        for (String text : List.of(
                "{\"count\":1,\"id\":9223372036854775807}",
                "{\"count\":1,\"id\":-9223372036854775808}",
                "{\"count\":1,\"id\":92233720368547758070}",
                "{\"count\":1,\"id\":1.5}",
                "{\"count\":1,\"id\":1e400}",
                "{\"count\":1,\"id\":\"1\"}",
                "{\"count\":1,\"id\":null}",
                "{\"count\":1,\"id\":[1]}",
                "{\"count\":\"1\",\"id\":1}",
                "{\"count\":-1,\"id\":1}",
                "{\"id\":1}",
                "{\"count\":1,\"id\":1,\"p\":null}",
                "{\"count\":1,\"id\":1",
                "[".repeat(7000))) {
            tell(text);
            addAndAwait();
        }
        await().until(() -> db.jobs() == 0);
        assertThat(ran).doesNotHaveDuplicates();
    }

    @Test
    void thatMayNotRunDoNotBecauseTheirIdsAreTold() {
        start();
        db.operations().pause(PauseTarget.task("t"), null);
        await().until(() -> {
            int count = told.get();
            tell("{\"count\":1,\"id\":0}");
            return told.get() == count;
        });
        db.scheduler().addJob(TASK, -1);
        db.scheduler().addJob(TASK, -2, JobSpec.builder().queueName("q").build());
        for (int n : new int[] {-1, -2}) {
            tell("{\"count\":1,\"id\":" + id(n) + "}");
        }
        assertThat(db.sql("select count(*) from {schema}._private_jobs where locked_at is not null")
                        .query(Long.class)
                        .single())
                .isZero();

        db.operations().resume(PauseTarget.task("t"));

        await().until(() -> ran.contains(-1) && ran.contains(-2));
    }

    /** A trigger of somebody's takes longer than a claim may on the connection that hears of everything else. */
    @Test
    @Tag("thorough")
    void areNotClaimedSoAfterThatBrokeTheConnection() throws SQLException {
        start();
        for (String statement : """
                create sequence {schema}.claims;
                create function {schema}.take_long() returns trigger language plpgsql as $$
                begin
                  if old.locked_at is null and new.locked_at is not null and nextval('{schema}.claims') = 1 then
                    perform pg_sleep(4);
                  end if;
                  return new;
                end $$;
                create trigger take_long before update on {schema}._private_jobs
                  for each row execute function {schema}.take_long()
                """.split(";\n(?=create)")) {
            try (Connection connection = db.dataSource().getConnection();
                    Statement sql = connection.createStatement()) {
                sql.execute(db.schema().in(statement));
            }
        }
        int before = told.get();
        db.scheduler().addJob(TASK, added++);
        // Its answer is lost, and what the server has claimed all the same is found 5 seconds later.
        await().until(() -> ran.size() == added);
        for (int i = 0; i < 5; i++) {
            addAndAwait();
        }

        assertThat(broken).hasValue(1);
        assertThat(told).hasValue(before);
        await().until(() -> db.jobs() == 0);
        assertThat(ran).doesNotHaveDuplicates();
    }

    @Test
    void ofDirectTasksRunInBatches() {
        db.start(worker().tasks(List.of(TaskRegistration.of(TASK, (n, context) -> {
                    ran.add(n);
                })
                .with(TaskOptions.DEFAULT.withDirect(true)))));
        for (int i = 0; i < 30; i++) {
            addAndAwait();
        }
        await().until(() -> db.jobs() == 0);
        assertThat(ran).doesNotHaveDuplicates();
    }

    @Test
    void areNotClaimedSoWhileFlagsMayBeForbidden() {
        db.start(worker().forbiddenFlags(() -> List.of("f")).task(TASK, (n, context) -> ran.add(n)));
        for (int i = 0; i < 30; i++) {
            addAndAwait();
        }
        assertThat(told).hasValue(0);
    }

    @Test
    void waitForAHandlerAndStartInTheirOrder() {
        Queue<Integer> started = new ConcurrentLinkedQueue<>();
        CountDownLatch mayEnd = new CountDownLatch(1);
        db.start(worker().task(TASK, (n, context) -> {
            started.add(n);
            mayEnd.await();
        }));
        for (int n = 0; n < 2; n++) {
            db.scheduler().addJob(TASK, n);
        }
        await().until(() -> started.size() == 2);
        for (int n = 2; n < 12; n++) {
            db.scheduler().addJob(TASK, n);
        }
        mayEnd.countDown();

        await().until(() -> started.size() == 12);
        assertThat(started.stream().skip(2).limit(2)).containsExactlyInAnyOrder(2, 3);
    }
}
