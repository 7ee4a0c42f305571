package dev.pgworker.internal.client;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;

import org.jspecify.annotations.Nullable;
import org.springframework.jdbc.core.SqlParameterValue;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.support.SqlArrayValue;
import org.springframework.transaction.support.TransactionSynchronizationManager;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.job.Cancellation;
import dev.pgworker.schema.WorkerSchema;

/** Cancels jobs in the caller's transaction, and reports what has become of those that were running. */
final class JobCancels {

    private static final Duration LONGEST_WAIT = Duration.ofDays(1);

    private static final Duration SHORTEST_PAUSE = Duration.ofMillis(10);
    private static final Duration LONGEST_PAUSE = Duration.ofMillis(320);

    private final ClientConnections connections;
    private final WorkerSchema schema;

    JobCancels(ClientConnections connections, WorkerSchema schema) {
        this.connections = connections;
        this.schema = schema;
    }

    private static final String CANCEL = """
            select c.id, c.outcome, c.requested_at, c.requested_by, c.worker_id from {schema}.pgworker_cancel_jobs(?, ?) c
            """;

    /** Returns an answer for each distinct id. */
    List<Cancellation> cancel(Collection<Long> ids, @Nullable String user) {
        Set<Long> given = Arguments.requireElements("ids", ids);
        String by = Arguments.storable(user, Integer.MAX_VALUE);
        return given.isEmpty()
                ? List.of()
                : connections.query(
                        "cancel jobs",
                        true,
                        client -> inOrder(
                                given,
                                client.sql(schema.in(CANCEL))
                                        .param(new SqlArrayValue("int8", given.toArray()))
                                        .param(new SqlParameterValue(Types.VARCHAR, by))));
    }

    private static final String CANCEL_KEY = """
            select c.id, c.outcome, c.requested_at, c.requested_by, c.worker_id from {schema}.pgworker_cancel_key(?, ?) c
            """;

    Optional<Cancellation> cancel(String jobKey, @Nullable String user) {
        Arguments.requireGivenJobKey(jobKey);
        String by = Arguments.storable(user, Integer.MAX_VALUE);
        return connections.query(
                "cancel the job with key \"" + jobKey + "\"",
                true,
                client -> client.sql(schema.in(CANCEL_KEY))
                        .param(jobKey)
                        .param(new SqlParameterValue(Types.VARCHAR, by))
                        .query(JobCancels::cancellation)
                        .optional());
    }

    private static final String STATES = """
            select c.id, c.outcome, c.requested_at, c.requested_by, c.worker_id from {schema}.pgworker_cancel_states(?) c
            """;

    /** Returns what has become of those of the jobs that were cancelled while they ran. */
    List<Cancellation> of(Collection<Long> ids) {
        Set<Long> given = Arguments.requireElements("ids", ids);
        return given.isEmpty()
                ? List.of()
                : connections.query(
                        "read cancellations",
                        false,
                        client -> inOrder(
                                given,
                                client.sql(schema.in(STATES)).param(new SqlArrayValue("int8", given.toArray()))));
    }

    private static List<Cancellation> inOrder(Set<Long> ids, JdbcClient.StatementSpec statement) {
        Map<Long, Cancellation> answers = new HashMap<>();
        for (Cancellation answer : statement.query(JobCancels::cancellation).list()) {
            answers.put(answer.jobId(), answer);
        }
        return ids.stream().filter(answers::containsKey).map(answers::get).toList();
    }

    private static Cancellation cancellation(ResultSet row, int number) throws SQLException {
        return new Cancellation(
                row.getLong(1),
                Cancellation.State.valueOf(row.getString(2).toUpperCase(Locale.ROOT)),
                row.getObject(3) == null ? null : Timestamps.instant(row, 3),
                row.getString(4),
                row.getString(5));
    }

    /** As {@link #of}, when none of them runs any more or the limit has elapsed. */
    List<Cancellation> await(Collection<Long> ids, Duration limit) {
        Arguments.requireSpan("limit", limit, Duration.ZERO, LONGEST_WAIT);
        if (TransactionSynchronizationManager.isActualTransactionActive()) {
            throw new IllegalStateException(
                    "awaitCancellations must not be called in a transaction: workers are told of a cancellation when it is"
                            + " committed");
        }
        long end = System.nanoTime() + limit.toNanos();
        Duration pause = SHORTEST_PAUSE;
        while (true) {
            List<Cancellation> states = of(ids);
            long left = end - System.nanoTime();
            if (left <= 0 || states.stream().noneMatch(each -> each.state().isOpen())) {
                return states;
            }
            try {
                TimeUnit.NANOSECONDS.sleep(Math.min(left, pause.toNanos()));
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return states;
            }
            pause = pause.compareTo(LONGEST_PAUSE) < 0 ? pause.multipliedBy(2) : LONGEST_PAUSE;
        }
    }
}
