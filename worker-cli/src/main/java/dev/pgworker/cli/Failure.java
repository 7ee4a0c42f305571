package dev.pgworker.cli;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.CharacterCodingException;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.jspecify.annotations.Nullable;
import org.postgresql.util.PSQLException;
import org.postgresql.util.ServerErrorMessage;
import org.springframework.dao.DataAccessException;

import dev.pgworker.schema.SchemaException;
import dev.pgworker.schema.WorkerSchema;

/**
 * What a failure means to whoever typed the command.
 *
 * @param exitStatus with what status the command ends
 * @param message what is wrong
 * @param hint what to do about it; null for nothing
 */
record Failure(int exitStatus, String message, @Nullable String hint) {

    /** How messages of the library call what options say. */
    private static final Map<String, String> OPTIONS = Map.ofEntries(
            Map.entry("identifier", "TASK"),
            Map.entry("taskIdentifier", "--task"),
            Map.entry("queueName", "--queue"),
            Map.entry("runAt", "The time of --run-at or --run-in"),
            Map.entry("maxAttempts", "--max-attempts"),
            Map.entry("attempts", "--attempts"),
            Map.entry("jobKey", "The job key"),
            Map.entry("jobKeyMode", "--key-mode"),
            Map.entry("priority", "--priority"),
            Map.entry("flags", "--flag"),
            Map.entry("payload", "The payload"),
            Map.entry("search", "--search"),
            Map.entry("pageSize", "--limit"),
            Map.entry("scanLimit", "--scan-limit"),
            Map.entry("limit", "--limit"),
            Map.entry("after", "--after"),
            Map.entry("reason", "--reason"),
            Map.entry("threshold", "--threshold"),
            Map.entry("recoveryDelay", "--recovery-delay"),
            Map.entry("staleAfter", "--stale-after"),
            Map.entry("workerIds", "WORKER"),
            Map.entry("tasks", "TASK"));

    private static final Pattern ARGUMENT = Pattern.compile(
            "(?:requests\\[\\d+\\]\\.)?(?<name>[a-zA-Z]+)(?:\\[\\d+\\])?(?<rest> (?:must|is) .*)", Pattern.DOTALL);

    private static final String LOGIN =
            "Check user and password: --user, PGPASSWORD, ~/.pgpass, --password-file or --password.";

    /**
     * Explains a failure of the program.
     *
     * @param verbose whether to tell all that the server said, such as its detail and the place in a function, instead
     *     of one line
     */
    static Failure of(Throwable failure, WorkerSchema schema, boolean verbose) {
        if (failure instanceof CommandFailure known) {
            return new Failure(known.exitStatus(), messageOf(known), null);
        }
        if (failure instanceof SchemaException problem) {
            return ofSchema(problem, schema, verbose);
        }
        if (failure instanceof DataAccessException || failure instanceof SQLException) {
            return ofDatabase(failure, schema, verbose);
        }
        if (failure instanceof UncheckedIOException io && io.getCause() instanceof CharacterCodingException) {
            return new Failure(ExitStatus.USAGE, "--payload-file is not UTF-8", null);
        }
        if (failure instanceof UncheckedIOException io) {
            return new Failure(ExitStatus.FAILED, "Input cannot be read: " + messageOf(io), null);
        }
        if (failure instanceof IllegalArgumentException) {
            return new Failure(ExitStatus.USAGE, withOption(messageOf(failure)), null);
        }
        if (failure instanceof OutOfMemoryError) {
            return new Failure(ExitStatus.FAILED, "There is not enough memory; start with: java -Xmx2g -jar ...", null);
        }
        return new Failure(
                ExitStatus.FAILED,
                "Unexpected " + failure.getClass().getSimpleName() + ": " + messageOf(failure),
                "Run it with --verbose for the stack trace.");
    }

    private static Failure ofSchema(SchemaException problem, WorkerSchema schema, boolean verbose) {
        String said = said(problem, verbose);
        Failure known = ofState(state(problem), said, schema);
        if (known != null) {
            return known;
        }
        SQLException sql = sql(problem);
        String message = sql == null ? problem.problem() : problem.problem().replace(messageOf(sql), said);
        return new Failure(ExitStatus.SCHEMA, message, ofCommandLine(problem.action()));
    }

    private static Failure ofDatabase(Throwable failure, WorkerSchema schema, boolean verbose) {
        String said = said(failure, verbose);
        Failure known = ofState(state(failure), said, schema);
        return known != null ? known : new Failure(ExitStatus.FAILED, said, null);
    }

