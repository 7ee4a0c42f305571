package dev.pgworker.samples.secured;

import org.springframework.boot.SpringApplication;

import dev.pgworker.testsupport.EmbeddedDatabase;

/** Starts the sample with an embedded PostgreSQL unless {@code spring.datasource.url} names another. */
final class SecuredTestApplication {

    private SecuredTestApplication() {}

    public static void main(String[] args) {
        SpringApplication application = new SpringApplication(SecuredApplication.class);
        application.addInitializers(new EmbeddedDatabase());
        application.run(args);
    }
}
