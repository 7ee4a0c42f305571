package dev.pgworker.schema;

import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

import com.zaxxer.hikari.HikariDataSource;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.PGConnection;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.datasource.DelegatingDataSource;
import org.springframework.jdbc.datasource.DriverManagerDataSource;

import dev.pgworker.testing.ClaimSql;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Installing, adopting, checking and refusing schemas. Each test has a database of its own. */
class SchemaMigratorTest {

    private final JdbcClient admin = JdbcClient.create(new DriverManagerDataSource(TestPostgres.jdbcUrl()));
    private final String database = TestSchema.uniqueName().name();
    private final String role = database + "_role";
    private final WorkerSchema schema = new WorkerSchema("jobs_of_" + database);
    private HikariDataSource pool;
    private JdbcClient sql;

    /** Fails with each of these states in turn, and then no more. */
    private DelegatingDataSource failing(String... states) {
        Iterator<String> left = List.of(states).iterator();
        return new DelegatingDataSource(pool) {
            @Override
            public Connection getConnection() throws SQLException {
                if (left.hasNext()) {
                    throw new SQLException("on purpose", left.next());
                }
                return super.getConnection();
            }
        };
    }

    @Test
    @Tag("thorough")
    void aServerThatIsStartingUpIsWaitedFor() {
        new SchemaMigrator(failing("57P03", "57P03", "08001", "57P03"), schema)
                .apply(SchemaMode.MIGRATE, Duration.ofMinutes(1));

        assertThat(new SchemaMigrator(pool, schema).version()).isNotEmpty();
    }

    @Test
    void theWaitForAServerEnds() {
        String[] states = new String[100];
        Arrays.fill(states, "57P03");
        assertThatThrownBy(() ->
                        new SchemaMigrator(failing(states), schema).apply(SchemaMode.MIGRATE, Duration.ofMillis(600)))
                .isInstanceOfSatisfying(SchemaException.class, e -> {
                    assertThat(e.problem()).contains("still starting up");
                    assertThat(e.action()).contains("pgworker.schema.startup-timeout");
                });
    }

    @Test
    void aServerThatDoesNotAnswerAtAllIsNotWaitedFor() {
        assertThatThrownBy(() ->
                        new SchemaMigrator(failing("08001"), schema).apply(SchemaMode.MIGRATE, Duration.ofMinutes(1)))
                .isInstanceOf(SchemaException.class)
                .hasMessageContaining("cannot be reached");
    }

    @BeforeEach
    void createDatabase() {
        admin.sql("create database " + database).update();
        admin.sql("create role " + role + " login password 'secret'").update();
        pool = new HikariDataSource(TestSchema.poolConfig(url(), 1));
        sql = JdbcClient.create(pool);
    }

    @AfterEach
    void dropDatabase() {
        pool.close();
        admin.sql("select pg_terminate_backend(pid) from pg_stat_activity where datname = ?")
                .param(database)
                .query()
                .listOfRows();
        admin.sql("drop database " + database).update();
        admin.sql("drop role " + role).update();
    }

    @Test
    void installsIntoAnEmptyDatabaseOverAPoolOfOne() {
        migrator().migrate();

        assertThat(ledger()).hasSize(20).containsEntry(19, true).containsEntry(20, false);
        assertThat(value("select count(*) from {schema}.worker_flyway_history where success"))
                .isPositive();
        assertThatCode(() -> migrator().validate()).doesNotThrowAnyException();
        migrator().migrate();
    }

    @ParameterizedTest
    @CsvSource({
        "database %s, ALTER DATABASE %s RESET session_replication_role;",
        "role postgres in database %s, ALTER ROLE postgres IN DATABASE %s RESET session_replication_role;"
    })
    void aSettingWithWhichTriggersDoNotFireIsRefusedWithTheRemedy(String of, String remedy) {
        sql.sql("alter " + of.formatted(database) + " set session_replication_role = replica")
                .update();
        pool.getHikariPoolMXBean().softEvictConnections();

        assertThatExceptionOfType(SchemaException.class)
                .isThrownBy(() -> migrator().migrate())
                .satisfies(e -> assertThat(e.problem()).contains("session_replication_role = replica"))
                .satisfies(e -> assertThat(e.action()).isEqualTo(remedy.formatted(database)));
    }

