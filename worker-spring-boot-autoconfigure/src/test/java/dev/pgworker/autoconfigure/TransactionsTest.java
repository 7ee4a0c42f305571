package dev.pgworker.autoconfigure;

import jakarta.persistence.Entity;
import jakarta.persistence.EntityManager;
import jakarta.persistence.Id;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.hibernate.autoconfigure.HibernateJpaAutoConfiguration;
import org.springframework.boot.persistence.autoconfigure.EntityScan;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ApplicationEventPublisher;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.orm.jpa.JpaTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.event.TransactionalEventListener;

import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.job.JobScheduler;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Jobs added in the application's transactions. */
class TransactionsTest {

    @RegisterExtension
    final TestDatabase db = new TestDatabase().installed();

    static class Refused extends RuntimeException {
        private static final long serialVersionUID = 1L;
    }

    static class JdbcService {

        private final JobScheduler jobs;

        JdbcService(JobScheduler jobs) {
            this.jobs = jobs;
        }

        @Transactional
        void add(boolean refuse) {
            jobs.addJob("hello");
            if (refuse) {
                throw new Refused();
            }
        }
    }

    @Test
    void aJobIsPartOfAJdbcTransaction() {
        ApplicationContextRunner runner = db.runner().withBean(JdbcService.class);
        runner.run(this::isPartOfAJdbcTransaction);
    }

    @Test
    void aJobIsPartOfAJdbcTransactionWithoutAutoCommit() {
        db.runner()
                .withBean(JdbcService.class)
                .withPropertyValues("spring.datasource.hikari.auto-commit=false")
                .run(this::isPartOfAJdbcTransaction);
    }

    private void isPartOfAJdbcTransaction(ApplicationContext context) {
        assertThat(context.getBean(PlatformTransactionManager.class)).isInstanceOf(JdbcTransactionManager.class);
        JdbcService service = context.getBean(JdbcService.class);

        assertThatThrownBy(() -> service.add(true)).isInstanceOf(Refused.class);
        assertThat(db.jobs()).isZero();

        service.add(false);
        assertThat(db.jobs()).isEqualTo(1);

        context.getBean(JobScheduler.class).addJob("hello");
        assertThat(db.jobs()).isEqualTo(2);
    }

    record Ordered() {}

    static class OrderService {

        private final ApplicationEventPublisher events;

        OrderService(ApplicationEventPublisher events) {
            this.events = events;
        }

        @Transactional
        void order() {
            events.publishEvent(new Ordered());
        }
    }

    static class OrderListener {

        private final JobScheduler jobs;

        OrderListener(JobScheduler jobs) {
            this.jobs = jobs;
        }

        /** Spring calls it when the transaction is over, and yet shows it as active. */
        @TransactionalEventListener
        void confirm(Ordered ordered) {
            jobs.addJob("hello");
        }
    }

    @ParameterizedTest
    @CsvSource({"false, true", "false, false", "true, true", "true, false"})
    void aJobThatAListenerAddsAfterTheCommitIsKept(boolean jpa, boolean autoCommit) {
        db.runner()
                .withConfiguration(
                        jpa ? AutoConfigurations.of(HibernateJpaAutoConfiguration.class) : AutoConfigurations.of())
                .withPropertyValues(
                        "spring.datasource.hikari.auto-commit=" + autoCommit,
                        "spring.jpa.properties.hibernate.connection.provider_disables_autocommit=" + !autoCommit)
                .withBean(OrderService.class)
                .withBean(OrderListener.class)
                .run(context -> {
                    context.getBean(OrderService.class).order();
                    assertThat(db.jobs()).isEqualTo(1);
                });
    }

    @Entity(name = "note")
    static class Note {

        @Id
        int id;
    }

    @EntityScan
    static class JpaService {

        private final EntityManager entities;
        private final JobScheduler jobs;

        JpaService(EntityManager entities, JobScheduler jobs) {
            this.entities = entities;
            this.jobs = jobs;
        }

        @Transactional
        void add(int id, boolean refuse) {
            Note note = new Note();
            note.id = id;
            entities.persist(note);
            jobs.addJob("hello");
            if (refuse) {
                throw new Refused();
            }
        }
    }

    @Test
    void aJobIsPartOfAJpaTransaction() {
        db.runner()
                .withConfiguration(AutoConfigurations.of(HibernateJpaAutoConfiguration.class))
                .withUserConfiguration(JpaService.class)
                .withPropertyValues(
                        "spring.jpa.hibernate.ddl-auto=create",
                        "spring.jpa.open-in-view=false",
                        "spring.jpa.properties.hibernate.default_schema=" + db.schema() + "_app",
                        "spring.jpa.properties.hibernate.hbm2ddl.create_namespaces=true")
                .run(context -> {
                    assertThat(context.getBean(PlatformTransactionManager.class))
                            .isInstanceOf(JpaTransactionManager.class);
                    JpaService service = context.getBean(JpaService.class);

                    assertThatThrownBy(() -> service.add(1, true)).isInstanceOf(Refused.class);
                    assertThat(db.jobs()).isZero();

                    service.add(2, false);
                    assertThat(db.jobs()).isEqualTo(1);
                    assertThat(db.sql("select id from {schema}_app.note")
                                    .query(Integer.class)
                                    .list())
                            .containsExactly(2);
                });
    }
}
