package dev.pgworker.guide;

import java.util.List;

import com.zaxxer.hikari.HikariDataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.springframework.jdbc.core.simple.JdbcClient;

import dev.pgworker.Worker;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;

/** The guide's application without Spring Boot works. */
class PlainApplicationTest {

    private final WorkerSchema schema =
            new WorkerSchema("plain" + ProcessHandle.current().pid());
    private final HikariDataSource dataSource = new HikariDataSource();

    PlainApplicationTest() {
        dataSource.setJdbcUrl(TestPostgres.jdbcUrl());
    }

    @AfterEach
    void drop() {
        JdbcClient.create(dataSource)
                .sql("drop schema if exists " + schema.name() + " cascade")
                .update();
        dataSource.close();
    }

    @Test
    void whatIsDueRunsOnce() throws InterruptedException {
        new SchemaMigrator(dataSource, schema).migrate();
        JobScheduler jobs = PlainApplication.scheduler(dataSource, schema);
        jobs.addJobs(
                PlainApplication.HELLO,
                List.of(new PlainApplication.Greeting("Ada"), new PlainApplication.Greeting("Bob")));
        Worker worker = PlainApplication.worker(dataSource, schema);

        long ran = worker.runOnce();

        assertThat(ran).isEqualTo(2);
    }
}
