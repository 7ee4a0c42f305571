package dev.pgworker.schema;

import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import com.zaxxer.hikari.HikariDataSource;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.jdbc.core.simple.JdbcClient;
import tools.jackson.databind.JsonNode;

import dev.pgworker.Worker;
import dev.pgworker.job.Task;
import dev.pgworker.task.TaskRegistration;
import dev.pgworker.testing.TestSchema;
import dev.pgworker.testsupport.TestPostgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

/**
 * Schemas that releases of Graphile Worker for Node.js have installed. Runs with {@code -Dnode.releases=DIR}, where {@code
 * npm install graphile-worker@VERSION} was run in {@code DIR/VERSION} for each version here and 0.16.6.
 */
@Tag("thorough")
@Tag("any-postgres")
class NodeInstallationTest {

    private static final String RELEASES = System.getProperty("node.releases");

    private final String url = TestPostgres.newDatabase("node");
    private final WorkerSchema schema = new WorkerSchema("jobs_of_node");
    private HikariDataSource pool;
    private JdbcClient sql;

    @BeforeEach
    void open() {
        assumeTrue(RELEASES != null, "node.releases is not set");
        pool = new HikariDataSource(TestSchema.poolConfig(url, 8));
        sql = JdbcClient.create(pool);
    }

    @AfterEach
    void close() {
        if (pool != null) {
            pool.close();
        }
        TestPostgres.drop(url);
    }

    @ParameterizedTest
    @CsvSource({"0.13.0, 10", "0.15.1, 14", "0.16.0, 18", "0.18.0, 20"})
    void isAdoptedOrRefusedWithTheCommandThatUpgradesIt(String version, int ledger) throws Exception {
        graphileWorker(version, List.of("--schema-only", "--schema", schema.name()));
        assertThat(newest()).isEqualTo(ledger);
        addJobs();
        SchemaMigrator migrator = new SchemaMigrator(pool, schema);

        if (ledger < 18) {
            String before = catalog();
            String action = catchThrowableOfType(SchemaException.class, migrator::migrate)
                    .action();
            assertThatThrownBy(migrator::validate).isInstanceOf(SchemaException.class);
            assertThat(catalog()).isEqualTo(before);
            Matcher command = Pattern.compile("npx graphile-worker@(\\S+) (--schema-only --schema )(\\S+) --connection")
                    .matcher(action);
            assertThat(command.find()).as(action).isTrue();
            graphileWorker(command.group(1), List.of("--schema-only", "--schema", command.group(3)));
        }
        migrator.migrate();
        migrator.validate();

        Worker worker = Worker.builder(pool)
                .schema(schema)
                .tasks(List.of(TaskRegistration.of(Task.of("t", JsonNode.class), (payload, context) -> {})))
                .build();
        worker.start();
        try {
            Awaitility.await().until(() -> jobs() == 0);
            addJobs();
            Awaitility.await().until(() -> jobs() == 0);
        } finally {
            worker.stop();
        }
        assertThat(newest()).isEqualTo(20);
        graphileWorker("0.18.0", List.of("--schema-only", "--schema", schema.name()));
    }

    private void addJobs() {
        sql.sql(
                        schema.in(
                                "select count({schema}.add_job('t', '{}', queue_name => 'q' || n % 7, job_key => 'k' || n)) from generate_series(1, 1000) n"))
                .query()
                .singleRow();
    }

    private long jobs() {
        return sql.sql(schema.in("select count(*) from {schema}.jobs"))
                .query(Long.class)
                .single();
    }

    private int newest() {
        return sql.sql(schema.in("select max(id) from {schema}.migrations"))
                .query(Integer.class)
                .single();
    }

    private String catalog() {
        return sql.sql("""
                        select string_agg(o.described, '; ' order by o.described) from (
                          select pg_get_functiondef(p.oid) from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = ?
                          union all
                          select format('%s.%s %s', c.relname, a.attname, a.atttypid)
                          from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
                          where n.nspname = ?) o(described)""")
                .params(schema.name(), schema.name())
                .query(String.class)
                .single();
    }

    /** Runs a release's command line and awaits its end. */
    private void graphileWorker(String version, List<String> arguments) throws IOException, InterruptedException {
        Path command = Path.of(RELEASES, version, "node_modules", ".bin", "graphile-worker");
        assertThat(command).as("npm install graphile-worker@" + version).exists();
        List<String> line = new ArrayList<>(List.of(command.toString(), "-c", address()));
        line.addAll(arguments);
        Path output = Files.createTempFile("graphile-worker", ".log");
        Process process = new ProcessBuilder(line)
                .redirectErrorStream(true)
                .redirectOutput(output.toFile())
                .start();
        assertThat(process.waitFor())
                .as(Files.readString(output, StandardCharsets.UTF_8))
                .isZero();
        Files.delete(output);
    }

    /** As libpq writes it. */
    private String address() {
        URI jdbc = URI.create(url.substring("jdbc:".length()));
        String user = Pattern.compile("[?&]user=([^&]+)")
                .matcher(url)
                .results()
                .map(found -> found.group(1))
                .findFirst()
                .orElse("postgres");
        return "postgres://" + user + "@" + jdbc.getHost() + ":" + jdbc.getPort() + jdbc.getPath();
    }
}
