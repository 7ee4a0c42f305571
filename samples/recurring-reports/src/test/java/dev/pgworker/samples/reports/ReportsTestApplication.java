package dev.pgworker.samples.reports;

import java.util.List;

import org.springframework.boot.SpringApplication;

import dev.pgworker.testsupport.EmbeddedDatabase;

/**
 * Starts the sample, after a pause, with an embedded PostgreSQL unless {@code spring.datasource.url} names another.
 */
final class ReportsTestApplication {

    private ReportsTestApplication() {}

    public static void main(String[] args) {
        SpringApplication application = new SpringApplication(ReportsApplication.class);
        application.addPrimarySources(List.of(Pause.class));
        application.addInitializers(new EmbeddedDatabase());
        application.run(args);
    }
}
