package dev.pgworker.testsupport;

import java.util.Map;

import org.springframework.beans.factory.support.DefaultListableBeanFactory;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.context.support.GenericApplicationContext;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.MapPropertySource;

/** Starts a PostgreSQL for the application unless it has been given one, and stops it as the last of all. */
public final class EmbeddedDatabase implements ApplicationContextInitializer<GenericApplicationContext> {

    @Override
    public void initialize(GenericApplicationContext context) {
        ConfigurableEnvironment environment = context.getEnvironment();
        if (!environment.containsProperty("spring.datasource.url")) {
            String url = start(context.getDefaultListableBeanFactory());
            environment
                    .getPropertySources()
                    .addLast(new MapPropertySource("embedded database", Map.of("spring.datasource.url", url)));
        }
    }

    private static String start(DefaultListableBeanFactory beans) {
        TestServer server = TestServer.start();
        // Beans are destroyed in reverse order of their registration.
        beans.registerDisposableBean("embeddedDatabase", server::close);
        return server.jdbcUrl();
    }
}
