package dev.pgworker.autoconfigure;

import java.util.List;
import javax.sql.DataSource;

import org.flywaydb.core.Flyway;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.flyway.autoconfigure.FlywayAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.datasource.DriverManagerDataSource;

import dev.pgworker.autoconfigure.testing.FailureAnalyses;
import dev.pgworker.autoconfigure.testing.RecordedEvents;
import dev.pgworker.autoconfigure.testing.TestDatabase;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.task.JobHandler;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

/** The schema among the application's own migrations, and with users of different rights. */
class SchemaInApplicationTest {

    @RegisterExtension
    final TestDatabase db = new TestDatabase();

    private final RecordedEvents events = new RecordedEvents();

    @AfterEach
    void dropRole() {
        if (roleExists()) {
            db.sql("drop owned by {schema}_user cascade").update();
            db.sql("drop role {schema}_user").update();
        }
    }

    private boolean roleExists() {
        return !db.sql("select 1 from pg_roles where rolname = '{schema}_user'")
                .query()
                .listOfRows()
                .isEmpty();
    }

    private void createRole() {
        db.sql("create role {schema}_user login password 'secret'").update();
    }

    static class Orders {

        @JobHandler("order")
        void order() {}
    }

    /** Registered before every auto-configuration: the first bean to need the application's tables. */
    static class ReadsOrders {

        ReadsOrders(JdbcClient jdbc, @Value("${pgworker.schema.name}") String schema) {
            jdbc.sql("select count(*) from " + schema + "_app.orders")
                    .query(Integer.class)
                    .single();
        }
    }

    private ApplicationContextRunner application() {
        return db.runner().withBean(Orders.class).withBean(RecordedEvents.class, () -> events);
    }

    private ApplicationContextRunner asRole(ApplicationContextRunner runner) {
        return runner.withPropertyValues(
                "spring.datasource.url=" + urlWithoutUser(),
                "spring.datasource.username=" + db.schema() + "_user",
                "spring.datasource.password=secret");
    }

    private static String urlWithoutUser() {
        return TestPostgres.jdbcUrl().split("\\?", 2)[0];
    }

    @Test
    void theApplicationsMigrationsRunAfterOursAndMayAddJobs() {
        application()
                .withUserConfiguration(ReadsOrders.class)
                .withConfiguration(AutoConfigurations.of(FlywayAutoConfiguration.class))
                .withPropertyValues(
                        "spring.flyway.locations=classpath:db/apptest",
                        "spring.flyway.default-schema=" + db.schema() + "_app",
                        "spring.flyway.placeholders.worker=" + db.schema())
                .run(context -> {
                    assertThat(context).hasSingleBean(Flyway.class);
                    assertThat(events.await(JobCompleted.class).job().payload()).contains("1");
                });
    }

    @Test
    void anApplicationWithoutMigrationsGetsNoFlyway() {
        application().run(context -> assertThat(context).doesNotHaveBean(Flyway.class));
    }

    @Test
    void modeValidateRefusesAMissingSchema() {
        application().withPropertyValues("pgworker.schema.mode=validate").run(context -> {
            FailureAnalysis analysis = FailureAnalyses.of(context.getStartupFailure());
            assertThat(analysis.getDescription()).contains("is not installed");
            assertThat(analysis.getAction()).contains("pgworker.schema.mode=migrate");
        });
        assertThat(db.isInstalled()).isFalse();
    }

    @Test
    void modeNoneLeavesTheDatabaseAlone() {
        application()
                .withPropertyValues("pgworker.schema.mode=none", "pgworker.enabled=false")
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThat(db.isInstalled()).isFalse();
                });
    }

    @Test
    void aUserWhoMayNotCreateTheSchemaIsToldWhatToDo() {
        createRole();
        asRole(application()).run(context -> {
            FailureAnalysis analysis = FailureAnalyses.of(context.getStartupFailure());
            assertThat(analysis.getDescription()).contains("may not create schema");
            assertThat(analysis.getAction()).contains("CREATE SCHEMA").contains("pgworker.schema.user");
        });
    }

    @Test
    void aUserUnknownToTheServerIsToldWhatToDo() {
        asRole(application()).run(context -> {
            FailureAnalysis analysis = FailureAnalyses.of(context.getStartupFailure());
            assertThat(analysis.getDescription()).contains("refused the login").contains(db.schema() + "_user");
            assertThat(analysis.getAction()).contains("spring.datasource.username");
        });
    }

    @Test
    void anUnknownMigrationUserIsToldWhatToDo() {
        application()
                .withPropertyValues("pgworker.schema.user=" + db.schema() + "_user")
                .run(context -> {
                    FailureAnalysis analysis = FailureAnalyses.of(context.getStartupFailure());
                    assertThat(analysis.getDescription())
                            .contains("refused the login")
                            .contains(db.schema() + "_user");
                    assertThat(analysis.getAction()).contains("pgworker.schema.user");
                });
    }

    @Test
    void anotherUserMigratesAndTheApplicationsOnlyWorks() {
        createRole();
        db.sql("grant create on database postgres to {schema}_user").update();
        application()
                .withPropertyValues("pgworker.schema.user=" + db.schema() + "_user", "pgworker.schema.password=secret")
                .run(context -> {
                    context.getBean(JobScheduler.class).addJob("order");
                    events.await(JobCompleted.class);
                });
        assertThat(db.sql("select tableowner from pg_tables where schemaname = '{schema}' and tablename ="
                                + " '_private_jobs'")
                        .query(String.class)
                        .single())
                .isEqualTo(db.schema() + "_user");
    }

    @Test
    void aUserWhoMayOnlyUseAnUpToDateSchemaRunsJobs() {
        db.runner().run(context -> assertThat(context).hasNotFailed());
        createRole();
        db.sql("grant usage on schema {schema} to {schema}_user").update();
        db.sql("grant select, insert, update, delete on all tables in schema {schema} to {schema}_user")
                .update();
        db.sql("grant usage on all sequences in schema {schema} to {schema}_user")
                .update();
        db.sql("grant execute on all functions in schema {schema} to {schema}_user")
                .update();
        for (String table : List.of("jobs", "job_queues", "tasks", "known_crontabs")) {
            db.sql("create policy worker on {schema}._private_" + table + " to {schema}_user using (true)")
                    .update();
        }

        asRole(application()).run(context -> {
            context.getBean(JobScheduler.class).addJob("order");
            events.await(JobCompleted.class);
        });
    }

    @Test
    void separateCredentialsNeedAUrlWhereTheApplicationsIsUnknown() {
        application()
                .withBean("mine", DataSource.class, () -> new DriverManagerDataSource(TestPostgres.jdbcUrl()))
                .withPropertyValues("pgworker.schema.user=somebody")
                .run(context -> {
                    FailureAnalysis analysis = FailureAnalyses.of(context.getStartupFailure());
                    assertThat(analysis.getDescription()).contains("pgworker.schema.url");
                });
    }
}