    @Test
    void theConnectionGoesBackAsItWas() throws SQLException {
        try (var connection = pool.getConnection()) {
            connection.createStatement().execute("set search_path = pg_catalog");
        }
        migrator().migrate();

        try (var connection = pool.getConnection();
                var row = connection.createStatement().executeQuery("show search_path")) {
            row.next();
            assertThat(row.getString(1)).isEqualTo("pg_catalog");
            assertThat(connection.getAutoCommit()).isTrue();
        }
        assertThat(sql.sql("select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()")
                        .query(Long.class)
                        .single())
                .isZero();
    }

    @Test
    void nothingIsLeftOnTheSession() {
        migrator().migrate();

        assertThat(sql.sql(
                                "select name from pg_settings where source = 'session' and name !~ '^(application_name|extra_float_digits)$'")
                        .query(String.class)
                        .list())
                .isEmpty();
        assertThat(sql.sql("select count(*) from pg_class where relnamespace = pg_my_temp_schema()")
                        .query(Long.class)
                        .single())
                .isZero();
    }

    @Test
    void aSessionThatKeepsTheLockOfTheMigrationIsNamed() throws SQLException {
        try (var stranger = new DriverManagerDataSource(url() + "&ApplicationName=forgotten").getConnection();
                var statement = stranger.createStatement()) {
            statement.execute("select pg_advisory_lock(hashtextextended('pgworker schema " + schema.name() + "', 0))");
            int pid = stranger.unwrap(PGConnection.class).getBackendPID();

            assertThatExceptionOfType(SchemaException.class)
                    .isThrownBy(() -> new SchemaMigrator(
                                    pool, schema, PeerIndexes.AUTO, SchemaMigrator.MIGRATIONS, Duration.ofMillis(100))
                            .migrate())
                    .withMessageContaining("pid " + pid + ", forgotten, idle")
                    .withMessageContaining("pg_terminate_backend");
        }
        migrator().migrate();
    }

    @Test
    @Tag("thorough")
    void twentyConcurrentStartsInstallOnce() throws Exception {
        int starts = 20;
        CountDownLatch ready = new CountDownLatch(starts);
        ExecutorService executor = Executors.newFixedThreadPool(starts);
        List<Future<?>> results = new ArrayList<>();
        for (int i = 0; i < starts; i++) {
            results.add(executor.submit(() -> {
                var own = new DriverManagerDataSource(url());
                ready.countDown();
                ready.await();
                new SchemaMigrator(own, schema).migrate();
                return null;
            }));
        }
        for (Future<?> result : results) {
            result.get();
        }
        executor.shutdown();

        assertThat(ledger()).hasSize(20);
        assertThat(value("select count(*) from {schema}.worker_flyway_history where version = '1'"))
                .isEqualTo(1);
    }

    @Test
    void validateRefusesAMissingSchemaAndChangesNothing() {
        assertThatExceptionOfType(SchemaException.class)
                .isThrownBy(() -> migrator().validate())
                .satisfies(e -> assertThat(e.problem()).contains(schema.name(), "not installed"))
                .satisfies(e -> assertThat(e.action()).contains("pgworker.schema.mode=migrate"));
        assertThat(sql.sql("select count(*) from pg_namespace where nspname = ?")
                        .param(schema.name())
                        .query(Long.class)
                        .single())
                .isZero();
    }

    // Functions, which are applied again when their text has changed

