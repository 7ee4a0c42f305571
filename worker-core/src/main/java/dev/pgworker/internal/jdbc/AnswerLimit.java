package dev.pgworker.internal.jdbc;

import java.sql.SQLException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

/**
 * How long statements wait for their answers: a short time, because a server that has been stopped or cut off gives none,
 * and its successor waits. A statement that takes longer because there is much to do doubles the time with each attempt, up
 * to a longest one, and succeeds at last; when it is fast again the short time is back. Each statement has a time of its
 * own. Thread-safe.
 */
public final class AnswerLimit {

    private final Duration usual;
    private final Duration longest;

    /** The times of the statements that need more than the usual one. */
    private final Map<String, Duration> raised = new ConcurrentHashMap<>();

    public AnswerLimit(Duration usual, Duration longest) {
        this.usual = usual;
        this.longest = longest;
    }

    /** Runs a statement as {@link Connections#call(DataSource, String, Duration, StatementCall)} does. */
    public <T extends @Nullable Object> T call(DataSource dataSource, String sql, StatementCall<T> call)
            throws SQLException {
        Duration limit = of(sql);
        return Connections.call(dataSource, sql, limit, (connection, statement) -> {
            long begin = System.nanoTime();
            boolean answered = false;
            try {
                T result = call.on(connection, statement);
                answered = true;
                return result;
            } finally {
                note(sql, limit, Duration.ofNanos(System.nanoTime() - begin), answered);
            }
        });
    }

    /** Returns how long the statement may take. */
    Duration of(String sql) {
        return raised.getOrDefault(sql, usual);
    }

    /** Takes note of how a statement with that limit ended. */
    void note(String sql, Duration limit, Duration took, boolean answered) {
        if (answered) {
            if (took.compareTo(usual.dividedBy(2)) < 0 && !raised.isEmpty()) {
                raised.remove(sql);
            }
        } else if (took.compareTo(limit.multipliedBy(8).dividedBy(10)) >= 0) {
            Duration twice = limit.multipliedBy(2);
            raised.put(sql, twice.compareTo(longest) < 0 ? twice : longest);
        }
    }
}
