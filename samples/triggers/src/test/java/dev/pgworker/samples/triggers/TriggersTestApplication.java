package dev.pgworker.samples.triggers;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.context.ApplicationListener;
import org.springframework.jdbc.core.simple.JdbcClient;

import dev.pgworker.testsupport.EmbeddedDatabase;

/**
 * Starts the sample with an embedded PostgreSQL unless {@code spring.datasource.url} names another, and inserts a user.
 */
final class TriggersTestApplication {

    private TriggersTestApplication() {}

    public static void main(String[] args) {
        SpringApplication application = new SpringApplication(TriggersApplication.class);
        application.addInitializers(new EmbeddedDatabase());
        application.addListeners((ApplicationListener<ApplicationReadyEvent>) ready -> ready.getApplicationContext()
                .getBean(JdbcClient.class)
                .sql("insert into users (name, email) values ('Ada', 'ada@example.org')")
                .update());
        application.run(args);
    }
}
