package dev.pgworker.test;

import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;

import com.zaxxer.hikari.HikariDataSource;
import org.springframework.jdbc.core.simple.JdbcClient;

import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.testsupport.TestPostgres;

/** Schemas for jobs, each new and installed. */
final class WorkerDatabase {

    private static final AtomicInteger counter = new AtomicInteger();

    private static final HikariDataSource pool = pool();

    private WorkerDatabase() {}

    private static HikariDataSource pool() {
        HikariDataSource pool = new HikariDataSource();
        pool.setJdbcUrl(TestPostgres.jdbcUrl());
        return pool;
    }

    static DataSource dataSource() {
        return pool;
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
