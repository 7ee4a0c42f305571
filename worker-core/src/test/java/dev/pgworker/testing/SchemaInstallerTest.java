package dev.pgworker.testing;

import java.util.List;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.jdbc.core.simple.JdbcClient;

import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;

import static org.assertj.core.api.Assertions.assertThat;

/** The schema that tests get is the one that an application gets. */
@Tag("thorough")
class SchemaInstallerTest {

    @RegisterExtension
    final TestSchema db = new TestSchema();

    @Test
    void installsWhatTheMigratorInstalls() {
        WorkerSchema migrated = TestSchema.uniqueName();
        new SchemaMigrator(db.dataSource(), migrated).migrate();
        try {
            assertThat(contents(db.schema())).hasSizeGreaterThan(200).isEqualTo(contents(migrated));
        } finally {
            db.sql("drop schema " + migrated.name() + " cascade").update();
        }
    }

    @Test
    void nothingIsLeftToMigrate() {
        List<String> before = contents(db.schema());

        new SchemaMigrator(db.dataSource(), db.schema()).validate();
        new SchemaMigrator(db.dataSource(), db.schema()).migrate();

        assertThat(contents(db.schema())).isEqualTo(before);
    }

    /** Returns a line for each thing in the schema, and for each row that it has from the beginning. */
    private List<String> contents(WorkerSchema schema) {
        return JdbcClient.create(db.dataSource())
                .sql(schema.in("""
                        with things as (
                          select 'relation', relname, relkind::text, relrowsecurity::text, reloptions::text, relacl::text,
                            case when relkind = 'v' then pg_get_viewdef(oid) end
                          from pg_class where relnamespace = '{schema}'::regnamespace and relkind <> 'i'
                          union all
                          select 'column', attrelid::regclass::text, attnum::text, attname, format_type(atttypid, atttypmod),
                            attnotnull::text, concat(attidentity, ' ', attacl)
                          from pg_attribute where attnum > 0
                            and attrelid in (select oid from pg_class where relnamespace = '{schema}'::regnamespace)
                          union all
                          select 'default', adrelid::regclass::text, adnum::text, pg_get_expr(adbin, adrelid), null, null, null
                          from pg_attrdef where adrelid in (select oid from pg_class where relnamespace = '{schema}'::regnamespace)
                          union all
                          select 'index', indexrelid::regclass::text, pg_get_indexdef(indexrelid), indisvalid::text, null, null, null
                          from pg_index
                          where indrelid in (select oid from pg_class where relnamespace = '{schema}'::regnamespace and relkind = 'r')
                          union all
                          select 'constraint', conname, conrelid::regclass::text, pg_get_constraintdef(oid), null, null, null
                          from pg_constraint where connamespace = '{schema}'::regnamespace
                          union all
                          select 'function', proname, pg_get_functiondef(oid), proacl::text, null, null, null
                          from pg_proc where pronamespace = '{schema}'::regnamespace
                          union all
                          select 'trigger', tgname, pg_get_triggerdef(oid), null, null, null, null
                          from pg_trigger where not tgisinternal
                            and tgrelid in (select oid from pg_class where relnamespace = '{schema}'::regnamespace)
                          union all
                          select 'policy', polname, polrelid::regclass::text, polcmd::text, pg_get_expr(polqual, polrelid),
                            pg_get_expr(polwithcheck, polrelid), polroles::text
                          from pg_policy
                          where polrelid in (select oid from pg_class where relnamespace = '{schema}'::regnamespace)
                          union all
                          select 'history', version, description, type, script, success::text,
                            case when version is not null then checksum::text end -- of functions it depends on the schema
                          from {schema}.worker_flyway_history
                          union all
                          select 'ledger', id::text, breaking::text, null, null, null, null from {schema}.migrations
                        )
                        select replace(things::text, '%s', 'x') from things order by 1
                        """.formatted(schema.name())))
                .query(String.class)
                .list();
    }
}
