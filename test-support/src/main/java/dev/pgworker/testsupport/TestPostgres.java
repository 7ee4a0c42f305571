package dev.pgworker.testsupport;

import java.io.IOException;
import java.io.UncheckedIOException;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import org.testcontainers.postgresql.PostgreSQLContainer;

/**
 * A real PostgreSQL server, one for each JVM, that lives until the JVM ends.
 *
 * <p>In this order: the server of the environment variable {@code PGWORKER_TEST_JDBC_URL} (its user must be a
 * superuser and its database may be littered), a container when {@code PGWORKER_TEST_DOCKER} is {@code true}, otherwise
 * embedded binaries on a free port of the loopback interface.
 */
public final class TestPostgres {

    private TestPostgres() {}

    /** Returns the JDBC URL of the server, user and password included; starts the server on the first call. */
    public static String jdbcUrl() {
        return Holder.URL;
    }

    /** Defers the start of the server until somebody needs it. */
    private static final class Holder {
        static final String URL = start();

        private static String start() {
            String given = System.getenv("PGWORKER_TEST_JDBC_URL");
            if (given != null && !given.isBlank()) {
                return given;
            }
            if (Boolean.parseBoolean(System.getenv("PGWORKER_TEST_DOCKER"))) {
                return startContainer();
            }
            return startEmbedded();
        }

        @SuppressWarnings("resource") // lives as long as the JVM; Testcontainers removes it
        private static String startContainer() {
            PostgreSQLContainer container = new PostgreSQLContainer("postgres:18");
            container.start();
            String separator = container.getJdbcUrl().contains("?") ? "&" : "?";
            return container.getJdbcUrl() + separator + "user=" + container.getUsername() + "&password="
                    + container.getPassword();
        }

        private static String startEmbedded() {
            try {
                // The builder registers a shutdown hook that stops the server and removes its files.
                EmbeddedPostgres server = EmbeddedPostgres.builder()
                        .setServerConfig("max_connections", "300")
                        .start();
                return server.getJdbcUrl("postgres", "postgres");
            } catch (IOException e) {
                throw new UncheckedIOException("The embedded PostgreSQL did not start", e);
            }
        }
    }
}