    private static @Nullable Failure ofState(String state, String said, WorkerSchema schema) {
        if (state.startsWith("28") || (state.equals("08004") && said.contains("password"))) {
            return new Failure(ExitStatus.CONNECTION, "PostgreSQL refused the login. " + said, LOGIN);
        }
        if (state.equals("3D000")) {
            return new Failure(ExitStatus.CONNECTION, said, "Create it, or name another one in --url.");
        }
        if (said.contains("statement pooling")) {
            return new Failure(
                    ExitStatus.CONNECTION,
                    "The connection pooler allows no transactions (pool_mode=statement in PgBouncer). " + said,
                    "Use pool_mode=transaction or pool_mode=session, or an address of PostgreSQL itself.");
        }
        if (state.startsWith("08")) {
            return new Failure(
                    ExitStatus.CONNECTION,
                    "PostgreSQL cannot be reached. " + said,
                    "Check that the server runs and that --url or the variables name it.");
        }
        if (state.startsWith("57P") || state.equals("53300")) {
            return new Failure(ExitStatus.CONNECTION, said, "Try again later.");
        }
        if (state.equals("25006")) {
            return new Failure(
                    ExitStatus.FAILED,
                    "The server is a standby, or this user's transactions are read-only (default_transaction_read_only). "
                            + said,
                    "Name the primary in --url, or all servers with target_session_attrs=read-write (in a JDBC URL:"
                            + " targetServerType=primary). On a primary, reset default_transaction_read_only.");
        }
        if (state.equals("42501")) {
            return new Failure(
                    ExitStatus.FAILED,
                    "A privilege is missing in schema \"" + schema.name() + "\". " + said,
                    "The guide's page on the schema has the rights for each role.");
        }
        if (List.of("3F000", "42P01", "42883", "42703").contains(state)) {
            return new Failure(
                    ExitStatus.SCHEMA,
                    "Schema \"" + schema.name() + "\" is not installed, or not up to date. " + said,
                    "Run the command migrate as a user that owns it, or name another one with --schema.");
        }
        return null;
    }

    private static String withOption(String message) {
        Matcher argument = ARGUMENT.matcher(message);
        if (!argument.matches()) {
            return message;
        }
        String option = OPTIONS.get(argument.group("name"));
        return option == null ? message : option + argument.group("rest");
    }

    /** Replaces what somebody with an application would do. */
    private static String ofCommandLine(String action) {
        return action.replaceAll(
                        "Start (?:once|an application) with pgworker\\.schema\\.mode=migrate and",
                        "Run the command migrate with")
                .replace("pgworker.schema.user, pgworker.schema.password", "--user")
                .replace("pgworker.schema.startup-timeout", "--startup-timeout")
                .replace("pgworker.schema.name", "--schema")
                .replace("spring.datasource.url", "--url")
                .replace("and start again", "and try again");
    }

    private static String state(Throwable failure) {
        SQLException sql = sql(failure);
        return sql == null || sql.getSQLState() == null ? "" : sql.getSQLState();
    }

    /**
     * Returns what the database or the driver said.
     *
     * @param verbose whether to add the detail, and the place in statements that nobody typed
     */
    private static String said(Throwable failure, boolean verbose) {
        SQLException sql = sql(failure);
        String message = messageOf(sql == null ? failure : sql);
        if (!verbose) {
            message = inOneLine(sql instanceof PSQLException answer ? withoutContext(answer, message) : message);
        }
        if (sql != null && sql.getCause() instanceof IOException io && !message.contains("refused")) {
            message += " " + io.getClass().getSimpleName() + ": " + io.getMessage();
        }
        return Text.visible(message.strip());
    }

    /** The driver adds the other parts under names that depend on the language. */
    private static String withoutContext(PSQLException answer, String message) {
        ServerErrorMessage parts = answer.getServerErrorMessage();
        return parts == null || parts.getMessage() == null ? message : parts.getSeverity() + ": " + parts.getMessage();
    }

    private static String inOneLine(String text) {
        return text.strip().replaceAll("\\s*\\R\\s*", " ");
    }

    /** What follows a failure in its transaction (25P02) has that one as its cause, and says nothing. */
    private static @Nullable SQLException sql(Throwable failure) {
        SQLException found = null;
        for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
            if (cause instanceof SQLException sql && sql.getSQLState() != null) {
                found = sql;
                if (!sql.getSQLState().equals("25P02")) {
                    return sql;
                }
            }
        }
        return found;
    }

    private static String messageOf(Throwable failure) {
        String message = failure.getMessage();
        return message == null ? failure.getClass().getSimpleName() : message;
    }
}