    @Test
    void validateTellsFunctionsThatAreMissingOrOfAnotherVersion() {
        migrator().migrate();
        SchemaMigrator next = of(new OtherVersion()
                .with("R__01_helpers.sql", "'1 second'", "'2 seconds'")
                .with("R__02_notes.sql", NOTES));

        assertThatExceptionOfType(SchemaException.class)
                .isThrownBy(next::validate)
                .satisfies(e -> assertThat(e.problem())
                        .contains(
                                schema.name(),
                                "not up to date",
                                "not applied: R__02_notes.sql; functions of another version: R__01_helpers.sql"))
                .satisfies(e -> assertThat(e.action()).contains("pgworker.schema.mode=migrate", "owns the schema"));
        assertThat(backoff()).as("nothing was changed").isEqualTo(1);
    }

    @Test
    void aFunctionWhoseTextHasChangedIsAppliedAgainAndKeepsItsRights() {
        migrator().migrate();
        sql.sql(schema.in("grant execute on function {schema}.pgworker_backoff to " + role))
                .update();
        sql.sql(schema.in("grant execute on function {schema}.complete_jobs to public"))
                .update();
        String before = rights();
        SchemaMigrator next = of(new OtherVersion()
                .with("R__01_helpers.sql", "'1 second'", "'2 seconds'")
                .with("R__40_administration.sql", "perform set_config", "perform  set_config")
                .with("R__90_shared_rights.sql", "-- Rights", "-- The rights"));

        next.migrate();

        assertThat(backoff()).isEqualTo(2);
        assertThat(rights()).isEqualTo(before);
        next.validate();
        assertThat(value("select count(*) from {schema}.worker_flyway_history where description = '20 claim'"))
                .as("how often a file was applied that has not changed")
                .isEqualTo(1);
    }

    @Test
    void anOlderVersionLeavesTheFunctionsOfANewerOne() {
        migrator().migrate();
        of(new OtherVersion()
                        .with("V2__next.sql", "create table \"${schema}\".pgworker_notes (note text);")
                        .with("R__01_helpers.sql", "'1 second'", "'2 seconds'")
                        .with("R__02_notes.sql", NOTES))
                .migrate();

        migrator().migrate();
        migrator().validate();

        assertThat(backoff()).isEqualTo(2);
        assertThat(migrator().version()).isEqualTo("2");
    }

    @Test
    void aFailureInTheLastFileLeavesNothingOfTheOthers() {
        SchemaMigrator failing = of(new OtherVersion().with("R__99_failing.sql", "select 1 / 0;"));

        assertThatExceptionOfType(SchemaException.class)
                .isThrownBy(failing::migrate)
                .satisfies(e -> assertThat(e.problem()).contains("division by zero"));

        assertThat(sql.sql("select count(*) from pg_namespace where nspname = ?")
                        .param(schema.name())
                        .query(Long.class)
                        .single())
                .isZero();
        migrator().migrate();
        migrator().validate();
    }

    @Test
    void aFailureInTheLastFileOfAnUpgradeLeavesNothingOfIt() {
        migrator().migrate();
        SchemaMigrator failing = of(new OtherVersion()
                .with("V2__next.sql", "create table \"${schema}\".pgworker_notes (note text);")
                .with("R__01_helpers.sql", "'1 second'", "'2 seconds'")
                .with("R__99_failing.sql", "select 1 / 0;"));

        assertThatExceptionOfType(SchemaException.class).isThrownBy(failing::migrate);

        assertThat(backoff()).isEqualTo(1);
        assertThat(value("select count(*) from pg_class where relname = 'pgworker_notes'"))
                .isZero();
        migrator().validate();
    }

    @Test
    void theRightsOnEachFunctionOfOursAreStated() {
        migrator().migrate();
        assertThat(sql.sql(schema.in("""
                                select proname from pg_proc
                                where pronamespace = '{schema}'::regnamespace and proname like 'pgworker\\_%' and proacl is null
                                """)).query(String.class).list()).isEmpty();
    }

