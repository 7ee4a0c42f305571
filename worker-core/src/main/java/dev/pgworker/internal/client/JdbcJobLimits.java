package dev.pgworker.internal.client;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.support.SqlArrayValue;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.argument.LogText;
import dev.pgworker.internal.event.WorkerEvents;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.internal.store.LimitRow;
import dev.pgworker.job.DeadWorker;
import dev.pgworker.limit.JobLimits;
import dev.pgworker.limit.Limit;
import dev.pgworker.limit.LimitStatus;
import dev.pgworker.limit.LimitTotals;
import dev.pgworker.limit.LimitUsage;
import dev.pgworker.schema.WorkerSchema;

/** Limits, on the connection of the caller's transaction. */
public final class JdbcJobLimits implements JobLimits {

    private static final Logger log = WorkerLog.of(JdbcJobLimits.class);

    private static final int MAX_NAME = 128;

    private static final int MAX_VALUE = 10_000;

    private final ClientConnections connections;
    private final WorkerSchema schema;
    private final WorkerEvents events;
    private final @Nullable String user;

    /**
     * Creates the limits of one schema.
     *
     * @param events where to tell what has been changed; delivers by itself
     */
    public JdbcJobLimits(DataSource dataSource, WorkerSchema schema, WorkerEvents events) {
        this(new ClientConnections(dataSource), schema, events, null);
    }

    private JdbcJobLimits(
            ClientConnections connections, WorkerSchema schema, WorkerEvents events, @Nullable String user) {
        this.connections = connections;
        this.schema = schema;
        this.events = events;
        this.user = user;
    }

    @Override
    public JobLimits actingAs(String name) {
        return new JdbcJobLimits(connections, schema, events, Arguments.requireUser(name));
    }

    @Override
    public LimitStatus put(Limit limit) {
        Arguments.requireNonNull("limit", limit);
        LimitStatus status =
                connections.query("put limit \"" + limit.name() + "\"", false, client -> put(client, limit, null));
        tell(limit.name(), limit.words());
        return status;
    }

    private static final String LIMIT_LOCKS = """
            select pg_catalog.set_config('lock_timeout', ?, true)
            """;

    /**
     * Puts a limit that the application declares.
     *
     * @param lockLimit how long to wait for others who have locked it
     */
    public LimitStatus declare(Limit limit, Duration lockLimit) {
        return connections.query("declare limit \"" + limit.name() + "\"", true, client -> {
            client.sql("set transaction isolation level read committed").update();
            client.sql(LIMIT_LOCKS)
                    .param(lockLimit.toMillis() + "ms")
                    .query(String.class)
                    .single();
            return put(client, limit, true);
        });
    }

    private static final String PUT = "select " + LimitRow.COLUMNS + """
            from {schema}.pgworker_put_limit(
              name => ?, task_identifiers => ?, field => ?, max_running => ?, max_starts => ?,
              period => pg_catalog.make_interval(secs => ?), burst => ?, declared => ?) l
            """;

    private LimitStatus put(JdbcClient client, Limit limit, @Nullable Boolean declared) {
        Double period = limit.period() == null ? null : Timestamps.millis(limit.period()) / 1_000;
        return client.sql(schema.in(PUT))
                .params(Arrays.asList(
                        limit.name(),
                        texts(limit.tasks()),
                        limit.field().isEmpty() ? null : texts(limit.field()),
                        limit.maxRunning(),
                        limit.maxStarts(),
                        period,
                        limit.burst(),
                        declared))
                .query((row, number) -> LimitRow.read(row))
                .single();
    }

    private static SqlArrayValue texts(List<String> texts) {
        return new SqlArrayValue("text", texts.toArray());
    }

    private static final String DELETE = """
            select {schema}.pgworker_delete_limit(?)
            """;

    @Override
    public boolean delete(String name) {
        requireName(name);
        boolean deleted = connections.query(
                "delete limit \"" + name + "\"",
                false,
                client -> client.sql(schema.in(DELETE))
                        .param(name)
                        .query(Boolean.class)
                        .single());
        if (deleted) {
            tell(name, null);
        }
        return deleted;
    }

    private static final String LIST = "select " + LimitRow.COLUMNS + """
            from {schema}.pgworker_limits l
            """;

    @Override
    public Optional<LimitStatus> find(String name) {
        requireName(name);
        String sql = LIST + "where l.name operator(pg_catalog.=) ?";
        return connections.query(
                "find limit \"" + name + "\"",
                false,
                client -> client.sql(schema.in(sql))
                        .param(name)
                        .query((row, number) -> LimitRow.read(row))
                        .optional());
    }

    @Override
    public List<LimitStatus> list() {
        String sql = LIST + "order by l.name";
        return connections.query(
                "list limits",
                false,
                client -> client.sql(schema.in(sql))
                        .query((row, number) -> LimitRow.read(row))
                        .list());
    }

    private static final String USAGE = """
            select u.value, u.running, u.waiting, u.tokens, u.next_at
            from {schema}.pgworker_limit_usage(name => ?, after_value => ?, most => ?) u
            """;

    @Override
    public List<LimitUsage> usage(String name, @Nullable String after, int most) {
        requireName(name);
        Arguments.requireOptionalText("after", after, MAX_VALUE);
        Arguments.requireRange("most", most, 1, 1000);
        return connections.query(
                "look at limit \"" + name + "\"",
                false,
                client -> client.sql(schema.in(USAGE))
                        .params(Arrays.asList(name, after, most))
                        .query((row, number) -> new LimitUsage(
                                row.getString(1),
                                row.getLong(2),
                                row.getLong(3),
                                row.getObject(4, Double.class),
                                Timestamps.nullableInstant(row, 5)))
                        .list());
    }

    private static final String TOTALS = """
            select t.name, t.waiting, t.used from {schema}.pgworker_limited_totals() t
            """;

    @Override
    public List<LimitTotals> totals() {
        return connections.query(
                "look at the limits",
                false,
                client -> client.sql(schema.in(TOTALS))
                        .query((row, number) -> new LimitTotals(row.getString(1), row.getLong(2), row.getLong(3)))
                        .list());
    }

    private static void requireName(@Nullable String name) {
        String unused = Arguments.requireGivenText("name", name, MAX_NAME);
    }

    /** Tells who has changed what once that is committed; a line about what applications do by themselves need not be read. */
    private void tell(String name, @Nullable String allows) {
        ClientConnections.afterCommit(() -> {
            if (user != null) {
                log.info(
                        "Limit \"{}\": {} by user \"{}\"",
                        LogText.visible(name),
                        LogText.visible(allows == null ? "deleted" : allows),
                        LogText.visible(user));
            }
            events.publish(new WorkerEvent.LimitChanged(DeadWorker.BY_HAND, name, allows, user));
        });
    }
}
