package dev.pgworker.internal.failure;

import java.sql.SQLException;
import java.sql.SQLNonTransientConnectionException;
import java.sql.SQLTransientConnectionException;
import java.util.Set;

import org.jspecify.annotations.Nullable;
import org.postgresql.util.PSQLException;

/**
 * What an exception shows about the database, by the SQLSTATE that it or one of its causes carries ("PostgreSQL Error
 * Codes" in the PostgreSQL documentation).
 */
public enum DatabaseFailure {
    /** The database cannot be used: no connection, no resources, shutting down, or read-only because it is a standby. */
    OUTAGE,
    /** Another transaction was in the way and the same statement may be repeated at once. */
    CONFLICT,
    /** The statement was cancelled, by a user or by a time limit for statements or locks. */
    CANCELLED,
    /** The database refused what it was asked to do, and would refuse it again. */
    REFUSED,
    /** Not the database's doing: a bug, or an {@link Error}. */
    INTERNAL;

    private static final int DEEPEST_CAUSE = 20;

    /** A schema, a table or view, a function, a type, a column. */
    private static final Set<String> MISSING = Set.of("3F000", "42P01", "42883", "42704", "42703");

    /** Classifies a failure. Never throws, whatever the methods of the exception do. */
    public static DatabaseFailure of(Throwable failure) {
        DatabaseFailure found = INTERNAL;
        Throwable current = failure;
        for (int depth = 0; current != null && depth < DEEPEST_CAUSE; depth++) {
            if (current instanceof Error) {
                // The driver reports memory that this process lacks as if the server lacked it.
                return INTERNAL;
            }
            if (found == INTERNAL && current instanceof SQLException e) {
                found = of(e);
            }
            current = causeOf(current);
        }
        return found;
    }

    /**
     * Returns true if a server that works has answered with this failure, which may then concern one row, for example
     * because of a user's trigger, whatever the SQLSTATE is.
     */
    public static boolean isAnswer(Throwable failure) {
        return failure instanceof PSQLException answer
                && answer.getServerErrorMessage() != null
                && answer.getSQLState() != null
                && !answer.getSQLState().startsWith("57P")
                && !answer.getSQLState().equals("25006");
    }

    /**
     * Returns true if the server itself reports that a disk is full, which no row is to blame for. A user's function
     * that raises the same SQLSTATE does not count.
     */
    public static boolean isDiskFull(Throwable failure) {
        return failure instanceof PSQLException answer
                && answer.getServerErrorMessage() != null
                && "53100".equals(answer.getSQLState())
                && !"exec_stmt_raise".equals(answer.getServerErrorMessage().getRoutine());
    }

    /** Returns true if a statement names what is not there: the schema is not installed, or not up to date. */
    public static boolean isMissingSchema(Throwable failure) {
        return failure instanceof PSQLException answer
                && answer.getServerErrorMessage() != null
                // What a function or a user's trigger names is that one's business.
                && answer.getServerErrorMessage().getWhere() == null
                && MISSING.contains(String.valueOf(answer.getSQLState()));
    }

    /**
     * Returns whether the server refuses a statement because the schema lacks what it names, or because the role has no right to it:
     * a migration or a grant repairs that, not a repetition.
     */
    public static boolean isAboutTheSchema(SQLException e) {
        String state = e.getSQLState();
        return state != null && (state.startsWith("42") || state.startsWith("3F"));
    }

    private static @Nullable Throwable causeOf(Throwable failure) {
        try {
            Throwable cause = failure.getCause();
            return cause == failure ? null : cause;
        } catch (RuntimeException | Error e) {
            return null;
        }
    }

    private static DatabaseFailure of(SQLException e) {
        String state = e.getSQLState();
        if (state == null) {
            return e instanceof SQLTransientConnectionException || e instanceof SQLNonTransientConnectionException
                    ? OUTAGE
                    : REFUSED;
        }
        if (state.startsWith("08")
                || state.startsWith("53")
                || state.startsWith("57P")
                || state.startsWith("58")
                || state.equals("25006")
                || e instanceof SQLTransientConnectionException) {
            return OUTAGE;
        }
        return switch (state) {
            case "40001", "40P01" -> CONFLICT;
            case "57014", "55P03" -> CANCELLED;
            default -> REFUSED;
        };
    }
}
