package dev.pgworker.internal.client;

import java.time.Duration;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.step.JobSignals;
import dev.pgworker.task.PayloadCodec;

/** Sends signals, on the connection of the caller's transaction. */
public final class JdbcJobSignals implements JobSignals {

    private static final int MAX_NAME = 128;

    private static final int MOST_BYTES = 1024 * 1024;

    private static final Duration SHORTEST_KEPT = Duration.ofSeconds(1);

    private static final Duration LONGEST_KEPT = Duration.ofDays(3650);

    private final ClientConnections connections;
    private final WorkerSchema schema;
    private final PayloadCodec codec;
    private final Duration keepFor;

    /**
     * Creates what sends the signals of one schema.
     *
     * @param keepFor how long signals are kept, unless one has a time of its own
     */
    public JdbcJobSignals(DataSource dataSource, WorkerSchema schema, PayloadCodec codec, Duration keepFor) {
        this.connections = new ClientConnections(dataSource);
        this.schema = schema;
        this.codec = codec;
        this.keepFor = keepFor;
    }

    @Override
    public void send(String name, @Nullable Object payload) {
        send(name, payload, keepFor);
    }

    private static final String SEND = """
            select {schema}.pgworker_signal(name => ?, payload => ?::pg_catalog.json, keep_for => pg_catalog.make_interval(secs => ?))
            """;

    @Override
    public void send(String name, @Nullable Object payload, Duration keepFor) {
        if (Arguments.requireGivenText("name", name, MAX_NAME).indexOf('#') >= 0) {
            throw new IllegalArgumentException("name must not contain #, but is \"" + name + "\"");
        }
        double seconds =
                Timestamps.millis(Arguments.requireSpan("keepFor", keepFor, SHORTEST_KEPT, LONGEST_KEPT)) / 1_000;
        String json = payload == null ? null : codec.encode("payload", payload);
        if (json != null && json.length() > MOST_BYTES) {
            throw new IllegalArgumentException("payload of signal \"" + name + "\" must have at most " + MOST_BYTES
                    + " bytes as JSON, but has more");
        }
        Object unused = connections.query(
                "send signal \"" + name + "\"",
                false,
                client -> client.sql(schema.in(SEND))
                        .param(name)
                        .param(json)
                        .param(seconds)
                        .query((row, number) -> true)
                        .single());
    }
}
