package dev.pgworker.schema;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;

import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import com.zaxxer.hikari.HikariDataSource;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.slf4j.LoggerFactory;
import org.springframework.jdbc.core.simple.JdbcClient;
import tools.jackson.databind.JsonNode;

import dev.pgworker.Worker;
import dev.pgworker.job.Task;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testing.OwnThread;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Installing, adopting and upgrading a schema while others work on it. Each test has a database of its own. */
@Tag("thorough")
class AdoptionTest {

    /** The next version, as it might be. Nothing that workers of this version use is taken away or means something else. */
    private static final String UPGRADED = new OtherVersion()
            .with("V2__next.sql", """
                    create table "${schema}".pgworker_notes (
                      job_id bigint constraint pgworker_notes_pkey primary key,
                      note text not null
                    );
                    """)
            .with("R__02_next.sql", """
                    create or replace function "${schema}".pgworker_wake_2(job_count bigint, reason text) returns void
                    language plpgsql volatile as $$
                    begin
                      perform "${schema}".pgworker_wake(job_count);
                    end
                    $$;
                    """)
            .with(
                    "R__00_indexes.sql",
                    "  values\n",
                    "  values\n    ('pgworker_jobs_created', '_private_jobs', '(created_at)', false),\n")
            .with(
                    "R__30_workers.sql",
                    "  delete from \"${schema}\"._private_workers w",
                    "  -- version 2\n  delete from \"${schema}\"._private_workers w")
            .write();

    /** What a statement of others may take, which is a wait of 400 ms and the migration, on a machine that is twenty times busier. */
    private static final Duration PATIENCE = Duration.ofMinutes(1);

    private final String url = TestPostgres.newDatabase("adoption");
    private final WorkerSchema schema = new WorkerSchema("jobs_of_peers");
    private final Logger logger = (Logger) LoggerFactory.getLogger("dev.pgworker.schema");
    private final ListAppender<ILoggingEvent> log = new ListAppender<>();
    private HikariDataSource pool;
    private JdbcClient sql;

    @BeforeEach
    void open() {
        pool = new HikariDataSource(TestSchema.poolConfig(url, 8));
        sql = JdbcClient.create(pool);
        log.start();
        logger.addAppender(log);
    }

    @AfterEach
    void close() {
        logger.detachAppender(log);
        pool.close();
    }

    // Others go on

    @ParameterizedTest
    @ValueSource(strings = {"node", "rust"})
    void othersGoOnWhileTheirInstallationIsAdopted(String peer) {
        installPeer(peer);
        try (PeerStandIn peers = PeerStandIn.start(url, schema)) {
            migrator().migrate();
            peers.goOn();
            assertThat(peers.errors()).isEmpty();
            assertThat(peers.slowest()).isLessThan(PATIENCE);
        }
        assertThat(notOfThePeers("_private_jobs")).isEmpty();
        assertThat(unfinishedIndexes()).isEmpty();
        migrator().validate();
    }

    @Test
    void othersSeeNothingOrTheWholeInterfaceWhileTheSchemaIsInstalled() {
        try (PeerStandIn peers = PeerStandIn.startBeforeTheSchema(url, schema)) {
            migrator().migrate();
            peers.goOn();
            assertThat(peers.errors()).isEmpty();
        }
    }

    @Test
    void ofAnAdoptionThatFindsTheTablesInUseOthersNoticeNothing() throws Exception {
        installPeer("node");
        try (PeerStandIn peers = PeerStandIn.start(url, schema);
                Connection holder = DriverManager.getConnection(url)) {
            holder.setAutoCommit(false);
            holder.createStatement().execute(schema.in("select from {schema}.add_job('held')"));
            CompletableFuture<Void> adoption =
                    CompletableFuture.runAsync(() -> migrator().migrate(), OwnThread.EACH);
            Awaitility.await().until(() -> messages().contains("is retried"));
            peers.goOn();
            assertThat(adoption).isNotDone();
            holder.createStatement().execute(schema.in("select from {schema}.add_job('held', queue_name => 'q')"));
            holder.commit();
            adoption.get();
            peers.goOn();
            assertThat(peers.errors()).isEmpty();
            assertThat(peers.slowest()).isLessThan(PATIENCE);
        }
    }

