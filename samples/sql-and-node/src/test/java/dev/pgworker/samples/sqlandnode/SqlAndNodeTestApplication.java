package dev.pgworker.samples.sqlandnode;

import org.springframework.boot.SpringApplication;

import dev.pgworker.testsupport.EmbeddedDatabase;

/** Starts the sample with an embedded PostgreSQL unless {@code spring.datasource.url} names another. */
final class SqlAndNodeTestApplication {

    private SqlAndNodeTestApplication() {}

    public static void main(String[] args) {
        SpringApplication application = new SpringApplication(SqlAndNodeApplication.class);
        application.addInitializers(new EmbeddedDatabase());
        application.run(args);
    }
}
