package dev.pgworker.samples.dashboard;

import org.springframework.boot.SpringApplication;

import dev.pgworker.testsupport.EmbeddedDatabase;

/** Starts the shop with an embedded PostgreSQL unless {@code spring.datasource.url} names another. */
final class DashboardTestApplication {

    private DashboardTestApplication() {}

    public static void main(String[] args) {
        SpringApplication application = new SpringApplication(DashboardApplication.class);
        application.addInitializers(new EmbeddedDatabase());
        application.run(args);
    }
}
