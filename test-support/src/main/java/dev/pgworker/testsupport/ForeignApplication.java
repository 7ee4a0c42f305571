package dev.pgworker.testsupport;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * Another application behind the same connection pooler, with nothing but statements that commit by themselves. It looks in each session that
 * it gets for what somebody else has left there.
 */
public final class ForeignApplication implements AutoCloseable {

    /** What PgBouncer itself sets for its clients is not ours; each transaction begins with the isolation that is the session's default. */
    private static final String LEFT = """
            select concat_ws('; ',
              (select string_agg(name || '=' || setting, ', ') from pg_catalog.pg_settings where source = 'session' and name not in
                ('application_name', 'client_encoding', 'DateStyle', 'TimeZone', 'standard_conforming_strings', 'extra_float_digits',
                  'transaction_isolation') and name not like 'pgworker.%'),
              (select string_agg('lock ' || classid || ' ' || objid, ', ') from pg_catalog.pg_locks
                where locktype = 'advisory' and pid = pg_catalog.pg_backend_pid()),
              (select string_agg('prepared ' || statement, ', ') from pg_catalog.pg_prepared_statements),
              (select string_agg('listens to ' || c, ', ') from pg_catalog.pg_listening_channels() c),
              (select string_agg('temporary ' || relname, ', ') from pg_catalog.pg_class
                where relnamespace = pg_catalog.pg_my_temp_schema()))
            """;

    private final String pooled;
    private final Queue<String> seen = new ConcurrentLinkedQueue<>();
    private final List<Thread> clients = new ArrayList<>();
    private volatile boolean ends;

    private ForeignApplication(String pooled) {
        this.pooled = pooled;
    }

    /**
     * Starts some clients, each with a connection of its own, which ask until they are closed.
     *
     * @param direct the database at the server, in which a table is created that they ask for
     * @param pooled the same behind the pooler
     */
    public static ForeignApplication start(String direct, String pooled, int clients) throws SQLException {
        try (Connection connection = DriverManager.getConnection(direct);
                Statement statement = connection.createStatement()) {
            statement.execute("create schema shop; create table shop.orders (id int)");
            statement.execute("alter role current_user in database " + connection.getCatalog()
                    + " set search_path = shop, public");
        }
        ForeignApplication application = new ForeignApplication(unprepared(pooled));
        for (int i = 0; i < clients; i++) {
            Thread client = new Thread(application::askAgainAndAgain, "foreign-" + i);
            client.setDaemon(true);
            client.start();
            application.clients.add(client);
        }
        return application;
    }

    /** Returns an address of which the driver prepares nothing on the server. */
    public static String unprepared(String url) {
        return url + (url.contains("?") ? "&" : "?") + "prepareThreshold=0";
    }

    private void askAgainAndAgain() {
        while (!ends) {
            try (Connection connection = DriverManager.getConnection(pooled);
                    Statement statement = connection.createStatement()) {
                for (int i = 0; i < 100 && !ends; i++) {
                    look(statement);
                }
            } catch (SQLException e) {
                seen.add(String.valueOf(e.getMessage()));
            }
        }
    }

    private void look(Statement statement) throws SQLException {
        statement.executeQuery("select count(*) from orders").close();
        try (ResultSet row = statement.executeQuery(LEFT)) {
            row.next();
            if (!row.getString(1).isEmpty()) {
                seen.add(row.getString(1));
            }
        }
    }

    /** Looks at as many sessions at once, in transactions: at all of them if the pooler has no more. */
    public void lookAtSessions(int sessions) throws SQLException {
        List<Connection> all = new ArrayList<>();
        try {
            for (int i = 0; i < sessions; i++) {
                Connection connection = DriverManager.getConnection(pooled);
                all.add(connection);
                connection.setAutoCommit(false);
                try (Statement statement = connection.createStatement()) {
                    look(statement);
                }
            }
        } finally {
            for (Connection connection : all) {
                connection.close();
            }
        }
    }

    /** Returns what its clients have seen that is not theirs, and the failures of their statements. */
    public List<String> seen() {
        return List.copyOf(seen);
    }

    @Override
    public void close() {
        ends = true;
        for (Thread client : clients) {
            try {
                client.join();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
