package dev.pgworker.internal.client;

import java.util.List;

import org.jspecify.annotations.Nullable;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.internal.store.PauseStore;
import dev.pgworker.job.Pause;
import dev.pgworker.job.PauseTarget;
import dev.pgworker.schema.WorkerSchema;

/** Pauses tasks, queues and everything, through the functions of the schema, on the connection of the caller's transaction. */
final class Pauses {

    private static final int MAX_REASON = 1_000;

    private final ClientConnections connections;
    private final WorkerSchema schema;

    Pauses(ClientConnections connections, WorkerSchema schema) {
        this.connections = connections;
        this.schema = schema;
    }

    private static final String PAUSE = """
            select {schema}.pgworker_pause(kind => ?, name => ?, by => ?, reason => ?)
            """;

    /** Returns whether it was not paused before. */
    boolean pause(PauseTarget target, @Nullable String user, @Nullable String reason) {
        Arguments.requireNonNull("target", target);
        Arguments.requireOptionalText("reason", reason, MAX_REASON);
        String storedUser = Arguments.storable(user, Integer.MAX_VALUE);
        return connections.query(
                "pause " + target,
                true,
                client -> client.sql(schema.in(PAUSE))
                        .param(PauseStore.word(target.kind()))
                        .param(name(target))
                        .param(storedUser)
                        .param(reason == null || reason.isEmpty() ? null : reason)
                        .query(Boolean.class)
                        .single());
    }

    private static final String RESUME = """
            select {schema}.pgworker_resume(kind => ?, name => ?)
            """;

    /** Returns whether it was paused. */
    boolean resume(PauseTarget target) {
        Arguments.requireNonNull("target", target);
        return connections.query(
                "resume " + target,
                true,
                client -> client.sql(schema.in(RESUME))
                        .param(PauseStore.word(target.kind()))
                        .param(name(target))
                        .query(Boolean.class)
                        .single());
    }

    private static String name(PauseTarget target) {
        return target.name() == null ? "" : target.name();
    }

    private static final String LIST = "select " + PauseStore.COLUMNS + """
             from {schema}.pgworker_pauses p where p.resumed_at is null order by p.kind, p.name
            """;

    List<Pause> list() {
        return connections.query(
                "list the pauses",
                false,
                client -> client.sql(schema.in(LIST))
                        .query((row, number) -> PauseStore.pause(row, 1))
                        .list());
    }
}
