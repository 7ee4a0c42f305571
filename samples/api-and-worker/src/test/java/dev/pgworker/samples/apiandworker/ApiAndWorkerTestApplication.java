package dev.pgworker.samples.apiandworker;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.context.ApplicationListener;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.event.ContextClosedEvent;

import dev.pgworker.testsupport.EmbeddedDatabase;

/**
 * Starts the API with an embedded PostgreSQL, unless {@code spring.datasource.url} names another, and then the worker in a
 * process of its own, which ends with the API.
 */
final class ApiAndWorkerTestApplication {

    private ApiAndWorkerTestApplication() {}

    public static void main(String[] args) {
        SpringApplication api = new SpringApplication(ApiAndWorkerApplication.class);
        api.setAdditionalProfiles("api");
        api.addInitializers(new EmbeddedDatabase());
        api.addListeners((ApplicationListener<ApplicationReadyEvent>) ready -> {
            ConfigurableApplicationContext context = ready.getApplicationContext();
            Process worker = startWorker(context.getEnvironment().getRequiredProperty("spring.datasource.url"));
            context.addApplicationListener((ApplicationListener<ContextClosedEvent>) closed -> stop(worker));
        });
        api.run(args);
    }

    private static Process startWorker(String databaseUrl) {
        ProcessBuilder worker = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        ApiAndWorkerApplication.class.getName())
                .inheritIO();
        // Everybody may read a command line; an environment is private.
        worker.environment().put("CLASSPATH", System.getProperty("java.class.path"));
        worker.environment().put("SPRING_PROFILES_ACTIVE", "worker");
        worker.environment().put("SPRING_DATASOURCE_URL", databaseUrl);
        try {
            return worker.start();
        } catch (IOException e) {
            throw new UncheckedIOException("The worker did not start", e);
        }
    }

    /** Waits for the end, because the database stops next. */
    private static void stop(Process worker) {
        worker.destroy();
        try {
            worker.waitFor();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
