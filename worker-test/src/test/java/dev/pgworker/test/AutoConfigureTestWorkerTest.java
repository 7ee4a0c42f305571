package dev.pgworker.test;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

import jakarta.persistence.Entity;
import jakarta.persistence.EntityManager;
import jakarta.persistence.Id;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.ClassOrderer;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestClassOrder;
import org.junit.jupiter.api.TestMethodOrder;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.data.jpa.autoconfigure.DataJpaRepositoriesAutoConfiguration;
import org.springframework.boot.data.jpa.test.autoconfigure.DataJpaTest;
import org.springframework.boot.hibernate.autoconfigure.HibernateJpaAutoConfiguration;
import org.springframework.boot.jdbc.test.autoconfigure.JdbcTest;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.context.annotation.Import;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;
import org.springframework.test.context.transaction.TestTransaction;
import org.springframework.transaction.annotation.Propagation;
import org.springframework.transaction.annotation.Transactional;

import dev.pgworker.Worker;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.Task;
import dev.pgworker.task.JobHandler;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** The kit in an application with Spring Boot, whole and in slices, all on one schema. */
@TestClassOrder(ClassOrderer.OrderAnnotation.class)
class AutoConfigureTestWorkerTest {

    private static @Nullable Worker inTheBackground;

    private static final Task<String> HELLO = Task.of("hello", String.class);
    private static final String SCHEMA = "b" + ProcessHandle.current().pid();

    @SpringBootConfiguration
    @EnableAutoConfiguration(
            exclude = {HibernateJpaAutoConfiguration.class, DataJpaRepositoriesAutoConfiguration.class})
    static class Application {}

    static class Handlers {

        final List<String> greeted = Collections.synchronizedList(new ArrayList<>());

        @JobHandler("hello")
        void hello(String name) {
            greeted.add(name);
        }
    }

    @Entity
    static class Person {

        @Id
        String name;
    }

    /** Where all of these find the database. */
    interface Database {

        @DynamicPropertySource
        static void database(DynamicPropertyRegistry registry) {
            registry.add("spring.datasource.url", TestPostgres::jdbcUrl);
            registry.add("spring.datasource.hikari.minimum-idle", () -> 0);
            registry.add("spring.jpa.hibernate.ddl-auto", () -> "create");
            registry.add("pgworker.schema.name", () -> SCHEMA);
        }
    }

    @Nested
    @SpringBootTest(classes = Application.class)
    @Import(Handlers.class)
    @AutoConfigureTestWorker(clearBeforeEach = true)
    @TestMethodOrder(MethodOrderer.OrderAnnotation.class)
    class InAnApplication implements Database {

        @Autowired
        TestWorker worker;

        @Autowired
        JobScheduler jobs;

        @Autowired
        Worker engine;

        @Autowired
        Handlers handlers;

        @Test
        @Order(1)
        void theTestDecidesWhenJobsRun() {
            jobs.addJob(HELLO, "Ada");

            assertThat(engine.isRunning()).isFalse();
            assertThat(worker.jobs()).hasEnqueued(HELLO).withPayload("Ada").due();
            assertThat(worker.runDue()).hasSize(1).allCompleted();
            assertThat(handlers.greeted).containsExactly("Ada");
            jobs.addJob(HELLO, "left behind");
        }

        @Test
        @Order(2)
        void theNextTestBeginsWithoutJobsAndRuns() {
            assertThat(worker.jobs()).isEmpty();
            assertThat(worker.runs()).isEmpty();
        }

        @Test
        @Order(3)
        void theTestMayStartTheWorker() {
            worker.start();
            try {
                assertThat(worker.await(jobs.addJob(HELLO, "Bob"))).isCompleted();
            } finally {
                worker.stop();
            }
        }
    }

    @Nested
    @Order(1)
    @SpringBootTest(classes = Application.class)
    @Import(Handlers.class)
    @AutoConfigureTestWorker(autoStartup = true)
    class InTheBackground implements Database {

        @Autowired
        TestWorker worker;

        @Autowired
        JobScheduler jobs;

        @Test
        void theTestWaits(@Autowired Worker engine) {
            Job job = jobs.addJob(HELLO, "Ada");

            assertThat(worker.await(job)).isCompleted();
            inTheBackground = engine;
        }
    }

