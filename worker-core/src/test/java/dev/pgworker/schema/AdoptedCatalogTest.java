package dev.pgworker.schema;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;

import com.zaxxer.hikari.HikariDataSource;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.jdbc.core.simple.JdbcClient;
import tools.jackson.databind.JsonNode;

import dev.pgworker.Worker;
import dev.pgworker.job.Task;
import dev.pgworker.task.JobContext;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Schemas as administrators leave them: what they have set stays, or the schema is refused before anything is changed. */
class AdoptedCatalogTest {

    private final String url = TestPostgres.newDatabase("catalog");
    private final WorkerSchema schema = new WorkerSchema("jobs_of_peers");
    private final String role =
            "role_" + url.substring(url.lastIndexOf('_') + 1).replaceAll("\\W.*", "");
    private HikariDataSource pool;
    private JdbcClient sql;

    @BeforeEach
    void open() {
        pool = new HikariDataSource(TestSchema.poolConfig(url, 8));
        sql = JdbcClient.create(pool);
        run("create role " + role);
    }

    @AfterEach
    void close() {
        run("reassign owned by " + role + " to current_user");
        run("drop owned by " + role);
        run("drop role " + role);
        pool.close();
        TestPostgres.drop(url);
    }

    // The ledger

    @ParameterizedTest
    @ValueSource(
            strings = {
                "id int primary key, ts timestamptz default now() not null",
                "id int primary key, ts timestamptz default now() not null, breaking boolean not null default false",
                "ts timestamptz default now(), note text, id bigint"
            })
    void anEmptyLedgerIsInstalledInto(String columns) {
        run("create schema {schema}");
        run("create table {schema}.migrations (" + columns + ")");

        migrator().migrate();

        migrator().validate();
        assertThat(value(
                        "select count(*) from {schema}.migrations where breaking = (id in (1, 3, 11, 13, 14, 16, 19))"))
                .isEqualTo(20);
        runJobs();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "id int primary key, ts timestamptz default now() not null",
                "id int primary key, breaking boolean"
            })
    void anOldOneIsRefusedWithTheCommandThatUpgradesIt(String columns) {
        run("create schema {schema}");
        run("create table {schema}.migrations (" + columns + ")");
        run("insert into {schema}.migrations (id) select generate_series(1, 14)");

        assertRefused(
                "ends with id 14", "npx graphile-worker@0.16.6 --schema-only --schema jobs_of_peers --connection");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "create table {schema}.migrations (version text) | has no column id",
                "create table {schema}.jobs (id int) | has a table or view \"jobs\", but no table \"migrations\"",
                "create table {schema}.migrations (id int); create table {schema}._private_jobs (id int) | has a table or view \"_private_jobs\""
            })
    void tablesThatAreNotOfTheQueueAreRefused(String statement, String problem) {
        run("create schema {schema}");
        run(statement);
        assertRefused(problem, "pgworker.schema.name");
    }

    // Functions

    private static final String ATTRIBUTES = """
            select p.proname || '/' || p.pronargs as function, array[p.proowner::text, p.prosecdef::text, p.provolatile::text,
              p.proparallel::text, p.procost::text, p.prorows::text, p.proisstrict::text, p.proleakproof::text, p.proacl::text,
              obj_description(p.oid)]::text || array(
                select s from unnest(p.proconfig) s where s ~ '^(search_path|work_mem|DateStyle|application_name)=' order by 1)::text
            from pg_proc p where p.pronamespace = 'jobs_of_peers'::regnamespace and p.proname not like 'pgworker%'""";

    @Test
    void whatAnAdministratorHasSetOnFunctionsStays() {
        installPeer();
        for (String function : Catalog.SHARED_FUNCTIONS) {
            String changed = "{schema}." + function;
            run("alter function " + changed + " security definer parallel restricted cost 7 set work_mem = '12MB'"
                    + " set search_path = \"Strange, 'schema'\", \"$user\", {schema}, pg_temp set \"DateStyle\" = 'ISO, MDY'"
                    + " set application_name = 'it''s \\ it' set work_mem = '13MB'");
            run("alter function " + changed + " owner to " + role);
            run("comment on function " + changed + " is 'Ours since 2021; ask ''Ada'''");
            run("grant execute on function " + changed + " to " + role);
        }
        run("alter function {schema}.list_stale_workers stable rows 5");
        run("alter function {schema}.add_jobs strict leakproof set search_path = ''");
        Map<String, String> before = attributes();

        migrator().migrate();
        assertThat(attributes()).as("adopted").isEqualTo(before);

        OtherVersion next = new OtherVersion();
        for (String file : List.of(
                "R__12_add_jobs.sql",
                "R__30_workers.sql",
                "R__31_recover.sql",
                "R__11_keys.sql",
                "R__40_administration.sql")) {
            next.with(file, "returns", "  returns");
        }
        new SchemaMigrator(pool, schema, PeerIndexes.AUTO, next.write(), Duration.ofMinutes(1)).migrate();
        assertThat(attributes()).as("upgraded").isEqualTo(before);

        migrator().migrate();
        run(
                "create or replace function {schema}.worker_deregister(worker_id text) returns void language sql as 'select'");
        run("alter function {schema}.worker_deregister(text) security definer cost 3");
        migrator().migrate();
        assertThat(value("""
                        select count(*) from pg_proc where proname = 'worker_deregister' and prosecdef and procost = 3
                          and proconfig = '{"search_path=pg_catalog, pg_temp"}' and prosrc like '%pgworker_batches%'""")).as("restored").isEqualTo(1);
    }

    @Test
    void aLaterVersionTakesBackWhatAnEarlierOneHasSet() {
        migrator().migrate();
        String next = new OtherVersion()
                .with("V2__next.sql", "alter function \"${schema}\".force_unlock_workers reset search_path;")
                .with(
                        "R__31_recover.sql",
                        "language sql volatile\nset search_path = pg_catalog, pg_temp as $$\n  select \"${schema}\".pgworker_force",
                        "language sql volatile as $$\n  select \"${schema}\".pgworker_force")
                .write();
        new SchemaMigrator(pool, schema, PeerIndexes.AUTO, next, Duration.ofMinutes(1)).migrate();
        assertThat(value("select count(*) from pg_proc where proname = 'force_unlock_workers' and proconfig is null"))
                .isEqualTo(1);
    }

    private Map<String, String> attributes() {
        return sql.sql(ATTRIBUTES).query((row, n) -> Map.entry(row.getString(1), row.getString(2))).stream()
                .collect(java.util.stream.Collectors.toMap(Map.Entry::getKey, Map.Entry::getValue));
    }

    @Test
    void whoeverAddsJobsWithTheRightsOfTheOwnerGoesOnDoingSo() {
        installPeer();
        run("alter function {schema}.add_job security definer set search_path = jobs_of_peers, pg_temp");
        run("alter function {schema}.add_jobs security definer set search_path = jobs_of_peers, pg_temp");
        run("grant usage on schema {schema} to " + role);
        run("revoke execute on function {schema}.add_job, {schema}.add_jobs from public");
        run("grant execute on function {schema}.add_job, {schema}.add_jobs to " + role);

        migrator().migrate();

        asRole("select {schema}.add_job('t', job_key => 'k', queue_name => 'q', flags => '{f}')");
        asRole("select {schema}.add_job('t', job_key => 'k', job_key_mode => 'preserve_run_at')");
        asRole(
                "select {schema}.add_jobs(array[('t', '{}', 'q', null, null, 'k', null, '{f}'), ('t', '{}', null, null, null, null, 3, null)]"
                        + "::{schema}.job_spec[])");
        runJobs();
    }

    @Test
    void aFunctionThatDoesNotFitIsRefused() {
        installPeer();
        run("drop function {schema}.complete_jobs(bigint[])");
        run("create function {schema}.complete_jobs(ids bigint[]) returns int language sql as 'select 1'");
        assertRefused(
                "function jobs_of_peers.complete_jobs(ids bigint[])",
                "DROP FUNCTION jobs_of_peers.complete_jobs(ids bigint[]);");
    }

    @Test
    void functionsOfARoleThatTheMigratingOneIsNotInAreRefused() {
        installPeer();
        run("alter function {schema}.add_job owner to postgres");
        run("grant create, usage on schema {schema} to " + role);
        for (String relation : sql.sql(
                        "select relname from pg_class where relnamespace = 'jobs_of_peers'::regnamespace and relkind in ('r', 'v')")
                .query(String.class)
                .list()) {
            run("alter table {schema}." + relation + " owner to " + role);
        }
        try (HikariDataSource own = new HikariDataSource(withRole())) {
            assertThatThrownBy(() -> new SchemaMigrator(own, schema).migrate())
                    .isInstanceOfSatisfying(SchemaException.class, e -> {
                        assertThat(e.problem())
                                .contains("tables or functions of it belong to postgres and not to user");
                        assertThat(e.action()).contains("GRANT postgres TO \"" + role + "\"");
                    });
        }
    }

    private com.zaxxer.hikari.HikariConfig withRole() {
        var config = TestSchema.poolConfig(url, 1);
        config.setConnectionInitSql("set role " + role);
        return config;
    }

    // Tables

    @Test
    void ownTriggersRowSecurityColumnsAndIndexesStay() {
        installPeer();
        run("create schema audit");
        run("create table audit.entries (at timestamptz default now(), what text)");
        run("""
                create function audit.note() returns trigger language plpgsql as $$
                begin
                  insert into audit.entries (what) values (concat(tg_op, ' ', tg_table_name, ' ', current_setting('search_path')));
                  return coalesce(new, old);
                end $$""");
        for (String table : List.of("_private_jobs", "_private_job_queues", "_private_tasks")) {
            run("create trigger note before insert or update or delete on {schema}." + table
                    + " for each row execute function audit.note()");
            run("alter table {schema}." + table
                    + " add column tenant text not null default 'none', add column gone int");
            run("alter table {schema}." + table + " drop column gone");
            run("create index on {schema}." + table + " (tenant)");
            run("create policy mine on {schema}." + table + " for select to " + role + " using (tenant = 'none')");
            run("alter table {schema}." + table + " force row level security");
            run("comment on table {schema}." + table + " is 'theirs'");
        }
        run("alter table {schema}._private_known_crontabs disable row level security, add column tenant text");
        run("comment on type {schema}.job_spec is 'theirs'");
        String before = tables();

        migrator().migrate();
        assertThat(tables()).isEqualTo(before);

        runJobs();
        assertThat(value("select count(*) from audit.entries where what like 'DELETE _private_jobs %'"))
                .isPositive();
        migrator().validate();
    }

    private String tables() {
        return sql.sql("""
                        select string_agg(d.text, '; ' order by d.text) from (
                          select format('%s.%s %s %s %s', c.relname, a.attname, a.attnum, a.atttypid, a.attnotnull)
                          from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
                          where c.relnamespace = 'jobs_of_peers'::regnamespace and c.relname like '\\_private%' and c.relkind = 'r' and c.relname <> '_private_workers'
                          union all
                          select format('%s %s %s %s', relname, relrowsecurity, relforcerowsecurity, obj_description(oid)) from pg_class
                          where relnamespace = 'jobs_of_peers'::regnamespace and relname like '\\_private%' and relkind = 'r' and relname <> '_private_workers'
                          union all
                          select obj_description('jobs_of_peers.job_spec'::regtype)
                          union all
                          select pg_get_triggerdef(g.oid) from pg_trigger g where g.tgname = 'note'
                          union all
                          select p::text from pg_policies p
                          union all
                          select indexdef from pg_indexes where schemaname = 'jobs_of_peers' and indexname like '%tenant%') d(text)""").query(String.class).single();
    }

    @Test
    void aTriggerThatReliesOnTheSearchPathOfItsCallerIsRefusedWithTheRemedy() {
        installPeer();
        run("create table public.log_of_jobs (what text)");
        run("""
                create function public.note() returns trigger language plpgsql as $$
                begin insert into Log_of_jobs values (tg_op); return null; end $$""");
        run("create trigger note after insert on {schema}._private_jobs execute function public.note()");

        SchemaException refusal = assertRefused(
                "trigger note on _private_jobs calls public.note, which names \"log_of_jobs\" without its schema",
                "ALTER FUNCTION public.note() SET search_path = \"$user\", public; ");
        run(refusal.action().replaceFirst(".*(ALTER FUNCTION [^;]+;).*", "$1"));

        migrator().migrate();
        run("select {schema}.add_job('t')");
        run("select {schema}.add_jobs(array[('t', '{}', 'q', null, null, 'k', null, null)]::{schema}.job_spec[])");
        assertThat(value("select count(*) from public.log_of_jobs")).isEqualTo(2);
    }

    @Test
    void rowSecurityThatHidesTheJobsFromTheirOwnerIsRefusedWithTheRemedy() {
        installPeer();
        run("alter table {schema}._private_jobs owner to " + role);
        run("alter table {schema}._private_jobs force row level security");

        SchemaException refusal = assertRefused(
                "table _private_jobs forces row level security on its owner",
                "CREATE POLICY " + role + " ON jobs_of_peers._private_jobs TO " + role + " USING (true);");
        run(refusal.action().replaceFirst(".*(CREATE POLICY [^;]+;).*", "$1"));

        migrator().migrate();
    }

    @Test
    void aColumnThatIsNotTheirsIsRefused() {
        installPeer();
        run("drop view {schema}.jobs");
        run("alter table {schema}._private_jobs alter column priority type int");
        assertRefused("column _private_jobs.priority is not of type smallint", "Restore the column");
    }

    // What the tests use

    private SchemaMigrator migrator() {
        return new SchemaMigrator(pool, schema);
    }

    private SchemaException assertRefused(String problem, String action) {
        String before = all();
        SchemaException[] refusal = new SchemaException[1];
        assertThatThrownBy(() -> migrator().migrate()).isInstanceOfSatisfying(SchemaException.class, e -> {
            assertThat(e.problem()).contains(problem);
            assertThat(e.action()).contains(action);
            refusal[0] = e;
        });
        assertThat(all()).isEqualTo(before);
        return refusal[0];
    }

    private String all() {
        return sql.sql("""
                        select string_agg(o.text, '; ' order by o.text) from (
                          select p.oid::regprocedure || p.prosrc from pg_proc p where p.pronamespace = 'jobs_of_peers'::regnamespace
                          union all
                          select c.relname || a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid
                          where c.relnamespace = 'jobs_of_peers'::regnamespace) o(text)""").query(String.class).single();
    }

    /** Adds jobs in each way, has some fail, and changes some as an administrator does. */
    private void runJobs() {
        run(
                "select count({schema}.add_job('t', '{}', queue_name => 'lane' || n % 3, job_key => 'k' || n)) from generate_series(1, 20) n");
        run(
                "select {schema}.add_jobs(array[('t', '{}', 'q', null, null, 'b', null, '{f}'), ('t', '{}', null, null, null, null, 3, null)]::{schema}.job_spec[])");
        run("select {schema}.remove_job('k1')");
        run("select {schema}.permanently_fail_jobs(array(select id from {schema}.jobs where key in ('k2', 'k3')))");
        run("select {schema}.reschedule_jobs(array(select id from {schema}.jobs where key = 'k2'), attempts => 0)");
        run("select {schema}.complete_jobs(array(select id from {schema}.jobs where key = 'k3'))");
        Worker worker = Worker.builder(pool)
                .schema(schema)
                .tasks(List.of(
                        TaskRegistration.of(Task.of("t", JsonNode.class), AdoptedCatalogTest::failOnce),
                        TaskRegistration.of(Task.of("task", JsonNode.class), (payload, context) -> {})))
                .build();
        worker.start();
        try {
            Awaitility.await().until(() -> value("select count(*) from {schema}.jobs where attempts = 0") == 0);
            Awaitility.await()
                    .until(() -> value("select count(*) from {schema}.jobs where locked_at is not null") == 0);
            run("select {schema}.reschedule_jobs(array(select id from {schema}.jobs), run_at => now())");
            Awaitility.await().until(() -> value("select count(*) from {schema}.jobs") == 0);
        } finally {
            worker.stop();
        }
    }

    private static void failOnce(JsonNode payload, JobContext context) {
        if (context.job().attempts() == 1) {
            throw new IllegalStateException("once");
        }
    }

    private void installPeer() {
        for (String script : List.of("peer.sql", "peer-recovery.sql")) {
            try (InputStream text = Objects.requireNonNull(AdoptedCatalogTest.class.getResourceAsStream(script))) {
                run(new String(text.readAllBytes(), StandardCharsets.UTF_8).replace("${schema}", schema.name()));
            } catch (IOException e) {
                throw new AssertionError(e);
            }
        }
    }

    private void asRole(String statement) {
        try (Connection connection = pool.getConnection()) {
            connection.createStatement().execute("set role " + role);
            connection.createStatement().execute(schema.in(statement));
            connection.createStatement().execute("reset role");
        } catch (SQLException e) {
            throw new AssertionError(e);
        }
    }

    private void run(String statements) {
        try (Connection connection = pool.getConnection()) {
            connection.createStatement().execute(schema.in(statements));
        } catch (SQLException e) {
            throw new AssertionError(e);
        }
    }

    private long value(String query) {
        return sql.sql(schema.in(query)).query(Long.class).single();
    }
}
