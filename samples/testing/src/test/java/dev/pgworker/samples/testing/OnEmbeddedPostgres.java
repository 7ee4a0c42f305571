package dev.pgworker.samples.testing;

import java.io.IOException;
import java.io.UncheckedIOException;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;

/** Gives a test class an embedded PostgreSQL: one for all of them, which ends with the JVM. */
interface OnEmbeddedPostgres {

    @DynamicPropertySource
    static void database(DynamicPropertyRegistry registry) {
        registry.add("spring.datasource.url", () -> Server.URL);
    }

    class Server {

        static final String URL = start();

        private static String start() {
            try {
                return EmbeddedPostgres.start().getJdbcUrl("postgres", "postgres");
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }
}
