package dev.pgworker.samples.quickstart;

import org.springframework.boot.SpringApplication;

import dev.pgworker.testsupport.EmbeddedDatabase;

/** Starts the quickstart with an embedded PostgreSQL unless {@code spring.datasource.url} names another. */
final class QuickstartTestApplication {

    private QuickstartTestApplication() {}

    public static void main(String[] args) {
        SpringApplication application = new SpringApplication(QuickstartApplication.class);
        application.addInitializers(new EmbeddedDatabase());
        application.run(args);
    }
}