    /** Also that the checksums are those of the present Flyway. */
    @Test
    void aStartDoesWithoutFlywayIfNothingHasChanged() throws SQLException {
        migrator().migrate();
        String other = new OtherVersion()
                .with("R__01_helpers.sql", "'1 second'", "'2 seconds'")
                .write();

        assertThat(unchanged(SchemaMigrator.MIGRATIONS))
                .hasSizeGreaterThan(20)
                .startsWith("V1__baseline.sql", "R__00_indexes.sql")
                .endsWith("R__90_shared_rights.sql");
        assertThat(unchanged(other)).as("with another text").isNull();
        of(new OtherVersion().with("R__02_notes.sql", NOTES)).migrate();
        assertThat(unchanged(SchemaMigrator.MIGRATIONS)).as("with a file more").isNull();
    }

    private @Nullable List<String> unchanged(String location) throws SQLException {
        try (Connection connection = pool.getConnection()) {
            return new MigrationFiles(schema, location).unchanged(connection, "worker_flyway_history");
        }
    }

    private static final String NOTES = """
            create or replace function "${schema}".pgworker_notes() returns int language sql as 'select 1';
            """;

    private SchemaMigrator of(OtherVersion version) {
        return new SchemaMigrator(pool, schema, PeerIndexes.AUTO, version.write(), SchemaMigrator.LONGEST_WAIT);
    }

    /** The delay after the first attempt, in whole seconds. */
    /** How often the first delay is as long as it should be; it is spread at random. */
    private long backoff() {
        return value("select round(extract(epoch from {schema}.pgworker_backoff(1)) / 2.6)");
    }

    private String rights() {
        return sql.sql(schema.in("""
                        select string_agg(concat(oid, proname, proacl), ' ' order by oid) from pg_proc
                        where pronamespace = '{schema}'::regnamespace
                        """)).query(String.class).single();
    }

    /** Turns a fresh installation into what a peer leaves behind: no functions, history or workers of ours. */
    private void pretendInstalledByNode(int ledger) {
        migrator().migrate();
        sql.sql(schema.in("""
                        do $$ declare f regprocedure; begin
                          for f in select p.oid::regprocedure from pg_proc p
                            where p.pronamespace = '{schema}'::regnamespace
                              and (p.proname like 'pgworker%' or p.proname like '%worker%' or p.proname like 'add_job%')
                          loop execute 'drop function ' || f || ' cascade'; end loop;
                        end $$;
                        drop table {schema}.worker_flyway_history, {schema}._private_workers;
                        drop index {schema}.pgworker_jobs_unqueued, {schema}.pgworker_jobs_queued,
                          {schema}.pgworker_jobs_of_queue;
                        create index jobs_main_index on {schema}._private_jobs (priority, run_at)
                          include (id, task_id, job_queue_id) where is_available;
                        insert into {schema}._private_tasks (identifier) values ('kept');
                        insert into {schema}._private_job_queues (queue_name, locked_at, locked_by)
                          values ('kept', now(), 'worker-1');
                        insert into {schema}._private_jobs (task_id, job_queue_id, key, payload, locked_at, locked_by, attempts)
                          values (1, 1, 'k', '{"a":1}', now(), 'worker-1', 1);
                        insert into {schema}._private_jobs (task_id, payload) select 1, to_json(n) from generate_series(1, 100) n
                        """)).update();
        sql.sql(schema.in("delete from {schema}.migrations where id > ?"))
                .param(ledger)
                .update();
    }

    @ParameterizedTest
    @ValueSource(ints = {18, 19, 20})
    void adoptsAnExistingInstallationWithEveryJob(int ledger) throws SQLException {
        pretendInstalledByNode(ledger);
        String before = jobs();

        int breakingAnnounced;
        try (var listening = new DriverManagerDataSource(url()).getConnection()) {
            listening.createStatement().execute("listen \"worker:migrate\"");
            migrator().migrate();
            breakingAnnounced = listening.unwrap(PGConnection.class).getNotifications(500).length;
        }

        assertThat(jobs()).isEqualTo(before);
        assertThat(ledger()).hasSize(20).containsEntry(19, true);
        assertThat(breakingAnnounced).isEqualTo(ledger < 19 ? 1 : 0);
        assertThat(value("select ({schema}.add_job('kept', job_key => 'k')).id"))
                .isPositive();
        assertThat(value("select count(*) from " + ClaimSql.claim("'w'", "1000") + " c"))
                .isEqualTo(101);
        assertThatCode(() -> migrator().validate()).doesNotThrowAnyException();
    }

