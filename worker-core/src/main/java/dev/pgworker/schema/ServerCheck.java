package dev.pgworker.schema;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Which servers the schema works on. */
final class ServerCheck {

    private static final Logger log = LoggerFactory.getLogger(ServerCheck.class);

    private static final int OLDEST = 120000;

    private ServerCheck() {}

    /** Refuses what is no PostgreSQL or too old, and warns of a standby. */
    static void check(Connection connection) throws SQLException {
        String product = connection.getMetaData().getDatabaseProductName();
        if (!product.equals("PostgreSQL")) {
            throw new SchemaException(
                    "The database is " + product + ", but PgWorker runs on PostgreSQL only.",
                    "Point spring.datasource.url to a PostgreSQL database, version 12 or later.");
        }
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(
                        "select pg_catalog.current_setting('server_version_num')::int, pg_catalog.current_setting('server_version'),"
                                + " pg_catalog.pg_is_in_recovery()")) {
            row.next();
            checkVersion(row.getInt(1), row.getString(2));
            if (row.getBoolean(3)) {
                log.warn(
                        "The server is a standby (pg_is_in_recovery), which is read-only: no job can be added or run until it"
                                + " is promoted. Add targetServerType=primary to the JDBC URL and list the addresses of all"
                                + " servers in it, or change it to the address of the primary");
            }
        }
    }

    static void checkVersion(int number, String version) {
        if (number < OLDEST) {
            throw new SchemaException(
                    "The server is PostgreSQL " + version + ", but PgWorker needs version 12 or later.",
                    "Upgrade the server; no earlier version is maintained.");
        }
    }
}
