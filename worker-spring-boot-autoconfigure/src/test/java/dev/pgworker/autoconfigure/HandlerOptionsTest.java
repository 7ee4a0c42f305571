package dev.pgworker.autoconfigure;

import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;

import jakarta.persistence.EntityManager;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.hibernate.autoconfigure.HibernateJpaAutoConfiguration;
import org.springframework.boot.persistence.autoconfigure.EntityScan;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.transaction.support.TransactionSynchronizationManager;

import dev.pgworker.autoconfigure.testing.RecordedEvents;
import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.task.BatchResult;
import dev.pgworker.task.ForbiddenFlags;
import dev.pgworker.task.JobHandler;
import dev.pgworker.task.RetryDelay;

import static org.assertj.core.api.Assertions.assertThat;

/** The options of annotated handlers and what they need from the application. */
class HandlerOptionsTest {

    @RegisterExtension
    final TestDatabase db = new TestDatabase().installed();

    private final RecordedEvents events = new RecordedEvents();

    private ApplicationContextRunner runner() {
        return db.runner().withBean("events", RecordedEvents.class, () -> events);
    }

    static class Effects {

        private final JdbcClient jdbc;
        private boolean failed;

        Effects(JdbcClient jdbc) {
            this.jdbc = jdbc;
        }

        @JobHandler(value = "effect", transactional = true, retryDelay = AtOnce.class)
        void effect(int number) {
            assertThat(TransactionSynchronizationManager.isActualTransactionActive())
                    .isTrue();
            jdbc.sql("insert into effect values (?)").param(number).update();
            if (!failed) {
                failed = true;
                throw new IllegalStateException("on purpose");
            }
        }
    }

    static class AtOnce implements RetryDelay {
        @Override
        public Duration delay(Job job, Throwable error) {
            return Duration.ZERO;
        }
    }

    @Test
    void aTransactionalHandlerUsesTheApplicationsTransactionManager() {
        runner().withBean(Effects.class)
                .withPropertyValues(
                        "spring.datasource.hikari.connection-init-sql=set search_path = " + db.schema() + ", public")
                .run(context -> {
                    db.sql("create table {schema}.effect (number int)").update();
                    context.getBean(JobScheduler.class).addJob("effect", 1);

                    events.await(JobFailed.class);
                    events.await(JobCompleted.class);
                    assertThat(db.sql("select number from {schema}.effect")
                                    .query(Integer.class)
                                    .list())
                            .containsExactly(1);
                });
    }

    @EntityScan
    static class JpaEffects {

        private final EntityManager entities;
        private boolean failed;

        JpaEffects(EntityManager entities) {
            this.entities = entities;
        }

        @JobHandler(value = "effect", transactional = true, retryDelay = AtOnce.class)
        void effect(int number) {
            TransactionsTest.Note note = new TransactionsTest.Note();
            note.id = number;
            entities.persist(note);
            entities.flush();
            if (!failed) {
                failed = true;
                throw new IllegalStateException("on purpose");
            }
        }
    }

    @Test
    void aTransactionalHandlerWorksWithJpa() {
        runner().withConfiguration(AutoConfigurations.of(HibernateJpaAutoConfiguration.class))
                .withBean(JpaEffects.class)
                .withPropertyValues(
                        "spring.jpa.hibernate.ddl-auto=update",
                        "spring.jpa.properties.hibernate.default_schema=" + db.schema())
                .run(context -> {
                    context.getBean(JobScheduler.class).addJob("effect", 1);

                    events.await(JobFailed.class);
                    events.await(JobCompleted.class);
                    assertThat(db.sql("select id from {schema}.note")
                                    .query(Integer.class)
                                    .list())
                            .containsExactly(1);
                    assertThat(db.jobs()).isZero();
                });
    }

    static class Failing {

        @JobHandler(value = "failing", retryDelay = Configured.class)
        void fail() {
            throw new IllegalStateException("on purpose");
        }
    }

    static class Configured implements RetryDelay {

        private final Duration delay;

        Configured(Duration delay) {
            this.delay = delay;
        }

        @Override
        public Duration delay(Job job, Throwable error) {
            return delay;
        }
    }

    @Test
    void aRetryDelayMayBeABean() {
        runner().withBean(Failing.class)
                .withBean(Configured.class, () -> new Configured(Duration.ofSeconds(55)))
                .run(context -> {
                    context.getBean(JobScheduler.class).addJob("failing");

                    events.await(JobFailed.class);
                    assertThat(db.sql("select round(extract(epoch from run_at - updated_at)) from {schema}.jobs")
                                    .query(Integer.class)
                                    .single())
                            .isEqualTo(55);
                });
    }

    @Test
    void aRetryDelayThatCannotBeMadeStopsTheStart() {
        runner().withBean(Failing.class)
                .run(context -> assertThat(context)
                        .hasFailed()
                        .getFailure()
                        .rootCause()
                        .hasMessageContaining("Failing.fail()")
                        .hasMessageContaining("retryDelay"));
    }

    static class Batches {

        @JobHandler("batch")
        BatchResult run(List<Integer> items) {
            return BatchResult.forEach(items, item -> {
                if (item > 1) {
                    throw new IllegalStateException("on purpose");
                }
            });
        }
    }

    @Test
    void anAnnotatedMethodMayHandleBatches() {
        runner().withBean(Batches.class).run(context -> {
            context.getBean(JobScheduler.class).addBatchJob("batch", List.of(1, 2), JobSpec.DEFAULT);

            events.await(JobFailed.class);
            assertThat(db.sql("select payload::text from {schema}._private_jobs")
                            .query(String.class)
                            .single())
                    .isEqualTo("[2]");
        });
    }

    static class Anything {

        @JobHandler("anything")
        void run(String name) {}
    }

    @Test
    void forbiddenFlagsComeFromThePropertyAndFromBeans() {
        AtomicReference<Set<String>> moving = new AtomicReference<>(Set.of("b"));
        runner().withBean(Anything.class)
                .withBean(ForbiddenFlags.class, () -> moving::get)
                .withPropertyValues("pgworker.forbidden-flags=a,c")
                .run(context -> {
                    JobScheduler jobs = context.getBean(JobScheduler.class);
                    for (String flag : List.of("a", "b", "c", "d")) {
                        jobs.addJob(
                                "anything", flag, JobSpec.builder().flags(flag).build());
                    }
                    assertThat(events.await(JobCompleted.class).job().payload()).isEqualTo("\"d\"");

                    moving.set(Set.of());
                    jobs.addJob("anything", "e");
                    assertThat(List.of(
                                    events.await(JobCompleted.class).job().payload(),
                                    events.await(JobCompleted.class).job().payload()))
                            .containsExactlyInAnyOrder("\"b\"", "\"e\"");
                    assertThat(db.jobs()).isEqualTo(2);
                });
    }
}
