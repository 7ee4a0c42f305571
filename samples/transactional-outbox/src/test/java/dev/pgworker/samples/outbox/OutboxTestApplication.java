package dev.pgworker.samples.outbox;

import org.springframework.boot.SpringApplication;

import dev.pgworker.testsupport.EmbeddedDatabase;

/** Starts the sample with an embedded PostgreSQL unless {@code spring.datasource.url} names another. */
final class OutboxTestApplication {

    private OutboxTestApplication() {}

    public static void main(String[] args) {
        SpringApplication application = new SpringApplication(OutboxApplication.class);
        application.addInitializers(new EmbeddedDatabase());
        application.run(args);
    }
}