    @Test
    void othersAndOlderVersionsGoOnWhileTheSchemaIsUpgraded() {
        migrator().migrate();
        Worker old = oldApplication();
        try (PeerStandIn peers = PeerStandIn.start(url, schema)) {
            runOnOld();
            upgraded().migrate();
            runOnOld();
            peers.goOn();
            assertThat(peers.errors()).isEmpty();
            assertThat(peers.slowest()).isLessThan(PATIENCE);
        } finally {
            old.stop();
        }
        assertThat(unfinishedIndexes()).isEmpty();
        assertThat(indexes()).contains("pgworker_jobs_created");

        // The older application starts once more, after a failed release for instance.
        migrator().migrate();
        migrator().validate();
        assertThat(body("worker_deregister")).contains("version 2");
        Worker again = oldApplication();
        try {
            runOnOld();
        } finally {
            again.stop();
        }
    }

    private Worker oldApplication() {
        Worker worker = Worker.builder(pool)
                .schema(schema)
                .tasks(List.of(TaskRegistration.of(Task.of("old", JsonNode.class), (payload, context) -> {})))
                .build();
        worker.start();
        return worker;
    }

    private void runOnOld() {
        for (int i = 0; i < 20; i++) {
            sql.sql(schema.in("select from {schema}.add_job('old', '{}', queue_name => 'old' || ?)"))
                    .param(i % 5)
                    .query()
                    .singleRow();
        }
        Awaitility.await().until(() -> value("select count(*) from {schema}.jobs where task_identifier = 'old'") == 0);
    }

    // What fits is left as it is

    @ParameterizedTest
    @ValueSource(strings = {"node", "rust"})
    void functionsKeepTheirOidsGrantsAndDependants(String peer) {
        installPeer(peer);
        sql.sql(schema.in("revoke execute on function {schema}.complete_jobs from public"))
                .update();
        sql.sql(schema.in("create view public.completing as select * from {schema}.complete_jobs('{1}')"))
                .update();
        sql.sql(schema.in("create function {schema}.add_job(only_this boolean) returns int language sql as 'select 1'"))
                .update();
        String before = functions();

        migrator().migrate();

        assertThat(functions()).isEqualTo(before);
        assertThat(body("complete_jobs")).contains("pgworker_");
        assertThat(value("select {schema}.add_job(true)")).isEqualTo(1);
    }

    @ParameterizedTest
    @CsvSource({"node, 7", "rust, 13", "none, 2"})
    void functionsThatOnlyWeMakeAreNotForEverybody(String peer, int forEverybody) {
        if (!peer.equals("none")) {
            installPeer(peer);
        }
        String ofEverybody = """
                select p.proname from pg_proc p
                where p.pronamespace = ?::regnamespace and p.proname not like 'pgworker\\_%'
                  and exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee = 0)
                order by 1""";
        List<String> before = peer.equals("none")
                ? List.of("add_job", "add_jobs")
                : sql.sql(ofEverybody).param(schema.name()).query(String.class).list();

        migrator().migrate();

        assertThat(sql.sql(ofEverybody).param(schema.name()).query(String.class).list())
                .isEqualTo(before)
                .hasSize(forEverybody);
    }

    @Test
    void whoeverMayAddJobsBeforeMayDoSoAfterwards() {
        installPeer("node");
        String role = "adder_" + pool.hashCode();
        sql.sql("create role " + role).update();
        try {
            for (String grant : List.of(
                    "grant usage on schema {schema} to ",
                    "grant select, insert, update, delete on {schema}._private_jobs to ",
                    "grant select, insert on {schema}._private_tasks, {schema}._private_job_queues to ")) {
                sql.sql(schema.in(grant + role)).update();
            }
            migrator().migrate();
            sql.sql(schema.in("select from {schema}.add_job('t', job_key => 'k')"))
                    .query()
                    .singleRow();
            sql.sql(schema.in("update {schema}._private_jobs set locked_at = now(), locked_by = 'w', attempts = 25"))
                    .update();
            assertThat(sql.sql("select has_table_privilege(?, ?, 'INSERT')")
                            .params(role, schema.name() + ".pgworker_retirements")
                            .query(Boolean.class)
                            .single())
                    .isTrue();
        } finally {
            sql.sql("drop owned by " + role).update();
            sql.sql("drop role " + role).update();
        }
    }

