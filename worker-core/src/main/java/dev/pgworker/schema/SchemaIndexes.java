package dev.pgworker.schema;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

import org.slf4j.Logger;

import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.jdbc.Pooler;

/**
 * Brings the indexes of one schema to what {@code pgworker_indexes()} lists, concurrently: adding and completing jobs
 * continues meanwhile. What an interrupted build has left behind is dropped and built again.
 *
 * <p>A concurrent build waits for all transactions that are older than it. That wait is bounded: an index that could
 * not be built is logged, with the statement to run, and is built by the next start.
 */
final class SchemaIndexes {

    private static final Logger log = WorkerLog.of(SchemaIndexes.class);

    /** How long a build waits for a lock or a transaction, of which it meets several. */
    private static final Duration PATIENCE = Duration.ofSeconds(5);

    /** How long a build takes at most behind a pooler, where the session cannot have a limit for locks alone. */
    private static final Duration POOLED_LIMIT = Duration.ofMinutes(1);

    /** How long to wait for others that build an index of the table, or vacuum it. */
    private static final Duration LONGEST_WAIT = Duration.ofMinutes(1);

    private static final Duration RETRY = Duration.ofMillis(250);

    /** What a statement fails with that was cancelled, and one whose index others have built meanwhile. */
    private static final Set<String> ENDED = Set.of("57014", "42P07");

    private final WorkerSchema schema;
    private final PeerIndexes peers;

    SchemaIndexes(WorkerSchema schema, PeerIndexes peers) {
        this.schema = schema;
        this.peers = peers;
    }

    /**
     * Something to do.
     *
     * @param statement what brings the index to its state
     * @param mayDo whether the user owns the table
     * @param leftover whether an unfinished index of that name has to go first
     * @param busy whether a session builds an index of the table at the moment, perhaps this one
     */
    record Step(String index, String statement, boolean mayDo, boolean leftover, boolean busy) {}

    private static final String STEPS = """
            select declared.name, declared.relation, declared.definition, declared.of_peers,
                   i.indexrelid is not null as present, coalesce(i.indisvalid, false) as valid,
                   pg_catalog.pg_has_role(t.relowner, 'USAGE') as owned,
                   exists (
                     select from pg_catalog.pg_locks l
                     where l.relation = t.oid and l.mode = 'ShareUpdateExclusiveLock' and l.granted
                       and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = pg_catalog.current_database())
                   ) as busy
            from {schema}.pgworker_indexes() declared
            join pg_catalog.pg_namespace n on n.nspname = ?::pg_catalog.name
            join pg_catalog.pg_class t on t.relnamespace = n.oid and t.relname = declared.relation
            left join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = declared.name and c.relkind = 'i'
            left join pg_catalog.pg_index i on i.indexrelid = c.oid
            """;

    private static final String MAY_READ = """
            select pg_catalog.has_function_privilege('{schema}.pgworker_indexes()', 'EXECUTE')
            """;

    /**
     * Returns what is to be done; empty on a schema that has what it needs, and for a user who has no business with it. The
     * schema must be installed.
     */
    List<Step> steps(Connection connection) throws SQLException {
        List<Step> steps = new ArrayList<>();
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(schema.in(MAY_READ))) {
            row.next();
            if (!row.getBoolean(1)) {
                return steps;
            }
        }
        try (PreparedStatement statement = connection.prepareStatement(schema.in(STEPS))) {
            statement.setString(1, schema.name());
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    boolean ofPeers = row.getBoolean("of_peers");
                    boolean present = row.getBoolean("present");
                    boolean wanted = !ofPeers || peers == PeerIndexes.ALWAYS || (peers == PeerIndexes.AUTO && present);
                    String name = row.getString("name");
                    if (wanted && !row.getBoolean("valid")) {
                        String build = schema.in("create index concurrently " + name + " on {schema}."
                                + row.getString("relation") + " " + row.getString("definition"));
                        steps.add(new Step(name, build, row.getBoolean("owned"), present, row.getBoolean("busy")));
                    } else if (!wanted && present) {
                        steps.add(new Step(name, drop(name), row.getBoolean("owned"), false, row.getBoolean("busy")));
                    }
                }
            }
        }
        return steps;
    }

    private String drop(String index) {
        return schema.in("drop index concurrently if exists {schema}." + index);
    }

    /** Does what is to be done, as far as rights and the transactions of others allow; the connection commits by itself. */
    void build(Connection connection) throws SQLException {
        for (Step step : stepsAfterOthers(connection)) {
            if (step.mayDo) {
                run(connection, step);
            } else {
                tell(step, "the user does not own the table");
            }
        }
    }

    /** Who builds an index has a lock on its table, and so has a vacuum. */
    private List<Step> stepsAfterOthers(Connection connection) throws SQLException {
        long begin = System.nanoTime();
        List<Step> steps = steps(connection);
        while (steps.stream().anyMatch(step -> step.mayDo && step.busy)
                && System.nanoTime() - begin < LONGEST_WAIT.toNanos()) {
            Pause.of(RETRY);
            steps = steps(connection);
        }
        return steps;
    }

    private void run(Connection connection, Step step) throws SQLException {
        SessionLimits limits = Pooler.isBefore(connection) ? null : SessionLimits.of(connection, PATIENCE);
        try (Statement statement = connection.createStatement()) {
            long begin = System.nanoTime();
            if (limits == null) {
                statement.setQueryTimeout((int) POOLED_LIMIT.toSeconds());
            }
            if (step.leftover) {
                statement.execute(drop(step.index));
            }
            statement.execute(step.statement);
            log.info(
                    "Index {} of schema {}: done in {} ms ({})",
                    step.index,
                    schema.name(),
                    Duration.ofNanos(System.nanoTime() - begin).toMillis(),
                    step.statement);
        } catch (SQLException e) {
            if (!Contention.isCauseOf(e) && !ENDED.contains(String.valueOf(e.getSQLState()))) {
                throw e;
            }
            tell(step, "other sessions were in the way (" + SchemaFailures.messageOf(e) + ")");
        } finally {
            if (limits != null) {
                limits.putBack();
            }
        }
    }

    private void tell(Step step, String reason) {
        log.warn(
                "Index {} of schema {} is not in the required state, and {}; the next start retries, or run: {}{};",
                step.index,
                schema.name(),
                reason,
                step.leftover ? drop(step.index) + "; " : "",
                step.statement);
    }

    /** Logs what is to be done, where the user may not do it now. */
    void tellSteps(Connection connection) throws SQLException {
        for (Step step : steps(connection)) {
            tell(step, "this start may not change anything");
        }
    }
}
