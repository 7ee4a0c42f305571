package dev.pgworker.dashboard;

import java.sql.SQLException;
import java.util.function.UnaryOperator;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.springframework.dao.DataAccessException;
import org.springframework.dao.QueryTimeoutException;
import org.springframework.transaction.TransactionException;
import org.springframework.transaction.TransactionTimedOutException;

import dev.pgworker.internal.failure.WorkerLog;

/** Says what a failure means to a visitor. */
final class Failures {

    private static final Logger log = WorkerLog.of(Failures.class);

    private static final int LONGEST = 1_000;

    private Failures() {}

    static Refusal explain(RuntimeException failure) {
        if (failure instanceof Refusal refusal) {
            return refusal;
        }
        if (failure instanceof IllegalArgumentException) {
            return new Refusal(400, sentence(failure.getMessage(), Failures::named));
        }
        String state = state(failure);
        if (isLackOfTime(failure)) {
            return new Refusal(503, "The database took longer than a few seconds. Narrow the filters, or try again.");
        }
        if (state != null && (state.equals("42P01") || state.equals("3F000") || state.equals("42883"))) {
            return new Refusal(
                    503,
                    "The schema of the jobs is missing or outdated. Start the application with pgworker.schema.mode=migrate.");
        }
        if (isLackOfRight(failure)) {
            return new Refusal(
                    503,
                    "The database user lacks a right: " + sentence(rootMessage(failure))
                            + " The role viewer in docs/schema.md has those that the pages need.");
        }
        if ("55P03".equals(state)) {
            return new Refusal(503, "Another transaction has locked what this needs. Try again in a moment.");
        }
        if ("25006".equals(state)) {
            return new Refusal(503, "The database is read-only.");
        }
        if (state != null && (state.startsWith("22") || state.startsWith("23"))) {
            return new Refusal(400, sentence(rootMessage(failure)));
        }
        if (failure instanceof DataAccessException || failure instanceof TransactionException) {
            return new Refusal(503, "The database cannot be reached: " + sentence(rootMessage(failure)));
        }
        log.warn("A request to the dashboard failed", failure);
        return new Refusal(500, "The request failed; see the log of the application.");
    }

    static boolean isLackOfRight(RuntimeException failure) {
        return "42501".equals(state(failure));
    }

    static boolean isLackOfTime(RuntimeException failure) {
        return failure instanceof QueryTimeoutException
                || failure instanceof TransactionTimedOutException
                || "57014".equals(state(failure));
    }

    private static @Nullable String state(Throwable failure) {
        for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
            if (cause instanceof SQLException sql && sql.getSQLState() != null) {
                return sql.getSQLState();
            }
        }
        return null;
    }

    private static @Nullable String rootMessage(Throwable failure) {
        Throwable root = failure;
        while (root.getCause() != null) {
            root = root.getCause();
        }
        return root.getMessage();
    }

    private static String sentence(@Nullable String message) {
        return sentence(message, text -> text);
    }

    /** Arguments have other names in Java than parameters have here. */
    private static String named(String message) {
        return message.replaceFirst("^taskIdentifier\\b", "task")
                .replaceFirst("^jobKey\\b", "key")
                .replaceFirst("^jobKeyMode\\b", "keyMode")
                .replaceFirst("^queueName\\b", "queue")
                .replaceFirst("^pageSize\\b", "limit")
                .replaceFirst("^pattern\\b", "expression")
                .replaceFirst("^delay\\b", "every");
    }

    private static String sentence(@Nullable String message, UnaryOperator<String> naming) {
        String text = message == null ? "no reason is known" : naming.apply(message.strip());
        String cut = text.length() <= LONGEST ? text : text.substring(0, LONGEST) + "…";
        return cut.endsWith(".") ? cut : cut + ".";
    }
}
