package dev.pgworker.schema;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.failure.WorkerLog;

/** The advisory lock of a transaction that migrates a schema. Others that migrate wait for it, between transactions of their own. */
final class MigrationLock {

    private static final Logger log = WorkerLog.of(MigrationLock.class);

    private static final String KEY = "pg_catalog.hashtextextended('pgworker schema ' || ?::pg_catalog.text, 0)";

    private static final Duration RETRY = Duration.ofMillis(250);
    private static final Duration REPORTED_AFTER = Duration.ofSeconds(10);

    private final WorkerSchema schema;
    private final Duration patience;
    private final long begin = System.nanoTime();
    private boolean reported;

    /**
     * Creates the lock of one migration.
     *
     * @param patience how long to wait for others, from now on
     */
    MigrationLock(WorkerSchema schema, Duration patience) {
        this.schema = schema;
        this.patience = patience;
    }

    /** Takes the lock for the current transaction; returns false if another transaction has it. */
    boolean tryToTake(Connection connection) throws SQLException {
        try (PreparedStatement statement =
                connection.prepareStatement("select pg_catalog.pg_try_advisory_xact_lock(" + KEY + ")")) {
            statement.setString(1, schema.name());
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getBoolean(1);
            }
        }
    }

    /**
     * Waits a moment before the next try.
     *
     * @throws SchemaException if the others have had the lock for too long
     */
    void awaitOthers(Connection connection) throws SQLException {
        Duration waited = Duration.ofNanos(System.nanoTime() - begin);
        if (waited.compareTo(patience) >= 0) {
            throw new SchemaException(
                    "Schema \"%s\" could not be migrated: another session has held the lock of its migration for %s s%s."
                            .formatted(schema.name(), waited.toSeconds(), inBrackets(holder(connection))),
                    "If it is an application that migrates, wait for it and start again. Otherwise end the session, with"
                            + " pg_terminate_backend for example: behind a connection pooler, it may be an unused one.");
        }
        if (!reported && waited.compareTo(REPORTED_AFTER) >= 0) {
            reported = true;
            log.info(
                    "Schema {} is being migrated by another application{}; waiting for it",
                    schema.name(),
                    inBrackets(holder(connection)));
        }
        Pause.of(RETRY);
    }

    private static String inBrackets(@Nullable String holder) {
        return holder == null ? "" : " (" + holder + ")";
    }

    private static final String HOLDER = """
            select pg_catalog.format('pid %s, %s, %s', l.pid, coalesce(nullif(a.application_name, ''), 'no application name'),
              coalesce(a.state, 'state unknown'))
            from pg_catalog.pg_locks l
            cross join (select %s as key) k
            left join pg_catalog.pg_stat_activity a on a.pid = l.pid
            where l.locktype = 'advisory' and l.granted and l.objsubid = 1
              and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database())
              and l.classid::pg_catalog.int8 = (k.key >> 32 & 4294967295) and l.objid::pg_catalog.int8 = (k.key & 4294967295)
            limit 1
            """.replace("(select %s as key)", "(select " + KEY + " as key)");

    private @Nullable String holder(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(HOLDER)) {
            statement.setString(1, schema.name());
            try (ResultSet row = statement.executeQuery()) {
                return row.next() ? row.getString(1) : null;
            }
        }
    }
}
