package dev.pgworker.testsupport;

import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * What a schema is when it has just been installed: tells whether a test has changed more of it than rows, and makes the rows
 * what they were.
 *
 * <p>The definition is told by the rows of the catalog that describe the schema's objects, or that depend on them, and by the
 * transactions that wrote those rows: who changes something, and changes it back, has changed it.
 */
public final class SchemaState {

    private final String schema;
    private final String definition;

    /** The rows with which the schema begins: each as text, by the quoted name of its table. */
    private final Map<String, List<String>> rows;

    private SchemaState(String schema, String definition, Map<String, List<String>> rows) {
        this.schema = schema;
        this.definition = definition;
        this.rows = rows;
    }

    /**
     * Reads the state of a schema that nobody has used.
     *
     * @param schema its name, which needs no quotes
     */
    public static SchemaState read(Connection connection, String schema) throws SQLException {
        Map<String, List<String>> rows = new LinkedHashMap<>();
        for (String table : strings(connection, in(schema, FILLED_TABLES))) {
            rows.put(table, rowsOf(connection, table));
        }
        return new SchemaState(schema, definition(connection, schema), rows);
    }

    /** Returns the schema's name. */
    public String schema() {
        return schema;
    }

    /** Returns whether nothing of the schema has changed but rows. */
    public boolean hasItsDefinition(Connection connection) throws SQLException {
        return definition.equals(definition(connection, schema));
    }

    /** Makes the rows what they were; nobody uses them. */
    public void restoreRows(Connection connection) throws SQLException {
        List<String> changed = strings(connection, in(schema, FILLED_TABLES));
        for (Map.Entry<String, List<String>> table : rows.entrySet()) {
            if (table.getValue().equals(rowsOf(connection, table.getKey()))) {
                changed.remove(table.getKey());
            } else if (!changed.contains(table.getKey())) {
                changed.add(table.getKey());
            }
        }
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            // No trigger is to take this for work.
            statement.execute("set local session_replication_role = replica; set local lock_timeout = '60s'");
            if (!changed.isEmpty()) {
                statement.execute("truncate only " + String.join(", only ", changed));
            }
            for (String table : changed) {
                fill(connection, table, rows.getOrDefault(table, List.of()));
            }
            statement.execute(in(schema, RESET_SEQUENCES_AND_COUNTERS));
            connection.commit();
        } finally {
            connection.rollback();
            connection.setAutoCommit(true);
        }
    }

    private static void fill(Connection connection, String table, List<String> rows) throws SQLException {
        if (rows.isEmpty()) {
            return;
        }
        String insert = "insert into %1$s select (row::%1$s).* from unnest(?::text[]) row".formatted(table);
        try (PreparedStatement statement = connection.prepareStatement(insert)) {
            Array texts = connection.createArrayOf("text", rows.toArray());
            statement.setArray(1, texts);
            statement.execute();
        }
    }

    private static List<String> rowsOf(Connection connection, String table) throws SQLException {
        return strings(connection, "select t::text from " + table + " t order by 1");
    }

    private static List<String> strings(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet result = statement.executeQuery(sql)) {
            List<String> strings = new ArrayList<>();
            while (result.next()) {
                strings.add(result.getString(1));
            }
            return strings;
        }
    }

    private static String in(String schema, String sql) {
        return sql.replace("{schema}", schema);
    }

    private static String definition(Connection connection, String schema) throws SQLException {
        return strings(connection, in(schema, DEFINITION)).stream().collect(Collectors.joining("\n"));
    }

    /** Those that take room, be it for rows that have never been visible. */
    private static final String FILLED_TABLES = """
            select oid::regclass::text from pg_class
            where relnamespace = to_regnamespace('{schema}') and relkind = 'r' and pg_relation_size(oid) > 0
            order by 1""";

    private static final String RESET_SEQUENCES_AND_COUNTERS = """
            select setval(seqrelid, seqstart, false) from pg_sequence
            where seqrelid in (select oid from pg_class where relnamespace = to_regnamespace('{schema}'))
              and pg_sequence_last_value(seqrelid) is not null;
            select pg_stat_reset_single_table_counters(oid)
            from pg_class where relnamespace = to_regnamespace('{schema}') and relkind in ('r', 'p', 'i', 'S')""";

    /**
     * What the planner knows of a table outlives its rows; of {@code pg_class} the columns that change when a table is emptied
     * are left out.
     */
    private static final String DEFINITION = """
            with relations as materialized (
              select oid, reltoastrelid from pg_class where relnamespace = to_regnamespace('{schema}')
            ), objects as materialized (
              select oid from relations
              union all select oid from pg_proc where pronamespace = to_regnamespace('{schema}')
              union all select oid from pg_type where typnamespace = to_regnamespace('{schema}')
              union all select to_regnamespace('{schema}')::oid
            ), things as (
              select 'pg_class' as catalog, oid, row(relname, reltype, relowner, relam, reltablespace, relhasindex, relpersistence, relkind,
                case when relkind = 'r' then relpages end, case when relkind = 'r' then reltuples end, relnatts, relchecks, relhasrules, relhastriggers, relhassubclass, relrowsecurity, relforcerowsecurity, relispopulated,
                relreplident, relispartition, relacl, reloptions)::text as version
              from pg_class where oid in (select oid from relations union all select reltoastrelid from relations)
              union all select 'pg_namespace', oid, xmin::text from pg_namespace where oid = to_regnamespace('{schema}')
              union all select 'pg_proc', oid, xmin::text from pg_proc where pronamespace = to_regnamespace('{schema}')
              union all select 'pg_type', oid, xmin::text from pg_type where typnamespace = to_regnamespace('{schema}')
              union all select 'pg_constraint', oid, xmin::text from pg_constraint where connamespace = to_regnamespace('{schema}')
              union all select 'pg_attribute', attrelid, xmin::text from pg_attribute where attnum > 0 and attrelid in (select oid from relations)
              union all select 'pg_attrdef', adrelid, xmin::text from pg_attrdef where adrelid in (select oid from relations)
              union all select 'pg_index', indexrelid, xmin::text from pg_index where indrelid in (select oid from relations)
              union all select 'pg_trigger', oid, xmin::text from pg_trigger where tgrelid in (select oid from relations)
              union all select 'pg_policy', oid, xmin::text from pg_policy where polrelid in (select oid from relations)
              union all select 'pg_rewrite', oid, xmin::text from pg_rewrite where ev_class in (select oid from relations)
              union all select 'pg_sequence', seqrelid, xmin::text from pg_sequence where seqrelid in (select oid from relations)
              union all select 'pg_description', objoid, xmin::text from pg_description where objoid in (select oid from objects)
              union all select 'pg_seclabel', objoid, xmin::text from pg_seclabel where objoid in (select oid from objects)
              union all select 'pg_statistic', starelid, xmin::text from pg_statistic where starelid in (select oid from relations)
              union all select 'pg_default_acl', oid, xmin::text from pg_default_acl where defaclnamespace = to_regnamespace('{schema}')
              union all select 'pg_depend', objid, xmin::text from pg_depend where refobjid in (select oid from objects)
              union all select 'pg_shdepend', refobjid, xmin::text from pg_shdepend
                where dbid = (select oid from pg_database where datname = current_database()) and objid in (select oid from objects)
            )
            select catalog || ' ' || count(*) || ' ' || sum(hashtextextended(oid::text || ' ' || version, 0))
            from things group by catalog order by 1""";
}
