package dev.pgworker.schema;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;

import org.jspecify.annotations.Nullable;

/**
 * What others have left in a schema that keeps it from being adopted. Each is refused before anything is changed; all else, such as
 * columns, indexes, triggers and row security of an administrator, stays as it is.
 */
final class Adoption {

    private final Connection connection;
    private final WorkerSchema schema;

    Adoption(Connection connection, WorkerSchema schema) {
        this.connection = connection;
        this.schema = schema;
    }

    /** Refuses a schema that has no history of PgWorker and cannot be adopted. */
    void check(Ledger ledger) throws SQLException {
        if (ledger.newest() == null) {
            checkEmpty();
            return;
        }
        checkColumns();
        checkFunctions();
        checkTriggers();
        checkRowSecurity();
    }

    private void checkEmpty() throws SQLException {
        for (String table : new String[] {"_private_jobs", "jobs"}) {
            if (Catalog.hasTable(connection, schema, table)) {
                throw new SchemaException(
                        "Schema \"%s\" has a table or view \"%s\", but no table \"migrations\" that says of which version it is."
                                .formatted(schema.name(), table),
                        "Use another schema (pgworker.schema.name), or restore the table \"migrations\" and its rows from a backup.");
            }
        }
    }

    private static final String COLUMNS = """
            select pg_catalog.format('%s.%s is not of type %s', t.relation, e.name, e.type::pg_catalog.regtype)
            from (values
                ('migrations', '{id,int4,ts,timestamptz}'),
                ('_private_tasks', '{id,int4,identifier,text}'),
                ('_private_job_queues', '{id,int4,queue_name,text,locked_at,timestamptz,locked_by,text,is_available,bool}'),
                ('_private_jobs', '{id,int8,job_queue_id,int4,task_id,int4,payload,json,priority,int2,run_at,timestamptz,attempts,int2,'
                  'max_attempts,int2,last_error,text,created_at,timestamptz,updated_at,timestamptz,key,text,locked_at,timestamptz,'
                  'locked_by,text,revision,int4,flags,jsonb,is_available,bool}'),
                ('_private_known_crontabs', '{identifier,text,known_since,timestamptz,last_execution,timestamptz}'),
                ('_private_workers', '{id,text,last_heartbeat_at,timestamptz,started_at,timestamptz,metadata,jsonb}'),
                ('job_spec', '{identifier,text,payload,json,queue_name,text,run_at,timestamptz,max_attempts,int2,job_key,text,'
                  'priority,int2,flags,_text}')) t(relation, columns)
            join pg_catalog.pg_namespace n on n.nspname = ?::pg_catalog.name
            join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = t.relation::pg_catalog.name
            cross join lateral (
              select p.column_and_type[2 * i - 1] as name, 'pg_catalog.' || p.column_and_type[2 * i] as type, i as place
              from (select t.columns::pg_catalog.text[] as column_and_type) p,
                pg_catalog.generate_series(1, pg_catalog.cardinality(p.column_and_type) / 2) i) e
            left join pg_catalog.pg_attribute a
              on a.attrelid = c.oid and a.attname = e.name::pg_catalog.name and not a.attisdropped
            where a.atttypid is distinct from e.type::pg_catalog.regtype
            order by t.relation, e.place
            """;

    private void checkColumns() throws SQLException {
        refuse(
                COLUMNS,
                "Schema \"%s\" cannot be adopted: column %s.",
                "Restore the column as Graphile Worker made it, or use another schema (pgworker.schema.name).");
    }

    /** Types are compared by oid, as their names depend on the search path. */
    private static final String FUNCTIONS = """
            select pg_catalog.format('%I.%I(%s)', n.nspname, p.proname, pg_catalog.pg_get_function_identity_arguments(p.oid))
            from (values
                ('add_job', '{text,json,text,timestamptz,int4,text,int4,_text,text}',
                  '{identifier,payload,queue_name,run_at,max_attempts,job_key,priority,flags,job_key_mode}', '_private_jobs', false),
                ('add_jobs', '{_job_spec,bool}', '{specs,job_key_preserve_run_at}', '_private_jobs', true),
                ('remove_job', '{text}', '{job_key}', '_private_jobs', false),
                ('complete_jobs', '{_int8}', '{job_ids}', '_private_jobs', true),
                ('permanently_fail_jobs', '{_int8,text}', '{job_ids,error_message}', '_private_jobs', true),
                ('reschedule_jobs', '{_int8,timestamptz,int4,int4,int4}', '{job_ids,run_at,priority,attempts,max_attempts}',
                  '_private_jobs', true),
                ('force_unlock_workers', '{_text}', '{worker_ids}', 'void', false),
                ('worker_heartbeat', '{text,json}', '{worker_id,metadata}', 'void', false),
                ('worker_deregister', '{text}', '{worker_id}', 'void', false),
                ('list_stale_workers', '{interval}', '{stale_threshold,worker_id}', 'text', true),
                ('list_orphan_locked_workers', '{interval}', '{stale_threshold,worker_id}', 'text', true),
                ('recover_dead_worker_jobs', '{_text,interval}', '{worker_ids,recovery_delay}', 'int4', false),
                ('delete_stale_workers', '{_text}', '{worker_ids}', 'void', false)) f(name, parameters, names, result, is_set)
            join pg_catalog.pg_namespace n on n.nspname = ?::pg_catalog.name
            join pg_catalog.pg_proc p on p.pronamespace = n.oid and p.proname = f.name::pg_catalog.name
              and f.parameters::pg_catalog.text[] = array(
                select t.typname::pg_catalog.text
                from pg_catalog.unnest(p.proargtypes::pg_catalog.oid[]) with ordinality a(type, place)
                join pg_catalog.pg_type t on t.oid = a.type and t.typnamespace in ('pg_catalog'::pg_catalog.regnamespace, n.oid)
                order by a.place)
            join pg_catalog.pg_type r on r.oid = p.prorettype
            where p.proargnames is distinct from f.names::pg_catalog.text[] or r.typname <> f.result::pg_catalog.name
              or p.proretset <> f.is_set or p.prokind <> 'f'
            order by 1
            """;

