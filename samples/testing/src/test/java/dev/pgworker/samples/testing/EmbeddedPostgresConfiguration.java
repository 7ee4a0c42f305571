package dev.pgworker.samples.testing;

import java.io.IOException;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import org.springframework.boot.test.context.TestConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.test.context.DynamicPropertyRegistrar;

@TestConfiguration(proxyBeanMethods = false)
class EmbeddedPostgresConfiguration {

    /** One server for all contexts, which ends with the JVM. */
    private static EmbeddedPostgres server;

    @Bean
    DynamicPropertyRegistrar embeddedPostgres() throws IOException {
        String url = server().getJdbcUrl("postgres", "postgres");
        return registry -> registry.add("spring.datasource.url", () -> url);
    }

    private static synchronized EmbeddedPostgres server() throws IOException {
        if (server == null) {
            server = EmbeddedPostgres.start();
        }
        return server;
    }
}
