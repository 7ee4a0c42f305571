package dev.pgworker.internal.client;

import java.sql.Array;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
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
import dev.pgworker.job.DeadWorker;
import dev.pgworker.limit.JobLimits;
import dev.pgworker.limit.Limit;
import dev.pgworker.limit.LimitAttributes;
import dev.pgworker.limit.LimitStatus;
import dev.pgworker.limit.LimitStatus.Phase;
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
     * @param events where to report what has been changed; delivers by itself
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

    private static final String COLUMNS = """
            l.name, l.task_identifiers, l.field, l.max_running, l.max_starts,
            (extract(epoch from l.period) operator(pg_catalog.*) 1000000)::bigint, l.burst, l.state, l.declared, l.created_at, l.updated_at,
            case when l.weights is not null then array(
              select pg_catalog.concat(w.key, '=', w.value operator(pg_catalog.#>>) '{}') from pg_catalog.jsonb_each(
                case when pg_catalog.jsonb_typeof(l.weights) operator(pg_catalog.=) 'object' then l.weights else '{}' end) w) end,
            null::bigint, null::bigint
            """;

    private static final String PUT = "select " + COLUMNS + """
            from {schema}.pgworker_put_limit(
              name => ?, task_identifiers => ?, field => ?, declared => ?, max_running => ?, max_starts => ?,
              period => pg_catalog.make_interval(secs => ?), burst => ?) l
            """;

    private static final String PUT_SHARE = "select " + COLUMNS + """
            from {schema}.pgworker_put_fair_share(
              name => ?, task_identifiers => ?, field => ?, declared => ?,
              weights => (select pg_catalog.jsonb_object_agg(w.value, w.weight)
                from rows from (pg_catalog.unnest(?::pg_catalog.text[]), pg_catalog.unnest(?::pg_catalog.float8[])) w(value, weight))) l
            """;

    private LimitStatus put(JdbcClient client, Limit limit, @Nullable Boolean declared) {
        List<@Nullable Object> given = new ArrayList<>();
        given.add(limit.name());
        given.add(texts(limit.tasks()));
        given.add(limit.field().isEmpty() ? null : texts(limit.field()));
        given.add(declared);
        Map<String, Double> weights = limit.weights();
        if (weights == null) {
            given.add(limit.maxRunning());
            given.add(limit.maxStarts());
            given.add(limit.period() == null ? null : Timestamps.millis(limit.period()) / 1_000);
            given.add(limit.burst());
        } else if (limit.field().isEmpty()) {
            throw new IllegalArgumentException("per must be set for fair shares, but " + limit + " has no field");
        } else {
            given.add(texts(weights.keySet()));
            given.add(new SqlArrayValue("float8", weights.values().toArray()));
        }
        return client.sql(schema.in(weights == null ? PUT : PUT_SHARE))
                .params(given)
                .query((row, number) -> status(row))
                .single();
    }

    /** A row that was written by SQL may have anything that the table lets in. */
    private static LimitStatus status(ResultSet row) throws SQLException {
        String state = row.getString(8);
        return new LimitStatus(
                row.getString(1),
                limit(row),
                state.equals("active") ? Phase.ACTIVE : state.equals("removing") ? Phase.REMOVING : Phase.APPLYING,
                row.getBoolean(9),
                row.getObject(13, Long.class),
                row.getObject(14, Long.class),
                Timestamps.instant(row, 10),
                Timestamps.instant(row, 11));
    }

    private static @Nullable Limit limit(ResultSet row) throws SQLException {
        try {
            Map<String, @Nullable Object> given = new HashMap<>();
            given.put("tasks", texts(row, 2));
            List<String> field = texts(row, 3);
            given.put("per", field.isEmpty() ? null : field);
            given.put("maxRunning", row.getObject(4));
            given.put("maxStarts", row.getObject(5));
            long micros = row.getLong(6);
            given.put(
                    "period",
                    row.wasNull() ? null : Duration.ofSeconds(micros / 1_000_000, micros % 1_000_000 * 1_000));
            given.put("burst", row.getObject(7));
            given.put("weights", row.getArray(12) == null ? null : texts(row, 12));
            return LimitAttributes.limit(row.getString(1), given);
        } catch (RuntimeException e) {
            return null;
        }
    }

    private static List<String> texts(ResultSet row, int column) throws SQLException {
        Array array = row.getArray(column);
        return array == null ? List.of() : Arrays.asList((String[]) array.getArray());
    }

    private static SqlArrayValue texts(Collection<String> texts) {
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

    private static final String FIND = "select " + COLUMNS + """
            from {schema}.pgworker_limits l where l.name operator(pg_catalog.=) ?
            """;

    @Override
    public Optional<LimitStatus> find(String name) {
        requireName(name);
        return connections.query(
                "find limit \"" + name + "\"",
                false,
                client -> client.sql(schema.in(FIND))
                        .param(name)
                        .query((row, number) -> status(row))
                        .optional());
    }

    private static final String LIST =
            "select " + COLUMNS.replace("null::bigint, null::bigint", "t.waiting, t.used") + """
            from {schema}.pgworker_limits l
            left join {schema}.pgworker_limited_totals() t on t.name operator(pg_catalog.=) l.name
            order by l.name
            """;

    @Override
    public List<LimitStatus> list() {
        return connections.query(
                "list limits",
                false,
                client -> client.sql(schema.in(LIST))
                        .query((row, number) -> status(row))
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

    private static void requireName(@Nullable String name) {
        String unused = Arguments.requireGivenText("name", name, MAX_NAME);
    }

    /** Reports what has changed after the commit, and logs it if a user is named. */
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
