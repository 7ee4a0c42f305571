package dev.pgworker.samples.quickstart;

import java.util.Map;

import org.springframework.context.ApplicationContextInitializer;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.MapPropertySource;

import dev.pgworker.testsupport.TestPostgres;

/** Starts a PostgreSQL unless the application has been given one. */
final class EmbeddedDatabase implements ApplicationContextInitializer<ConfigurableApplicationContext> {

    @Override
    public void initialize(ConfigurableApplicationContext context) {
        ConfigurableEnvironment environment = context.getEnvironment();
        if (!environment.containsProperty("spring.datasource.url")) {
            environment
                    .getPropertySources()
                    .addLast(new MapPropertySource(
                            "embedded database", Map.of("spring.datasource.url", TestPostgres.jdbcUrl())));
        }
    }
}
