package dev.pgworker.autoconfigure;

import java.util.List;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.data.jpa.test.autoconfigure.DataJpaTest;
import org.springframework.boot.jdbc.test.autoconfigure.JdbcTest;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;

import dev.pgworker.Worker;
import dev.pgworker.autoconfigure.testing.Greetings;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

/** In Spring Boot's slices for databases the schema is there before the application's migrations, and nothing runs. */
class SliceTest {

    private static final String JDBC = "slice_jdbc" + ProcessHandle.current().pid();
    private static final String JPA = "slice_jpa" + ProcessHandle.current().pid();

    @SpringBootApplication
    static class Application {

        @Configuration(proxyBeanMethods = false)
        static class Beans {

            @Bean
            Greetings greetings() {
                return new Greetings();
            }
        }
    }

    private static void use(String schema, DynamicPropertyRegistry registry) {
        registry.add("spring.datasource.url", TestPostgres::jdbcUrl);
        registry.add("spring.flyway.default-schema", () -> schema + "_app");
        registry.add("spring.flyway.locations", () -> "classpath:db/slice");
        registry.add("spring.flyway.placeholders.worker", () -> schema);
        registry.add("pgworker.schema.name", () -> schema);
        registry.add("pgworker.crontab", () -> "* * * * * hello");
    }

    @AfterAll
    static void dropSchemas() {
        JdbcClient jdbc = JdbcClient.create(new DriverManagerDataSource(TestPostgres.jdbcUrl()));
        for (String schema : List.of(JDBC, JPA)) {
            jdbc.sql("drop schema if exists " + schema + " cascade").update();
            jdbc.sql("drop schema if exists " + schema + "_app cascade").update();
        }
    }

    @Nested
    @JdbcTest
    class OfJdbc {

        @DynamicPropertySource
        static void properties(DynamicPropertyRegistry registry) {
            use(JDBC, registry);
        }

        @Test
        void hasTheSchemaAndAddsJobsInItsTransaction(
                @Autowired ApplicationContext context, @Autowired JdbcClient jdbc, @Autowired JobScheduler jobs) {
            jobs.addJob("hello");

            assertThat(jdbc.sql("select count(*) from " + JDBC + ".jobs")
                            .query(Integer.class)
                            .single())
                    .as("that of the migration and this one")
                    .isEqualTo(2);
            assertThat(context.getBeanNamesForType(Worker.class)).isEmpty();
        }
    }

    @Nested
    @DataJpaTest
    class OfJpa {

        @DynamicPropertySource
        static void properties(DynamicPropertyRegistry registry) {
            use(JPA, registry);
        }

        @Test
        void hasTheSchema(@Autowired ApplicationContext context, @Autowired JdbcClient jdbc) {
            assertThat(jdbc.sql("select count(*) from " + JPA + ".jobs")
                            .query(Integer.class)
                            .single())
                    .isEqualTo(1);
            assertThat(context.getBeanNamesForType(Worker.class)).isEmpty();
        }
    }
}
