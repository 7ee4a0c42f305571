package dev.pgworker.testing;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.atomic.AtomicInteger;

import org.jspecify.annotations.Nullable;

import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.testsupport.SchemaState;
import dev.pgworker.testsupport.TestPostgres;

/**
 * Gives the schema of one test to the next one of this JVM, as installing a schema costs more than most tests do: if the test
 * has left nothing but rows, and nobody who might still use the schema. Otherwise it is dropped.
 */
final class SchemaPool {

    private static final int MOST_DROPS = 3;

    private static final AtomicInteger counter = new AtomicInteger();

    /** Those that are as if they had just been installed. */
    private static final Deque<SchemaState> unused = new ArrayDeque<>();

    private static final Strays strays = new Strays();

    /** Lives as long as the JVM, as a new session reads the catalog several times slower; null before it is needed. */
    private static @Nullable Connection session;

    private SchemaPool() {}

    /** Returns a name that no other test uses. */
    static WorkerSchema uniqueName() {
        return new WorkerSchema("t" + ProcessHandle.current().pid() + "_" + counter.incrementAndGet());
    }

    /** Returns a schema in which nothing has happened yet. */
    static synchronized SchemaState take() {
        SchemaState taken = unused.poll();
        return taken == null ? install() : taken;
    }

    private static Connection session() throws SQLException {
        if (session == null || !session.isValid(10)) {
            session = DriverManager.getConnection(TestPostgres.jdbcUrl());
        }
        return session;
    }

    /** Returns a schema that nobody has used. */
    static SchemaState install() {
        WorkerSchema schema = uniqueName();
        try (Connection connection = DriverManager.getConnection(TestPostgres.jdbcUrl())) {
            SchemaInstaller.install(connection, schema);
            return SchemaState.read(connection, schema.name());
        } catch (SQLException e) {
            throw new IllegalStateException("Schema " + schema.name() + " could not be installed", e);
        }
    }

    /** Takes a schema back whose test has ended. */
    static synchronized void giveBack(SchemaState schema) {
        try {
            Connection connection = session();
            if (mayBeReused(connection, schema)) {
                unused.push(schema);
            } else {
                drop(connection, new WorkerSchema(schema.schema()));
            }
        } catch (SQLException e) {
            throw new IllegalStateException("Schema " + schema.schema() + " could not be given back", e);
        }
    }

    private static boolean mayBeReused(Connection connection, SchemaState schema) throws SQLException {
        if (!strays.haveEnded(connection) || !schema.hasItsDefinition(connection)) {
            return false;
        }
        schema.restoreRows(connection);
        return true;
    }

    /** A statement that a stopped worker has left behind may be about to end. */
    private static void drop(Connection connection, WorkerSchema schema) throws SQLException {
        for (int tries = 1; ; tries++) {
            try (Statement statement = connection.createStatement()) {
                statement.execute(schema.in("drop schema if exists {schema} cascade"));
                return;
            } catch (SQLException e) {
                boolean locked = "40P01".equals(e.getSQLState()) || "55P03".equals(e.getSQLState());
                if (!locked || tries == MOST_DROPS) {
                    throw e;
                }
            }
        }
    }
}
