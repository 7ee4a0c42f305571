package dev.pgworker.samples.datasources;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Map;

import org.springframework.boot.SpringApplication;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.MapPropertySource;

import dev.pgworker.testsupport.EmbeddedDatabase;

/**
 * Starts the sample with an embedded PostgreSQL that has both databases, unless {@code spring.datasource.url} and {@code
 * app.reports-database.url} name others.
 */
final class DataSourcesTestApplication {

    private static final String REPORTS_URL = "app.reports-database.url";

    private DataSourcesTestApplication() {}

    public static void main(String[] args) {
        SpringApplication application = new SpringApplication(DataSourcesApplication.class);
        application.addInitializers(new EmbeddedDatabase(), context -> addReportsDatabase(context.getEnvironment()));
        application.run(args);
    }

    private static void addReportsDatabase(ConfigurableEnvironment environment) {
        if (environment.containsProperty(REPORTS_URL)) {
            return;
        }
        String url = environment.getRequiredProperty("spring.datasource.url");
        try (Connection connection = DriverManager.getConnection(url);
                Statement statement = connection.createStatement()) {
            statement.execute("create database reports");
        } catch (SQLException e) {
            throw new IllegalStateException("Name a database for reports with " + REPORTS_URL, e);
        }
        environment
                .getPropertySources()
                .addLast(new MapPropertySource(
                        "reports database", Map.of(REPORTS_URL, url.replaceFirst("/[^/?]*(\\?|$)", "/reports$1"))));
    }
}
