package dev.pgworker.schema;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

import org.slf4j.Logger;

import dev.pgworker.internal.failure.WorkerLog;

/** Which servers the schema works on. */
final class ServerCheck {

    private static final Logger log = WorkerLog.of(ServerCheck.class);

    private static final int OLDEST = 120000;

    private ServerCheck() {}

    /** Refuses what is no PostgreSQL, too old, or set so that triggers or views do not work, and warns of a standby. */
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
                                + " pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('session_replication_role') = 'replica'"
                                + " or pg_catalog.current_setting('restrict_nonsystem_relation_kind', true) like '%view%'")) {
            row.next();
            checkVersion(row.getInt(1), row.getString(2));
            if (row.getBoolean(4)) {
                refuseSetting(connection);
            }
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

    private static final String UNFIT = """
            select s.name, s.setting, pg_catalog.format(case s.source
                when 'user' then 'ALTER ROLE %1$I RESET %3$I;'
                when 'database' then 'ALTER DATABASE %2$I RESET %3$I;'
                when 'database user' then 'ALTER ROLE %1$I IN DATABASE %2$I RESET %3$I;'
                else 'Take %3$s out of what sets it: the configuration of the server, ALTER ROLE ALL, the URL or the pool (source: %4$s).'
              end, session_user, pg_catalog.current_database(), s.name, s.source)
            from pg_catalog.pg_settings s
            where s.name = 'session_replication_role' and s.setting = 'replica'
              or s.name = 'restrict_nonsystem_relation_kind' and s.setting like '%view%'
            """;

    private static void refuseSetting(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(UNFIT)) {
            row.next();
            throw new SchemaException(
                    "PgWorker cannot work with the setting %s = %s: triggers or views of the schema do not work."
                            .formatted(row.getString(1), row.getString(2)),
                    row.getString(3));
        }
    }
}