    @Test
    void functionsThatAnotherWorkerReplacedComeBackFromTheNewestMigration() {
        installPeer("rust");
        upgraded().migrate();
        assertThat(body("worker_deregister")).contains("version 2");
        replace("worker_deregister");
        replace("delete_stale_workers");

        migrator().migrate();
        assertThat(body("worker_deregister"))
                .as("an older version leaves it to the newer one")
                .contains("theirs");

        upgraded().migrate();
        assertThat(body("worker_deregister")).contains("version 2");
        assertThat(body("delete_stale_workers")).doesNotContain("theirs");
        assertThat(messages()).contains("have been restored: delete_stale_workers, worker_deregister");
    }

    private void replace(String function) {
        String argument = function.equals("worker_deregister") ? "worker_id text" : "worker_ids text[]";
        sql.sql(schema.in("create or replace function {schema}." + function + "(" + argument
                        + ") returns void language sql as $$ select 'theirs' $$"))
                .update();
    }

    @Test
    void theNewestLedgerOfRustIsKnown() {
        installPeer("rust");
        migrator().migrate();
        migrator().migrate();
        migrator().validate();
        assertThat(log.list).noneMatch(event -> event.getLevel().isGreaterOrEqual(ch.qos.logback.classic.Level.WARN));
        assertThat(value("select max(id) from {schema}.migrations")).isEqualTo(22);
    }

    // Indexes

    @ParameterizedTest
    @CsvSource({
        "node, AUTO, true", "node, ALWAYS, true", "node, NEVER, false",
        "none, AUTO, false", "none, ALWAYS, true", "none, NEVER, false"
    })
    void indexesOfPeersAreKeptAsTheSettingSays(String peer, PeerIndexes setting, boolean kept) {
        if (!peer.equals("none")) {
            installPeer(peer);
        }
        new SchemaMigrator(pool, schema, setting).migrate();

        assertThat(indexes().contains("jobs_main_index")).isEqualTo(kept);
        assertThat(indexes().contains("jobs_no_queue_index")).isEqualTo(kept);
        assertThat(indexes())
                .contains("pgworker_jobs_unqueued", "pgworker_jobs_queued", "pgworker_jobs_of_queue")
                .contains("pgworker_jobs_failed", "_private_workers_last_heartbeat_at_idx");
        assertThat(unfinishedIndexes()).isEmpty();
        assertThat(new SchemaIndexes(schema, setting)).satisfies(indexes -> {
            try (Connection connection = pool.getConnection()) {
                assertThat(indexes.steps(connection)).isEmpty();
            }
        });
    }

    @Test
    void theIndexesOfPeersAreThoseThatTheyMake() {
        installPeer("node");
        List<String> theirs = definitions();
        sql.sql("drop schema " + schema.name() + " cascade").update();
        new SchemaMigrator(pool, schema, PeerIndexes.ALWAYS).migrate();
        assertThat(definitions()).isEqualTo(theirs);
    }

    private List<String> definitions() {
        return sql.sql(
                        "select indexdef from pg_indexes where schemaname = ? and indexname like 'jobs\\_%index' order by 1")
                .param(schema.name())
                .query(String.class)
                .list();
    }

    @Test
    void whatAnInterruptedBuildHasLeftBehindIsBuiltAgain() throws Exception {
        installPeer("node");
        migrator().migrate();
        sql.sql(schema.in("drop index {schema}.pgworker_jobs_unqueued")).update();
        try (Connection holder = DriverManager.getConnection(url);
                Connection building = DriverManager.getConnection(url)) {
            holder.setAutoCommit(false);
            holder.createStatement().execute(schema.in("select from {schema}.add_job('held')"));
            building.createStatement().execute("set lock_timeout = '20ms'");
            assertThatThrownBy(() -> building.createStatement()
                            .execute(schema.in(
                                    "create index concurrently pgworker_jobs_unqueued on {schema}._private_jobs (id)")))
                    .isInstanceOf(SQLException.class);
            assertThat(unfinishedIndexes()).containsExactly("pgworker_jobs_unqueued");

            migrator().migrate();
            assertThat(unfinishedIndexes())
                    .as("a start waits for others only so long")
                    .containsExactly("pgworker_jobs_unqueued");
        }

        migrator().migrate();
        assertThat(unfinishedIndexes()).isEmpty();
        assertThat(sql.sql("select indexdef from pg_indexes where indexname = 'pgworker_jobs_unqueued'")
                        .query(String.class)
                        .single())
                .contains("priority, run_at, id");
    }

