package dev.pgworker.testsupport;

import java.io.IOException;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.testcontainers.postgresql.PostgreSQLContainer;

/**
 * A real PostgreSQL server, one for each JVM, that lives until the JVM ends.
 *
 * <p>In this order: the server of the environment variable {@code PGWORKER_TEST_JDBC_URL} (its user must be a
 * superuser and its database may be littered), a container when {@code PGWORKER_TEST_DOCKER} is {@code true}, otherwise
 * embedded binaries on a free port of the loopback interface. These are the ones of the class path, or those in the jar
 * that the system property {@code pgworker.test.postgres-binaries} names; the image of the container is that of {@code
 * pgworker.test.postgres-image}.
 */
public final class TestPostgres {

    private static final Pattern SERVER_AND_DATABASE =
            Pattern.compile("(?<server>jdbc:postgresql://[^/?]*/)(?<database>[^?]*)(?<parameters>.*)");

    private TestPostgres() {}

    /** Returns the JDBC URL of the server, user and password included; starts the server on the first call. */
    public static String jdbcUrl() {
        return Holder.URL;
    }

    /**
     * Creates an empty database on that server, for as long as the JVM lives, and returns its JDBC URL, user and
     * password included.
     *
     * @param prefix how its name begins: lower-case letters and underscores
     */
    public static String newDatabase(String prefix) {
        String name = uniqueName(prefix);
        execute("create database " + name);
        if (Holder.GIVEN) {
            Runtime.getRuntime().addShutdownHook(new Thread(() -> execute("drop database if exists " + name)));
        }
        return urlOf(name);
    }

    /**
     * Creates a copy of a database, which takes a tenth of the time of what most tests would put into it, and returns its JDBC
     * URL. The caller {@linkplain #drop drops} it.
     *
     * @param url of a database that nobody uses at the time
     */
    public static String copyOf(String url) {
        String name = uniqueName("copy");
        execute("create database " + name + " template " + parts(url).group("database"));
        return urlOf(name);
    }

    /** Drops a database, whoever uses it. */
    public static void drop(String url) {
        String name = parts(url).group("database");
        execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = '" + name + "'");
        execute("drop database " + name);
    }

    private static String uniqueName(String prefix) {
        return prefix + "_" + Long.toHexString(ThreadLocalRandom.current().nextLong());
    }

    private static String urlOf(String database) {
        Matcher url = parts(jdbcUrl());
        return url.group("server") + database + url.group("parameters");
    }

    private static Matcher parts(String url) {
        Matcher parts = SERVER_AND_DATABASE.matcher(url);
        if (!parts.matches()) {
            throw new IllegalStateException("The JDBC URL of the tests must be jdbc:postgresql://host/database");
        }
        return parts;
    }

    private static void execute(String sql) {
        try (Connection connection = DriverManager.getConnection(jdbcUrl());
                Statement statement = connection.createStatement()) {
            statement.execute(sql);
        } catch (SQLException e) {
            throw new IllegalStateException(sql, e);
        }
    }

    /** Defers the start of the server until somebody needs it. */
    private static final class Holder {
        static final boolean GIVEN = isGiven();
        static final String URL = start();

        private static boolean isGiven() {
            String url = System.getenv("PGWORKER_TEST_JDBC_URL");
            return url != null && !url.isBlank();
        }

        private static String start() {
            if (GIVEN) {
                return System.getenv("PGWORKER_TEST_JDBC_URL");
            }
            if (Boolean.parseBoolean(System.getenv("PGWORKER_TEST_DOCKER"))) {
                return startContainer();
            }
            return startEmbedded();
        }

        @SuppressWarnings("resource") // lives as long as the JVM; Testcontainers removes it
        private static String startContainer() {
            PostgreSQLContainer container =
                    new PostgreSQLContainer(System.getProperty("pgworker.test.postgres-image", "postgres:18"));
            container.start();
            String separator = container.getJdbcUrl().contains("?") ? "&" : "?";
            return container.getJdbcUrl() + separator + "user=" + container.getUsername() + "&password="
                    + container.getPassword();
        }

        private static String startEmbedded() {
            TestServer server = TestServer.start();
            Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                try {
                    server.close();
                } catch (IOException e) {
                    // Its files lie in a temporary directory.
                }
            }));
            return server.jdbcUrl();
        }
    }
}
