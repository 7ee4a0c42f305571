package dev.pgworker.internal.client;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.annotation.JsonRawValue;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

import dev.pgworker.WorkerClient;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobSpec;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Adding jobs in and out of transactions. */
class JdbcJobSchedulerTest {

    @RegisterExtension
    final TestSchema db = new TestSchema();

    @Test
    void returnsTheJobAsStored() {
        Instant runAt = Instant.now().plusSeconds(3600).truncatedTo(ChronoUnit.MICROS);

        Job job = db.scheduler()
                .addJob(
                        "mail",
                        Map.of("to", "ada"),
                        JobSpec.builder()
                                .queueName("outbox")
                                .runAt(runAt)
                                .maxAttempts(3)
                                .jobKey("mail:ada")
                                .jobKeyMode(JobKeyMode.PRESERVE_RUN_AT)
                                .priority(-7)
                                .flags("slow", "external")
                                .build());

        assertThat(job.taskIdentifier()).isEqualTo("mail");
        assertThat(job.payload()).isEqualTo("{\"to\":\"ada\"}");
        assertThat(job.queueName()).isEqualTo("outbox");
        assertThat(job.runAt()).isEqualTo(runAt);
        assertThat(job.maxAttempts()).isEqualTo(3);
        assertThat(job.key()).isEqualTo("mail:ada");
        assertThat(job.priority()).isEqualTo(-7);
        assertThat(job.flags()).containsExactlyInAnyOrder("slow", "external");
        assertThat(job.attempts()).isZero();
        assertThat(job.lockedBy()).isNull();
        assertThat(db.sql(
                                "select task_identifier || ' ' || queue_name || ' ' || flags::text from {schema}.jobs where id = ?")
                        .param(job.id())
                        .query(String.class)
                        .single())
                .isEqualTo("mail outbox {\"slow\": true, \"external\": true}");
    }

    @Test
    void omittedAttributesTakeTheDatabasesDefaults() {
        Job job = db.scheduler().addJob("mail");

        assertThat(job.payload()).isEqualTo("{}");
        assertThat(job.queueName()).isNull();
        assertThat(job.maxAttempts()).isEqualTo(25);
        assertThat(job.priority()).isZero();
        assertThat(job.key()).isNull();
        assertThat(job.flags()).isEmpty();
        assertThat(job.runAt()).isEqualTo(job.createdAt());
    }

    @Test
    void aJobThatUnsafeDedupeLeavesAloneIsReportedAsItIs() {
        db.scheduler()
                .addJob("first", 1, JobSpec.builder().queueName("q").jobKey("k").build());

        Job job = db.scheduler()
                .addJob(
                        "second",
                        2,
                        JobSpec.builder()
                                .jobKey("k")
                                .jobKeyMode(JobKeyMode.UNSAFE_DEDUPE)
                                .build());

        assertThat(job.taskIdentifier()).isEqualTo("first");
        assertThat(job.queueName()).isEqualTo("q");
        assertThat(job.payload()).isEqualTo("1");
        assertThat(job.revision()).isEqualTo(1);
    }

    @Test
    void aRolledBackTransactionLeavesNoJobAndACommittedOneLeavesIt() {
        TransactionTemplate transaction = new TransactionTemplate(new JdbcTransactionManager(db.dataSource()));

        transaction.executeWithoutResult(status -> {
            db.scheduler().addJob("mail");
            assertThat(db.jobs()).isEqualTo(1);
            status.setRollbackOnly();
        });
        assertThat(db.jobs()).isZero();

        transaction.executeWithoutResult(status -> db.scheduler().addJob("mail"));
        assertThat(db.jobs()).isEqualTo(1);
    }

    @Test
    void withoutATransactionTheJobIsCommittedEvenOnAPoolThatDoesNotAutoCommit() {
        try (HikariDataSource pool = poolWithoutAutoCommit()) {
            WorkerClient.jobScheduler(pool, db.schema(), db.codec()).addJob("mail");
        }
        assertThat(db.jobs()).isEqualTo(1);
    }