    /** Spring keeps the context of another class in its cache. */
    @Nested
    @Order(2)
    @SpringBootTest(classes = Application.class, properties = "another=context")
    @Import(Handlers.class)
    @AutoConfigureTestWorker(clearBeforeEach = true)
    class BesideAnotherContext implements Database {

        @Autowired
        TestWorker worker;

        @Autowired
        JobScheduler jobs;

        @Test
        void theOtherWorkerIsPausedAndTakesNoJob() {
            Job job = jobs.addJob(HELLO, "Ada");

            assertThat(inTheBackground).isNotNull().matches(other -> !other.isRunning());
            assertThat(worker.await(job)).isCompleted();
            assertThat(worker.runs()).hasSize(1);
        }
    }

    @Nested
    @SpringBootTest(classes = Application.class, properties = "pgworker.enabled=false")
    @AutoConfigureTestWorker
    @Transactional
    class WithoutAWorker implements Database {

        @Autowired
        TestWorker worker;

        @Autowired
        JobScheduler jobs;

        @Test
        void jobsOfTheTestsTransactionAreSeen() {
            jobs.addJob(HELLO, "Ada");

            assertThat(worker.jobs()).hasEnqueued(HELLO).withPayload("Ada");
        }

        @Test
        @Transactional(propagation = Propagation.NOT_SUPPORTED)
        void noneCanBeRun() {
            assertThatThrownBy(() -> worker.runDue()).hasMessageContaining("pgworker.enabled");
        }
    }

    @Nested
    @SpringBootTest(
            classes = Application.class,
            properties = {"pgworker.instances.very-slow.tasks=hello", "pgworker.tasks=other"})
    @Import({Handlers.class, OtherHandlers.class})
    @AutoConfigureTestWorker(autoStartup = true, clearBeforeEach = true)
    class WithSeveralWorkers implements Database {

        @Autowired
        TestWorker worker;

        @Autowired
        @Qualifier("very-slow") TestWorker slow;

        @Autowired
        JobScheduler jobs;

        @Test
        void eachHasATestWorker() {
            assertThat(slow.await(jobs.addJob(HELLO, "Ada"))).isCompleted();
            assertThat(worker.await(jobs.addJob("other"))).isCompleted();
            assertThat(worker.runs()).hasSize(1);
            assertThat(slow.runs()).hasSize(1);

            slow.clear();

            assertThat(worker.await(jobs.addJob("other"))).isCompleted();
        }
    }

    static class OtherHandlers {

        @JobHandler("other")
        void other() {}
    }

    @Nested
    @JdbcTest
    @Import(Handlers.class)
    @AutoConfigureTestWorker(clearBeforeEach = true)
    class InAJdbcSlice implements Database {

        @Autowired
        TestWorker worker;

        @Autowired
        JobScheduler jobs;

        @Test
        void jobsThatAreRolledBackAreSeenAndCommittedOnesRun() {
            jobs.addJob(HELLO, "Ada");
            assertThat(worker.jobs()).hasEnqueued(HELLO).withPayload("Ada");
            assertThatThrownBy(() -> worker.runDue()).hasMessageContaining("TestTransaction");

            TestTransaction.flagForCommit();
            TestTransaction.end();

            assertThat(worker.runDue()).hasSize(1).allCompleted();
        }
    }

    @Nested
    @DataJpaTest
    @Import(Handlers.class)
    @AutoConfigureTestWorker(clearBeforeEach = true)
    class InAJpaSlice implements Database {

        @Autowired
        TestWorker worker;

        @Autowired
        JobScheduler jobs;

        @Autowired
        EntityManager entities;

        @Test
        void jobsOfTheTestsTransactionAreSeen() {
            Person person = new Person();
            person.name = "Ada";
            entities.persist(person);
            jobs.addJob(HELLO, "Ada");

            assertThat(worker.jobs()).hasEnqueued(HELLO).withPayload("Ada");
        }

        @Test
        void andRolledBack() {
            TestTransaction.end();

            assertThat(worker.jobs()).isEmpty();
        }
    }
}
