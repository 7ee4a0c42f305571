package dev.pgworker.schema;

import java.sql.SQLException;

import org.jspecify.annotations.Nullable;
import org.postgresql.util.PSQLException;

/** What failures of the database mean for the start of the application. */
final class SchemaFailures {

    private static final String IN_FAILED_TRANSACTION = "25P02";

    private SchemaFailures() {}

    /** Describes what failed in a schema and what to do about it. */
    static SchemaException translate(WorkerSchema schema, Exception failure) {
        SQLException sql = sqlException(failure);
        String state = stateOf(failure);
        String said = "The database reported: " + (sql == null ? failure : sql).getMessage();
        if (state.startsWith("28")) {
            return new SchemaException(
                    "PostgreSQL refused the login. " + said,
                    "Check spring.datasource.username and spring.datasource.password, or pgworker.schema.user and"
                            + " pgworker.schema.password where they are set.",
                    failure);
        }
        if (state.equals("25006")) {
            return new SchemaException(
                    "The server is a standby, or this user's transactions are read-only (default_transaction_read_only). "
                            + said,
                    "Add targetServerType=primary to spring.datasource.url (or pgworker.schema.url) and list the addresses of"
                            + " all servers in it, or change it to the address of the primary. On a primary, reset"
                            + " default_transaction_read_only, or set spring.datasource.hikari.read-only=false.",
                    failure);
        }
        if (state.equals("3D000")) {
            return new SchemaException(
                    "The database does not exist. " + said, "Create it, or correct spring.datasource.url.", failure);
        }
        if (state.equals("42501")) {
            return new SchemaException(
                    "A privilege is missing in schema \"" + schema.name() + "\". " + said,
                    "Grant it, or let a user that owns the schema migrate (pgworker.schema.user,"
                            + " pgworker.schema.password).",
                    failure);
        }
        if (said.contains("No suitable driver")) {
            // The driver manager quotes the URL, perhaps with a password, so that the failure goes nowhere.
            return new SchemaException(
                    "There is no JDBC driver for the URL of the database.",
                    "Correct spring.datasource.url (or pgworker.schema.url): it must begin with jdbc:postgresql:");
        }
        if (state.startsWith("08")) {
            return new SchemaException(
                    "PostgreSQL cannot be reached. " + said,
                    "Check that the server runs and that spring.datasource.url (or pgworker.schema.url) names it.",
                    failure);
        }
        return new SchemaException(
                "Schema \"" + schema.name() + "\" could not be checked or migrated. " + said,
                "Correct the cause and start again: a failed migration leaves nothing behind."
                        + (isInFunction(sql)
                                ? " If it is a function of yours, such as that of an event trigger: it is called with search_path ="
                                        + " pg_catalog, pg_temp. ALTER FUNCTION ... SET search_path = ... gives it another one."
                                : ""),
                failure);
    }

    /** Returns the SQLSTATE of a failure; empty for none. */
    static String stateOf(Throwable failure) {
        SQLException sql = sqlException(failure);
        return sql == null || sql.getSQLState() == null ? "" : sql.getSQLState();
    }

    /** Returns the database's message, or else the failure itself. */
    static @Nullable String messageOf(Exception failure) {
        SQLException sql = sqlException(failure);
        return (sql == null ? failure : sql).getMessage();
    }

    private static boolean isInFunction(@Nullable SQLException failure) {
        return failure instanceof PSQLException answer
                && answer.getServerErrorMessage() != null
                && answer.getServerErrorMessage().getWhere() != null;
    }

    /** What follows a failure in its transaction has that one as its cause, and no information of its own. */
    private static @Nullable SQLException sqlException(Throwable failure) {
        SQLException found = null;
        for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
            if (cause instanceof SQLException sql && sql.getSQLState() != null) {
                found = sql;
                if (!sql.getSQLState().equals(IN_FAILED_TRANSACTION)) {
                    return sql;
                }
            }
        }
        return found;
    }
}
