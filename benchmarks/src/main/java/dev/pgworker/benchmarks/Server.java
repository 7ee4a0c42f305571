package dev.pgworker.benchmarks;

import java.io.IOException;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import org.jspecify.annotations.Nullable;

/** The PostgreSQL server on which all contenders run, one after the other, each in a database of its own. */
final class Server implements AutoCloseable {

    private static final Pattern URL = Pattern.compile("(?<server>jdbc:postgresql://[^/?]*/)[^?]*(?<parameters>.*)");

    private final @Nullable EmbeddedPostgres embedded;
    private final String url;
    private int databases;

    private Server(@Nullable EmbeddedPostgres embedded, String url) {
        this.embedded = embedded;
        this.url = url;
    }

    /** Takes the given server, or starts one that is as durable as an installed one. */
    static Server open(@Nullable String jdbcUrl) throws IOException {
        if (jdbcUrl != null) {
            if (!URL.matcher(jdbcUrl).matches()) {
                throw new IllegalArgumentException(
                        "--jdbc-url must be jdbc:postgresql://host/database, but is " + jdbcUrl);
            }
            return new Server(null, jdbcUrl);
        }
        EmbeddedPostgres embedded = EmbeddedPostgres.builder()
                .setPGStartupWait(Duration.ofMinutes(2))
                .setServerConfig("fsync", "on")
                .setServerConfig("synchronous_commit", "on")
                .setServerConfig("full_page_writes", "on")
                .start();
        return new Server(embedded, embedded.getJdbcUrl("postgres", "postgres"));
    }

    /** Creates an empty database and returns its JDBC URL. */
    String createDatabase() throws SQLException {
        databases++;
        String name = "benchmark_" + ProcessHandle.current().pid() + "_" + databases;
        execute("create database " + name);
        Matcher parts = URL.matcher(url);
        if (!parts.matches()) {
            throw new IllegalStateException(url);
        }
        return parts.group("server") + name + parts.group("parameters");
    }

    /** Drops a database, and whatever connections are left. */
    void dropDatabase(String jdbcUrl) throws SQLException {
        String name = jdbcUrl.replaceFirst(".*/", "").replaceFirst("\\?.*", "");
        execute("alter database " + name + " with allow_connections false");
        execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = '" + name + "'");
        for (int attempt = 1; ; attempt++) {
            try {
                execute("drop database " + name);
                return;
            } catch (SQLException e) {
                if (attempt == 20) {
                    throw e;
                }
                pause();
            }
        }
    }

    private static void pause() {
        try {
            Thread.sleep(100);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Says on what the figures depend. */
    String description() throws SQLException {
        List<String> settings = List.of(
                "server_version",
                "fsync",
                "synchronous_commit",
                "full_page_writes",
                "shared_buffers",
                "max_wal_size",
                "autovacuum");
        String names = settings.stream().collect(Collectors.joining("', '", "'", "'"));
        try (Connection connection = DriverManager.getConnection(url);
                Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(
                        "select string_agg(name || ' ' || current_setting(name), ', ' order by array_position(array["
                                + names + "], name)) from pg_settings where name in (" + names + ")")) {
            row.next();
            return "PostgreSQL " + row.getString(1) + "; "
                    + Runtime.getRuntime().availableProcessors() + " processors, Java "
                    + Runtime.version().feature() + ", " + System.getProperty("os.name");
        }
    }

    private void execute(String sql) throws SQLException {
        try (Connection connection = DriverManager.getConnection(url);
                Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    @Override
    public void close() throws IOException {
        if (embedded != null) {
            embedded.close();
        }
    }
}
