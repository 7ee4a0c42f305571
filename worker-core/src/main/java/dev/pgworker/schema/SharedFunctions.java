package dev.pgworker.schema;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The functions that other Graphile Workers know too, whose migrations may replace ours. Their newest definitions are those
 * of the last of our migrations that defines them.
 */
final class SharedFunctions {

    /** As our migrations write it: the body stands between the two dollar signs, and ends the statement. */
    private static final Pattern DEFINITION = Pattern.compile(
            "^create or replace function \"\\$\\{schema}\"\\.(\\w+)\\s*\\(.*?\\bas \\$\\$(.*?)\\$\\$;$",
            Pattern.MULTILINE | Pattern.DOTALL);

    private final WorkerSchema schema;
    private final Map<String, Definition> newest = new LinkedHashMap<>();

    /** A whole statement, and the text of the function in it. */
    private record Definition(String statement, String body) {}

    /**
     * Reads the definitions.
     *
     * @param scripts paths of the migrations on the classpath, in the order in which they are applied
     */
    SharedFunctions(WorkerSchema schema, List<String> scripts) {
        this.schema = schema;
        for (String script : scripts) {
            Matcher definition = DEFINITION.matcher(read(script));
            while (definition.find()) {
                String name = definition.group(1);
                if (Catalog.SHARED_FUNCTIONS.contains(name)) {
                    newest.put(name, new Definition(named(definition.group()), named(definition.group(2))));
                }
            }
        }
        if (!newest.keySet().equals(Catalog.SHARED_FUNCTIONS)) {
            throw new IllegalStateException("The migrations " + scripts + " define only " + newest.keySet());
        }
    }

    private String named(String sql) {
        return sql.replace("${schema}", schema.name());
    }

    private static String read(String script) {
        try (InputStream text = SharedFunctions.class.getClassLoader().getResourceAsStream(script)) {
            if (text == null) {
                throw new IllegalStateException("There is no migration " + script);
            }
            return new String(text.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static final String BODIES = """
            select p.proname, p.prosrc
            from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
            where n.nspname = ?::pg_catalog.name and p.proname = any(?)
            """;

    /** Returns the names of the functions of which no version in the schema has our text, in alphabetical order. */
    List<String> replaced(Connection connection) throws SQLException {
        Set<String> others = new TreeSet<>(newest.keySet());
        try (PreparedStatement statement = connection.prepareStatement(BODIES)) {
            statement.setString(1, schema.name());
            statement.setArray(2, connection.createArrayOf("text", Catalog.SHARED_FUNCTIONS.toArray()));
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    Definition ours = newest.get(row.getString(1));
                    if (ours != null && ours.body.equals(row.getString(2))) {
                        others.remove(row.getString(1));
                    }
                }
            }
        }
        return new ArrayList<>(others);
    }

    private static final String OWNED = """
            select coalesce(pg_catalog.bool_and(pg_catalog.pg_has_role(p.proowner, 'USAGE')), true)
            from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
            where n.nspname = ?::pg_catalog.name and p.proname = any(?)
            """;

    /** Returns whether the user owns the functions. */
    boolean mayRestore(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(OWNED)) {
            statement.setString(1, schema.name());
            statement.setArray(2, connection.createArrayOf("text", Catalog.SHARED_FUNCTIONS.toArray()));
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getBoolean(1);
            }
        }
    }

    /** Puts our texts in place of others, in the transaction under way; oids, grants, attributes and what depends on the functions stay. */
    void restore(Connection connection, List<String> names) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            FunctionAttributes attributes = FunctionAttributes.read(connection, schema);
            for (String name : names) {
                Definition definition = newest.get(name);
                if (definition != null) {
                    statement.execute(definition.statement);
                }
            }
            attributes.putBack(connection);
        }
    }
}
