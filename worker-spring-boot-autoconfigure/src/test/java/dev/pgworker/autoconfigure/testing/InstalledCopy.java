package dev.pgworker.autoconfigure.testing;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

import org.springframework.jdbc.datasource.DriverManagerDataSource;

import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.testsupport.SchemaState;
import dev.pgworker.testsupport.TestPostgres;

/** A database in which the schema for jobs is installed and nothing has happened: that of an earlier test, or a new copy. */
record InstalledCopy(String url, SchemaState state) {

    static final String SCHEMA = "installed";

    /** How long sessions of an application that has been closed may take to end. */
    private static final long LONGEST_END_NANOS = TimeUnit.SECONDS.toNanos(1);

    private static final Deque<InstalledCopy> unused = new ArrayDeque<>();

    static InstalledCopy take() {
        InstalledCopy taken = unused.poll();
        if (taken != null) {
            return taken;
        }
        String url = TestPostgres.copyOf(Original.URL);
        try (Connection connection = DriverManager.getConnection(url)) {
            return new InstalledCopy(url, SchemaState.read(connection, SCHEMA));
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Takes back the database of a test that has ended. It is dropped if the test has changed more than rows. */
    void giveBack() {
        boolean asItWas = false;
        try (Connection connection = DriverManager.getConnection(url)) {
            if (!isUsed(connection) && hasNothingElse(connection) && state.hasItsDefinition(connection)) {
                state.restoreRows(connection);
                asItWas = true;
            }
        } catch (SQLException e) {
            // Whatever the test has done to it, the next one gets another.
            asItWas = false;
        }
        if (asItWas) {
            unused.push(this);
        } else {
            TestPostgres.drop(url);
        }
    }

    private static boolean isUsed(Connection connection) throws SQLException {
        long deadline = System.nanoTime() + LONGEST_END_NANOS;
        while (isTrue(connection, OTHERS)) {
            if (System.nanoTime() - deadline > 0) {
                return true;
            }
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(2));
        }
        return false;
    }

    private static boolean hasNothingElse(Connection connection) throws SQLException {
        return !isTrue(connection, MORE);
    }

    private static boolean isTrue(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(sql)) {
            row.next();
            return row.getBoolean(1);
        }
    }

    private static final String OTHERS = """
            select exists (
              select from pg_stat_activity
              where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid())""";

    /** Whether there is more than the schema, or a setting of the database. */
    private static final String MORE = """
            select exists (select from pg_namespace where nspname !~ '^pg_' and nspname not in ('information_schema', 'public', 'installed'))
              or exists (select from pg_class where relnamespace = 'public'::regnamespace)
              or exists (select from pg_proc where pronamespace = 'public'::regnamespace)
              or exists (
                select from pg_db_role_setting s
                where s.setdatabase = (select d.oid from pg_database d where d.datname = current_database()))
              or exists (select from pg_event_trigger)""";

    /** What is copied, from the first test on that needs it. */
    private static final class Original {

        static final String URL = TestPostgres.newDatabase(SCHEMA);

        static {
            new SchemaMigrator(new DriverManagerDataSource(URL), new WorkerSchema(SCHEMA)).migrate();
        }
    }
}