    @Test
    void manyStartsDuringABuildWaitForItAndAreNotWaitedForByIt() {
        installPeer("node");
        List<CompletableFuture<Void>> starts = java.util.stream.IntStream.range(0, 6)
                .mapToObj(i -> CompletableFuture.runAsync(() -> migrator().migrate(), OwnThread.EACH))
                .toList();
        starts.forEach(CompletableFuture::join);
        assertThat(unfinishedIndexes()).isEmpty();
        assertThat(indexes()).contains("pgworker_jobs_failed");
    }

    // What the tests look at

    private SchemaMigrator migrator() {
        return new SchemaMigrator(pool, schema);
    }

    /** The migrator of the next version. */
    private SchemaMigrator upgraded() {
        return new SchemaMigrator(pool, schema, PeerIndexes.AUTO, UPGRADED, SchemaMigrator.LONGEST_WAIT);
    }

    private void installPeer(String peer) {
        run("peer.sql");
        if (peer.equals("rust")) {
            run("peer-recovery.sql");
        }
        sql.sql(
                        schema.in(
                                "select count({schema}.add_job('task', '{}', queue_name => 'lane' || n % 3)) from generate_series(1, 50) n"))
                .query()
                .singleRow();
    }

    private void run(String script) {
        try (InputStream text = Objects.requireNonNull(AdoptionTest.class.getResourceAsStream(script));
                Connection connection = pool.getConnection()) {
            connection
                    .createStatement()
                    .execute(new String(text.readAllBytes(), StandardCharsets.UTF_8)
                            .replace("${schema}", schema.name()));
        } catch (SQLException | IOException e) {
            throw new AssertionError(e);
        }
    }

    private String messages() {
        return String.join(
                "\n",
                List.copyOf(log.list).stream()
                        .map(ILoggingEvent::getFormattedMessage)
                        .toList());
    }

    private List<String> notOfThePeers(String table) {
        return sql.sql("""
                        select attname from pg_attribute
                        where attrelid = ?::regclass and attnum > 17 or attrelid = ?::regclass and attisdropped""")
                .params(schema.name() + "." + table, schema.name() + "." + table)
                .query(String.class)
                .list();
    }

    private List<String> indexes() {
        return sql.sql("select indexname from pg_indexes where schemaname = ?")
                .param(schema.name())
                .query(String.class)
                .list();
    }

    private List<String> unfinishedIndexes() {
        return sql.sql("""
                        select c.relname from pg_index i join pg_class c on c.oid = i.indexrelid
                        where not i.indisvalid and c.relnamespace = ?::regnamespace""").param(schema.name()).query(String.class).list();
    }

    /** The interface as another worker sees it: oid, arguments, result and rights. */
    private String functions() {
        return sql.sql("""
                        select string_agg(format('%s %s %s %s %s', p.oid, p.proname, p.proargtypes, p.proargnames, p.proacl), e'\\n'
                          order by p.oid)
                        from pg_proc p where p.pronamespace = ?::regnamespace and p.proname in ('add_job', 'add_jobs', 'remove_job',
                          'complete_jobs', 'permanently_fail_jobs', 'reschedule_jobs', 'force_unlock_workers', 'recover_dead_worker_jobs')
                          and (?::text <> 'node' or p.proname <> 'recover_dead_worker_jobs')""")
                .params(
                        schema.name(),
                        value("select count(*) from pg_tables where tablename = '_private_job_retirements'") == 0
                                ? "node"
                                : "rust")
                .query(String.class)
                .single();
    }

    private String body(String function) {
        return sql.sql("select prosrc from pg_proc where pronamespace = ?::regnamespace and proname = ?")
                .params(schema.name(), function)
                .query(String.class)
                .single();
    }

    private long value(String query) {
        return sql.sql(schema.in(query)).query(Long.class).single();
    }
}