    @Test
    void refusesAnOlderLedgerAndChangesNothing() {
        pretendInstalledByNode(17);

        assertThatExceptionOfType(SchemaException.class)
                .isThrownBy(() -> migrator().migrate())
                .satisfies(e -> assertThat(e.problem()).contains("17", "18"))
                .satisfies(e -> assertThat(e.action()).contains("graphile-worker"));
        assertThat(ledger()).hasSize(17);
    }

    @Test
    void refusesAnUnknownBreakingMigrationAndToleratesAnotherOne() {
        migrator().migrate();
        sql.sql(schema.in("insert into {schema}.migrations values (21, now(), false)"))
                .update();
        migrator().migrate();

        sql.sql(schema.in("insert into {schema}.migrations values (22, now(), true)"))
                .update();
        assertThatExceptionOfType(SchemaException.class)
                .isThrownBy(() -> migrator().migrate())
                .satisfies(e -> assertThat(e.problem()).contains("22", "breaking"));
        assertThatExceptionOfType(SchemaException.class)
                .isThrownBy(() -> migrator().validate());
    }

    @Test
    void restoresFunctionsThatAnotherWorkerReplacedAndKeepsTheJobs() {
        migrator().migrate();
        sql.sql(schema.in("select {schema}.add_job('kept')")).query().singleRow();
        sql.sql(schema.in("""
                        create or replace function {schema}.remove_job(job_key text) returns {schema}._private_jobs
                        language sql strict as $$ select null::{schema}._private_jobs $$
                        """)).update();
        sql.sql(schema.in("insert into {schema}.migrations values (21), (22)")).update();

        migrator().migrate();

        assertThat(value("select count(*) from {schema}._private_jobs")).isEqualTo(1);
        assertThat(sql.sql(schema.in("select prosrc from pg_proc where oid = '{schema}.remove_job'::regproc"))
                        .query(String.class)
                        .single())
                .contains("pgworker_");
        assertThat(value("select max(id) from {schema}.migrations")).isEqualTo(22);
    }

    @Test
    void refusesAnOldServer() {
        assertThatExceptionOfType(SchemaException.class)
                .isThrownBy(() -> ServerCheck.checkVersion(110022, "11.22"))
                .satisfies(e -> assertThat(e.problem()).contains("11.22", "12"));
    }

    @Test
    void aUserWithoutPrivilegesIsToldWhatToGrant() {
        assertThatExceptionOfType(SchemaException.class)
                .isThrownBy(() -> asRole().migrate())
                .satisfies(e -> assertThat(e.problem()).contains(role, "create schema"))
                .satisfies(e -> assertThat(e.action())
                        .contains("CREATE SCHEMA \"" + schema.name() + "\" AUTHORIZATION \"" + role + "\""));

        sql.sql("create schema " + schema.name()).update();
        sql.sql("grant usage on schema " + schema.name() + " to " + role).update();
        assertThatExceptionOfType(SchemaException.class)
                .isThrownBy(() -> asRole().migrate())
                .satisfies(e -> assertThat(e.action()).contains("GRANT CREATE, USAGE ON SCHEMA"));
    }

    @Test
    void aUserThatOwnsOnlyThePreparedSchemaMayInstall() {
        sql.sql("create schema " + schema.name() + " authorization " + role).update();

        asRole().migrate();

        assertThat(ledger()).hasSize(20);
    }

