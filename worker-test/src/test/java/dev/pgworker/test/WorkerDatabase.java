package dev.pgworker.test;

import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;

import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.datasource.DriverManagerDataSource;

import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.testsupport.TestPostgres;

/** Schemas for jobs, each new and installed. */
final class WorkerDatabase {

    private static final AtomicInteger counter = new AtomicInteger();

    private WorkerDatabase() {}

    static DataSource dataSource() {
        return new DriverManagerDataSource(TestPostgres.jdbcUrl());
    }

    static WorkerSchema newSchema() {
        WorkerSchema schema = new WorkerSchema("t" + ProcessHandle.current().pid() + "_" + counter.incrementAndGet());
        new SchemaMigrator(dataSource(), schema).migrate();
        return schema;
    }

    static void drop(WorkerSchema schema) {
        JdbcClient.create(dataSource())
                .sql(schema.in("drop schema {schema} cascade"))
                .update();
    }
}
