package dev.pgworker.schema;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Pattern;

import org.flywaydb.core.api.FlywayException;
import org.flywaydb.core.api.callback.Callback;
import org.flywaydb.core.api.callback.Context;
import org.flywaydb.core.api.callback.Event;
import org.jspecify.annotations.Nullable;

/**
 * Attributes of the functions that other Graphile Workers know too, as an administrator may have set them: {@code create or
 * replace} resets them, except for owner and privileges, and our files set comments.
 *
 * <p>What was there before wins over our definitions, also over their settings ({@code SET}).
 */
final class FunctionAttributes {

    /** Where the attributes end in the server's text of a function. */
    private static final Pattern BODY = Pattern.compile("\n(AS \\$|BEGIN ATOMIC|RETURN )");

    private static final String SETTING = "\n SET ";

    private final WorkerSchema schema;
    private final Map<Long, Function> functions;

    /**
     * One function.
     *
     * @param attributes statement that sets all attributes
     * @param describe statement that sets the comment; null without one
     */
    private record Function(String attributes, @Nullable String describe) {}

    private FunctionAttributes(WorkerSchema schema, Map<Long, Function> functions) {
        this.schema = schema;
        this.functions = functions;
    }

    // The server writes the settings as it reads them, which is more than to quote a value.
    private static final String READ = """
            select p.oid::int8 as oid,
              pg_catalog.format('alter function %s ', p.oid::pg_catalog.regprocedure) || pg_catalog.concat_ws(' ',
                case p.provolatile when 'i' then 'immutable' when 's' then 'stable' else 'volatile' end,
                case p.proparallel when 's' then 'parallel safe' when 'r' then 'parallel restricted' else 'parallel unsafe' end,
                case when p.proisstrict then 'strict' else 'called on null input' end,
                case when p.prosecdef then 'security definer' else 'security invoker' end,
                case when p.proleakproof then 'leakproof' end, 'cost ' || p.procost, case when p.proretset then 'rows ' || p.prorows end,
                case when p.prosupport <> 0 then 'support ' || p.prosupport::pg_catalog.regproc end) as attributes,
              pg_catalog.pg_get_functiondef(p.oid) as definition,
              pg_catalog.format('comment on function %s is %L', p.oid::pg_catalog.regprocedure,
                pg_catalog.obj_description(p.oid, 'pg_proc')) as describe,
              pg_catalog.obj_description(p.oid, 'pg_proc') is not null as described
            from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
            where n.nspname = ?::pg_catalog.name and p.proname = any(?) and p.prokind = 'f'
            """;

    /** Reads them; the session's search path has to be that of a migration. */
    static FunctionAttributes read(Connection connection, WorkerSchema schema) throws SQLException {
        Map<Long, Function> functions = new HashMap<>();
        try (PreparedStatement statement = connection.prepareStatement(READ)) {
            statement.setString(1, schema.name());
            statement.setArray(2, connection.createArrayOf("text", Catalog.SHARED_FUNCTIONS.toArray()));
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    StringBuilder attributes = new StringBuilder(row.getString("attributes"));
                    String[] settings = BODY.split(row.getString("definition"), 2)[0].split(SETTING);
                    for (int i = 1; i < settings.length; i++) {
                        attributes.append(" set ").append(settings[i].strip());
                    }
                    functions.put(
                            row.getLong("oid"),
                            new Function(
                                    attributes.toString(),
                                    row.getBoolean("described") ? row.getString("describe") : null));
                }
            }
        }
        return new FunctionAttributes(schema, functions);
    }

    /** Sets what has been changed since; functions that were dropped or made meanwhile are left alone. */
    void putBack(Connection connection) throws SQLException {
        Map<Long, Function> now = read(connection, schema).functions;
        try (Statement statement = connection.createStatement()) {
            for (Map.Entry<Long, Function> before : functions.entrySet()) {
                Function was = before.getValue();
                Function is = now.get(before.getKey());
                if (is == null || is.equals(was)) {
                    continue;
                }
                if (!is.attributes.equals(was.attributes)) {
                    statement.execute(was.attributes);
                }
                if (was.describe != null && !was.describe.equals(is.describe)) {
                    statement.execute(was.describe);
                }
            }
        }
    }

    /**
     * Keeps them over each file of functions that Flyway applies, in its transaction. Versioned migrations may change them, which is how a
     * later version takes back what an earlier one has set.
     */
    static final class Keeper implements Callback {

        private final WorkerSchema schema;
        private @Nullable FunctionAttributes before;

        Keeper(WorkerSchema schema) {
            this.schema = schema;
        }

        @Override
        public boolean supports(Event event, Context context) {
            return (event == Event.BEFORE_EACH_MIGRATE || event == Event.AFTER_EACH_MIGRATE)
                    && context.getMigrationInfo().getVersion() == null;
        }

        @Override
        public boolean canHandleInTransaction(Event event, Context context) {
            return true;
        }

        @Override
        public void handle(Event event, Context context) {
            try {
                if (event == Event.BEFORE_EACH_MIGRATE) {
                    before = read(context.getConnection(), schema);
                } else if (before != null) {
                    before.putBack(context.getConnection());
                }
            } catch (SQLException e) {
                throw new FlywayException(e.getMessage(), e);
            }
        }

        @Override
        public String getCallbackName() {
            return "attributes of functions";
        }
    }
}