    @Test
    void aUserThatMayOnlyUseAnUpToDateSchemaMayStart() {
        migrator().migrate();
        sql.sql(schema.in("grant usage on schema {schema} to " + role)).update();
        sql.sql(schema.in("grant select, insert, update, delete on all tables in schema {schema} to " + role))
                .update();
        sql.sql(schema.in("grant execute on all functions in schema {schema} to " + role))
                .update();
        for (String table : List.of("jobs", "job_queues", "tasks")) {
            sql.sql(schema.in("create policy worker on {schema}._private_" + table + " to " + role + " using (true)"))
                    .update();
        }

        asRole().migrate();
        asRole().validate();

        JdbcClient user = JdbcClient.create(new DriverManagerDataSource(plainUrl(), role, "secret"));
        user.sql(schema.in("select {schema}.add_job('hello', job_key => 'k')"))
                .query()
                .singleRow();
        user.sql(schema.in(
                        "select {schema}.add_jobs(array[('a',null,null,null,null,'x',null,null)::{schema}.job_spec])"))
                .query()
                .singleRow();
        assertThat(user.sql(schema.in("select count(*) from " + ClaimSql.claim("'w'", "10") + " c"))
                        .query(Long.class)
                        .single())
                .isEqualTo(2);
    }

    @Test
    void wrongCredentialsAreNamed() {
        var wrong = new DriverManagerDataSource(plainUrl(), "no_such_role", "wrong");
        assertThatExceptionOfType(SchemaException.class)
                .isThrownBy(() -> new SchemaMigrator(wrong, schema).migrate())
                .satisfies(e -> assertThat(e.problem()).contains("refused the login"))
                .satisfies(e -> assertThat(e.action()).contains("spring.datasource.password"));
    }

    @Test
    void aMissingDatabaseAndAMissingServerAreNamed() {
        assertThatExceptionOfType(SchemaException.class)
                .isThrownBy(() -> new SchemaMigrator(
                                new DriverManagerDataSource(url().replace(database, "no_such_database")), schema)
                        .migrate())
                .satisfies(e -> assertThat(e.problem()).contains("does not exist"));
        assertThatExceptionOfType(SchemaException.class)
                .isThrownBy(() -> new SchemaMigrator(
                                new DriverManagerDataSource("jdbc:postgresql://127.0.0.1:1/x?user=x"), schema)
                        .migrate())
                .satisfies(e -> assertThat(e.problem()).contains("cannot be reached"));
    }

    @Test
    void modesDoWhatTheySay() {
        migrator().apply(SchemaMode.NONE);
        assertThatExceptionOfType(SchemaException.class)
                .isThrownBy(() -> migrator().apply(SchemaMode.VALIDATE));
        migrator().apply(SchemaMode.MIGRATE);
        migrator().apply(SchemaMode.VALIDATE);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "Jobs", "pg_jobs", "a-b", "a b", "1a", "a\"b"})
    void schemaNamesThatWouldNeedQuotesAreRefused(String name) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new WorkerSchema(name))
                .withMessageContaining("lower-case");
    }

    private SchemaMigrator migrator() {
        return new SchemaMigrator(pool, schema);
    }

    private SchemaMigrator asRole() {
        return new SchemaMigrator(new DriverManagerDataSource(plainUrl(), role, "secret"), schema);
    }

    private Map<Integer, Boolean> ledger() {
        Map<Integer, Boolean> ledger = new java.util.TreeMap<>();
        sql.sql(schema.in("select id, breaking from {schema}.migrations")).query(row -> {
            ledger.put(row.getInt(1), row.getBoolean(2));
        });
        return ledger;
    }

    private String jobs() {
        return sql.sql(schema.in("select json_agg(j order by id)::text from {schema}._private_jobs j"))
                .query(String.class)
                .single();
    }

    private long value(String query) {
        return sql.sql(schema.in(query)).query(Long.class).single();
    }

    private String url() {
        return TestPostgres.jdbcUrl().replaceFirst("/[^/?]*(\\?|$)", "/" + database + "$1");
    }

    /** The URL without the user and password it may carry. */
    private String plainUrl() {
        return url().replaceFirst("\\?.*", "");
    }
}
