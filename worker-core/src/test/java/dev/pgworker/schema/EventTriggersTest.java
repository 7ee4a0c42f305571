package dev.pgworker.schema;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.postgresql.ds.PGSimpleDataSource;

import dev.pgworker.testing.OwnDatabase;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

/** A database whose administrators are told of each change of a definition. */
@Tag("thorough")
class EventTriggersTest {

    private static final WorkerSchema SCHEMA = new WorkerSchema("watched");

    private final OwnDatabase database = new OwnDatabase();

    @BeforeEach
    void create() {
        database.create();
    }

    @AfterEach
    void drop() {
        database.drop();
    }

    private SchemaMigrator migrator() {
        PGSimpleDataSource source = new PGSimpleDataSource();
        source.setUrl(database.url());
        return new SchemaMigrator(source, SCHEMA);
    }

    private String sql(String sql) {
        PGSimpleDataSource source = new PGSimpleDataSource();
        source.setUrl(database.url());
        try (Connection connection = source.getConnection();
                Statement statement = connection.createStatement()) {
            if (!statement.execute(sql)) {
                return "";
            }
            try (ResultSet row = statement.getResultSet()) {
                row.next();
                return row.getString(1);
            }
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    private void watch(String body) {
        sql("create table public.ddl_log (tag text)");
        sql("create function public.log_ddl() returns event_trigger language plpgsql as $$ begin " + body + " end $$");
        sql("create event trigger log_ddl on ddl_command_end execute function public.log_ddl()");
    }

    @Test
    void oneThatReliesOnTheSearchPathIsNamedWithTheRemedy() {
        watch("insert into ddl_log values (tg_tag);");

        assertThatExceptionOfType(SchemaException.class)
                .isThrownBy(() -> migrator().migrate())
                .withMessageContaining("relation \"ddl_log\" does not exist")
                .withMessageContaining("public.log_ddl()")
                .withMessageContaining("SET search_path");
        assertThat(sql("select count(*) from pg_namespace where nspname = 'watched'"))
                .isEqualTo("0");

        sql("alter function public.log_ddl() set search_path = public");
        migrator().migrate();
        migrator().validate();
        assertThat(sql("select count(*) > 100 from public.ddl_log")).isEqualTo("t");
    }

    @Test
    void oneThatRefusesIsQuoted() {
        watch("raise exception 'no changes on fridays';");

        assertThatExceptionOfType(SchemaException.class)
                .isThrownBy(() -> migrator().migrate())
                .withMessageContaining("no changes on fridays");
        assertThat(sql("select count(*) from pg_namespace where nspname = 'watched'"))
                .isEqualTo("0");
    }

    @Test
    void aSchemaThatHasLostItsHistoryIsAdoptedUnderOne() {
        migrator().migrate();
        sql("drop table watched.worker_flyway_history");
        watch("insert into public.ddl_log values (tg_tag);");

        migrator().migrate();

        migrator().validate();
        assertThat(sql("select count(*) > 100 from public.ddl_log")).isEqualTo("t");
    }
}