    private void checkFunctions() throws SQLException {
        refuse(
                FUNCTIONS,
                "Schema \"%s\" cannot be adopted: function %s has not the parameter names and result that Graphile Workers know.",
                "Drop or rename it: DROP FUNCTION %s; or ALTER FUNCTION ... RENAME TO ...;");
    }

    /**
     * Finds triggers whose functions rely on the search path of the session that adds jobs: their text names something
     * without its schema, and they set no search path. Those of PgWorker, which a schema has whose history of
     * migrations was lost, name everything with its schema.
     */
    private static final String TRIGGERS = """
            select pg_catalog.format('trigger %I on %I calls %s.%I, which names "%s" without its schema', g.tgname, c.relname,
                p.pronamespace::pg_catalog.regnamespace, p.proname, w.word),
              pg_catalog.format('%s.%I() SET search_path = %s', p.pronamespace::pg_catalog.regnamespace, p.proname,
                coalesce(nullif(pg_catalog.current_setting('search_path'), ''), ''''''))
            from pg_catalog.pg_namespace n
            join pg_catalog.pg_class c on c.relnamespace = n.oid
              and c.relname in ('_private_jobs', '_private_job_queues', '_private_tasks', '_private_known_crontabs', '_private_workers')
            join pg_catalog.pg_trigger g on g.tgrelid = c.oid and not g.tgisinternal
            join pg_catalog.pg_proc p on p.oid = g.tgfoid and p.probin is null
            cross join lateral (
              select m.found[1] as word
              from pg_catalog.regexp_matches(pg_catalog.lower(p.prosrc), '(?<![.a-z0-9_$])([a-z_][a-z0-9_$]*)(?![a-z0-9_$]*[.])', 'g')
                m(found)) w
            where n.nspname = ?::pg_catalog.name
              and not (p.pronamespace = n.oid and p.proname like 'pgworker|_%' escape '|')
              and not exists (select from pg_catalog.unnest(p.proconfig) s(setting) where s.setting like 'search_path=%')
              and exists (
                select from (
                  select r.relname as name, r.relnamespace as namespace from pg_catalog.pg_class r where r.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
                  union all
                  select f.proname, f.pronamespace from pg_catalog.pg_proc f
                  union all
                  select t.typname, t.typnamespace from pg_catalog.pg_type t where t.typtype in ('e', 'd')) o
                join pg_catalog.pg_namespace s on s.oid = o.namespace
                where o.name = w.word::pg_catalog.name
                  and s.nspname not in ('pg_catalog', 'information_schema') and s.nspname not like 'pg|_%' escape '|')
            order by 1 limit 1
            """;

    private void checkTriggers() throws SQLException {
        refuse(
                TRIGGERS,
                "Schema \"%s\" cannot be adopted: %s. Functions of PgWorker fire it with the search path pg_catalog, pg_temp.",
                "Give the function the search path that it needs: ALTER FUNCTION %s; or write the schema in it.");
    }

    /** Functions of limits and of the history run with the rights of the owner, who has to see all rows. */
    private static final String ROW_SECURITY = """
            select pg_catalog.format('table %I forces row level security on its owner %I, for whom it has no policy', c.relname, r.rolname),
              pg_catalog.format('%I ON %I.%I TO %I USING (true)', r.rolname, n.nspname, c.relname, r.rolname)
            from pg_catalog.pg_namespace n
            join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relrowsecurity and c.relforcerowsecurity
              and c.relname in ('_private_jobs', '_private_job_queues', '_private_tasks')
            join pg_catalog.pg_roles r on r.oid = c.relowner and not r.rolsuper and not r.rolbypassrls
            where n.nspname = ?::pg_catalog.name and not exists (
              select from pg_catalog.pg_policy p cross join lateral pg_catalog.unnest(p.polroles) g(grantee)
              where p.polrelid = c.oid and p.polpermissive and p.polcmd in ('*', 'r')
                and case when g.grantee = 0 then true else pg_catalog.pg_has_role(c.relowner, g.grantee, 'USAGE') end)
            order by 1 limit 1
            """;

    private void checkRowSecurity() throws SQLException {
        refuse(
                ROW_SECURITY,
                "Schema \"%s\" cannot be adopted: %s.",
                "Run: CREATE POLICY %s; or ALTER TABLE ... NO FORCE ROW LEVEL SECURITY;");
    }

    /**
     * Refuses the schema if the query finds something.
     *
     * @param query its first column is for the problem, its last for the action
     */
    private void refuse(String query, String problem, String action) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(query)) {
            statement.setString(1, schema.name());
            try (ResultSet row = statement.executeQuery()) {
                if (row.next()) {
                    @Nullable String last = row.getString(row.getMetaData().getColumnCount());
                    throw new SchemaException(
                            problem.formatted(schema.name(), row.getString(1)), action.formatted(last));
                }
            }
        }
    }
}