    @Test
    void aRolledBackTransactionOnAPoolThatDoesNotAutoCommitLeavesNoJob() {
        try (HikariDataSource pool = poolWithoutAutoCommit()) {
            new TransactionTemplate(new JdbcTransactionManager(pool)).executeWithoutResult(status -> {
                WorkerClient.jobScheduler(pool, db.schema(), db.codec()).addJob("mail");
                status.setRollbackOnly();
            });
        }
        assertThat(db.jobs()).isZero();
    }

    private static HikariDataSource poolWithoutAutoCommit() {
        HikariConfig config = TestSchema.poolConfig(TestPostgres.jdbcUrl(), 2);
        config.setAutoCommit(false);
        return new HikariDataSource(config);
    }

    @Test
    void argumentsAreNamedBeforeAnySql() {
        var scheduler = WorkerClient.jobScheduler(db.dataSource(), new WorkerSchema("no_such_schema"), db.codec());

        assertThatIllegalArgumentException()
                .isThrownBy(() -> scheduler.addJob("x".repeat(129)))
                .withMessageContaining("identifier")
                .withMessageContaining("128");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> scheduler.addJob((String) null))
                .withMessageContaining("identifier");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> scheduler.addJob("mail", 1, null))
                .withMessageContaining("spec");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> scheduler.addJob("mail", JobSpec.DEFAULT))
                .withMessageContaining("payload");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> scheduler.addJob("mail", new Unwritable()))
                .withMessageContaining("payload");
    }

    static class Unwritable {
        public String getName() {
            throw new IllegalStateException("on purpose");
        }
    }

    @Test
    void aMissingSchemaIsADataAccessExceptionThatNamesTheTask() {
        var scheduler = WorkerClient.jobScheduler(db.dataSource(), new WorkerSchema("no_such_schema"), db.codec());

        assertThatThrownBy(() -> scheduler.addJob("mail"))
                .isInstanceOf(DataAccessException.class)
                .hasMessageContaining("add a job of task \"mail\"")
                .hasMessageContaining("no_such_schema");
        assertThat(db.dataSource().getHikariPoolMXBean().getActiveConnections()).isZero();
    }

    @Test
    void payloadsSurviveUnchanged() {
        for (Object payload : List.of(
                "text",
                12.5,
                true,
                List.of(1, "two", Map.of("three", 3)),
                Map.of("umlaut", "\u00e4\u20ac\uD83D\uDE00"))) {
            Job job = db.scheduler().addJob("mail", payload);
            assertThat(job.payload()).isEqualTo(db.codec().encode("payload", payload));
        }
    }

    /** Whose codec writes what is no JSON. */
    private record Raw(@JsonRawValue String raw) {}

    @Test
    void noErrorQuotesAPayload() {
        JobRequest good = JobRequest.of("work", new Raw("1"), JobSpec.DEFAULT);
        JobRequest bad = JobRequest.of("work", new Raw("SECRET"), JobSpec.DEFAULT);
        JobRequest queued = JobRequest.of(
                "work", new Raw("SECRET"), JobSpec.builder().queueName("q").build());
        JobRequest keyed = JobRequest.of(
                "work", new Raw("SECRET"), JobSpec.builder().jobKey("k").build());
        db.scheduler().addJob("work", new Raw("1"));

        List<ThrowingCallable> adds = List.of(
                () -> db.scheduler().addJob("work", new Raw("SECRET")),
                () -> db.scheduler().addJobs(List.of(good, bad)),
                () -> db.scheduler().addJobs(List.of(good, queued)),
                () -> db.scheduler().addJobs(List.of(good, keyed)));

        assertThat(adds)
                .allSatisfy(add -> assertThatThrownBy(add)
                        .isInstanceOf(DataAccessException.class)
                        .satisfies(error -> assertThat(stackTraceOf(error)).doesNotContain("SECRET")));
        assertThat(db.jobs()).isEqualTo(1);
    }

    private static String stackTraceOf(Throwable error) {
        StringWriter text = new StringWriter();
        error.printStackTrace(new PrintWriter(text));
        return text.toString();
    }
}
