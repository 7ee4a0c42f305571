package dev.pgworker.schema;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;

import org.jspecify.annotations.Nullable;

/** What a user needs who migrates. */
final class MigrationRights {

    private final WorkerSchema schema;

    MigrationRights(WorkerSchema schema) {
        this.schema = schema;
    }

    /** Reports what is missing before Flyway fails halfway through a statement. */
    void check(Connection connection) throws SQLException {
        String sql = """
                select current_user, pg_catalog.current_database() as current_database,
                       (select pg_catalog.has_schema_privilege(n.oid, 'CREATE')
                        from pg_catalog.pg_namespace n where n.nspname = s.name) as may_create_objects,
                       pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE') as may_create_schema,
                       (select pg_catalog.string_agg(distinct pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(o.owner)), ', ')
                        from pg_catalog.pg_namespace n
                        cross join lateral (
                          select c.relowner as owner from pg_catalog.pg_class c
                          where c.relnamespace = n.oid and c.relkind in ('r', 'v')
                          union all
                          select p.proowner from pg_catalog.pg_proc p
                          where p.pronamespace = n.oid and p.proname = any(?)) o
                        where n.nspname = s.name and not pg_catalog.pg_has_role(o.owner, 'USAGE')) as foreign_owners
                from (select ?::pg_catalog.name as name) s
                """;
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setArray(1, connection.createArrayOf("text", Catalog.SHARED_FUNCTIONS.toArray()));
            statement.setString(2, schema.name());
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                require(
                        row.getString("current_user"),
                        row.getString("current_database"),
                        row.getObject("may_create_objects", Boolean.class),
                        row.getBoolean("may_create_schema"),
                        row.getString("foreign_owners"));
            }
        }
    }

    private void require(
            String user,
            String database,
            @Nullable Boolean mayCreateObjects,
            boolean mayCreateSchema,
            @Nullable String foreignOwners) {
        String alternatives =
                " Or let a user that may do so migrate (pgworker.schema.user, pgworker.schema.password), or"
                        + " start once with such a user and then use pgworker.schema.mode=validate.";
        if (mayCreateObjects == null && !mayCreateSchema) {
            throw new SchemaException(
                    "User \"%s\" may not create schema \"%s\" in database \"%s\"."
                            .formatted(user, schema.name(), database),
                    "Have an administrator run: CREATE SCHEMA \"%s\" AUTHORIZATION \"%s\";"
                                    .formatted(schema.name(), user)
                            + alternatives);
        }
        if (mayCreateObjects != null && !mayCreateObjects) {
            throw new SchemaException(
                    "User \"%s\" may not create tables and functions in schema \"%s\".".formatted(user, schema.name()),
                    "Have its owner run: GRANT CREATE, USAGE ON SCHEMA \"%s\" TO \"%s\";".formatted(schema.name(), user)
                            + alternatives);
        }
        if (foreignOwners != null) {
            throw new SchemaException(
                    "Schema \"%s\" has to be migrated, but tables or functions of it belong to %s and not to user \"%s\"."
                            .formatted(schema.name(), foreignOwners, user),
                    "Let the owner migrate (pgworker.schema.user, pgworker.schema.password), or run: GRANT %s TO \"%s\";"
                            .formatted(foreignOwners, user));
        }
    }
}
