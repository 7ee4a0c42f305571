package dev.pgworker.testing;

import java.util.concurrent.CompletableFuture;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.springframework.jdbc.core.simple.JdbcClient;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.Worker;
import dev.pgworker.WorkerClient;
import dev.pgworker.job.JobChanges;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.WorkerOperations;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.testsupport.SchemaState;
import dev.pgworker.testsupport.TestPostgres;

/**
 * Gives each test a schema on a real PostgreSQL that is as if it had just been installed, a pool, and workers that are stopped
 * with the test.
 */
public final class TestSchema implements BeforeEachCallback, AfterEachCallback {

    private final int poolSize;
    private final java.util.List<Worker> workers = new java.util.concurrent.CopyOnWriteArrayList<>();
    private boolean anew;
    private SchemaState state;
    private HikariDataSource dataSource;

    public TestSchema() {
        this(10);
    }

    public TestSchema(int poolSize) {
        this.poolSize = poolSize;
    }

    /** Gives each test a schema that no other test has used: for those who read what the server counts, which it tells late. */
    public TestSchema installedAnew() {
        anew = true;
        return this;
    }

    @Override
    public void beforeEach(ExtensionContext context) {
        state = anew ? SchemaPool.install() : SchemaPool.take();
        HikariConfig config = poolConfig(TestPostgres.jdbcUrl(), poolSize);
        // The pool connects when the test does.
        config.setInitializationFailTimeout(-1);
        dataSource = new HikariDataSource(config);
    }

    @Override
    public void afterEach(ExtensionContext context) {
        CompletableFuture.allOf(workers.stream()
                        .map(worker -> CompletableFuture.runAsync(worker::stop, OwnThread.EACH))
                        .toArray(CompletableFuture[]::new))
                .join();
        workers.clear();
        dataSource.close();
        SchemaPool.giveBack(state);
    }

    /** Returns a name that no other test uses. */
    public static WorkerSchema uniqueName() {
        return SchemaPool.uniqueName();
    }

    /** Returns a pool that the caller closes. */
    public static HikariDataSource pool(int size) {
        return new HikariDataSource(poolConfig(TestPostgres.jdbcUrl(), size));
    }

    /** Returns the configuration of a pool. */
    public static HikariConfig poolConfig(String jdbcUrl, int size) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(jdbcUrl);
        config.setMaximumPoolSize(size);
        config.setMinimumIdle(0);
        config.setConnectionTimeout(30_000);
        return config;
    }

    /** Returns the administration of the schema's jobs, as an application without a worker has it. */
    public JobQueries queries() {
        return WorkerClient.jobQueries(dataSource, schema());
    }

    public JobChanges changes() {
        return WorkerClient.jobChanges(dataSource, schema());
    }

    public WorkerOperations operations() {
        return WorkerClient.workerOperations(dataSource, schema());
    }

    public HikariDataSource dataSource() {
        return dataSource;
    }

    public WorkerSchema schema() {
        return new WorkerSchema(state.schema());
    }

    public PayloadCodec codec() {
        return new PayloadCodec(new JsonMapper());
    }

    public JobScheduler scheduler() {
        return WorkerClient.jobScheduler(dataSource, schema(), codec());
    }

    /** Returns a builder of a worker on this schema. */
    public Worker.Builder worker() {
        return Worker.builder(dataSource).schema(schema());
    }

    /** Builds and starts a worker that is stopped after the test. */
    public Worker start(Worker.Builder builder) {
        Worker worker = builder.build();
        workers.add(worker);
        worker.start();
        return worker;
    }

    /** Returns a statement in which {schema} stands for the quoted schema. */
    public JdbcClient.StatementSpec sql(String text) {
        return JdbcClient.create(dataSource).sql(schema().in(text));
    }

    /** Returns how many jobs there are. */
    public long jobs() {
        return sql("select count(*) from {schema}._private_jobs")
                .query(Long.class)
                .single();
    }
}
