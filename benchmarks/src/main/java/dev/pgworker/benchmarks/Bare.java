package dev.pgworker.benchmarks;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;

/**
 * What PostgreSQL can do with the same tables and indexes: claim and delete in a loop, insert without looking. It has no
 * handlers, payloads, queues, events or fences.
 *
 * @param connections how many loops there are
 */
record Bare(String name, int connections) implements Contender {

    @Override
    public boolean wakes() {
        return false;
    }

    @Override
    public boolean addsItsOwnWay() {
        return connections == 1;
    }

    @Override
    public boolean onGraphileTables() {
        return true;
    }

    @Override
    public String mark() {
        return GraphileTables.MARK;
    }

    @Override
    public String unfinished() {
        return GraphileTables.UNFINISHED;
    }

    @Override
    public List<String> command(Options options, String jdbcUrl) {
        return JvmQueue.command(this, jdbcUrl);
    }

    @Override
    public Optional<JvmQueue.Factory> jvmQueue() {
        return Optional.of((dataSource, probe) -> new Loops(connections, dataSource, probe));
    }

    private static final class Loops implements JvmQueue {

        private final int count;
        private final DataSource dataSource;
        private final Probe probe;
        private final ExecutorService threads = Executors.newCachedThreadPool();
        private final List<Future<?>> running = new ArrayList<>();
        private volatile boolean stopping;
        private @Nullable Connection adding;

        Loops(int count, DataSource dataSource, Probe probe) {
            this.count = count;
            this.dataSource = dataSource;
            this.probe = probe;
        }

        private static final String TASK = """
                insert into graphile_worker._private_tasks (identifier) values ('noop')
                """;

        @Override
        public void createTables() throws SQLException {
            new SchemaMigrator(dataSource, WorkerSchema.DEFAULT).migrate();
            try (Connection connection = dataSource.getConnection();
                    Statement statement = connection.createStatement()) {
                statement.execute(TASK);
            }
        }

        @Override
        public void start() {
            stopping = false;
            for (int i = 0; i < count; i++) {
                running.add(threads.submit(() -> {
                    claimAndDelete();
                    return true;
                }));
            }
        }

        @Override
        public void stop() throws Exception {
            stopping = true;
            for (Future<?> loop : running) {
                loop.get();
            }
            running.clear();
        }

        // The limit is what PostgreSQL can do, not what its planner makes of a table that changes under its feet.
        private static final String PLAN = """
                set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off;
                set enable_bitmapscan = off; set enable_sort = off; set jit = off
                """;

        private static final String CLAIM = """
                update graphile_worker._private_jobs j
                set locked_at = now(), locked_by = 'bare', attempts = j.attempts + 1
                from (
                  select id from graphile_worker._private_jobs
                  where is_available and job_queue_id is null and run_at <= now()
                  order by priority, run_at, id
                  limit ?
                  for update skip locked) ready
                where j.id = ready.id
                returning j.id
                """;

        private static final String DELETE = """
                delete from graphile_worker._private_jobs where id = any(?)
                """;

        private void claimAndDelete() throws SQLException, InterruptedException {
            try (Connection connection = dataSource.getConnection();
                    Statement settings = connection.createStatement();
                    PreparedStatement claim = connection.prepareStatement(CLAIM);
                    PreparedStatement delete = connection.prepareStatement(DELETE)) {
                settings.execute(PLAN);
                claim.setInt(1, Ours.BATCH);
                while (!stopping) {
                    Long[] ids = ids(claim);
                    if (ids.length == 0) {
                        Thread.sleep(5);
                        continue;
                    }
                    delete.setArray(1, connection.createArrayOf("bigint", ids));
                    probe.count(delete.executeUpdate());
                }
                settings.execute("reset all");
            }
        }

        private static Long[] ids(PreparedStatement claim) throws SQLException {
            List<Long> ids = new ArrayList<>(Ours.BATCH);
            try (ResultSet rows = claim.executeQuery()) {
                while (rows.next()) {
                    ids.add(rows.getLong(1));
                }
            }
            return ids.toArray(Long[]::new);
        }

        private static final String INSERT = """
                insert into graphile_worker._private_jobs (task_id, payload) values (1, ?::json)
                """;

        @Override
        public void add(Payload payload, @Nullable Long runAtMicros) throws SQLException {
            try (PreparedStatement insert = adding().prepareStatement(INSERT)) {
                insert.setString(1, payload.json());
                insert.executeUpdate();
            }
        }

        private static final String INSERT_ALL = """
                insert into graphile_worker._private_jobs (task_id, payload) select 1, p::json from unnest(?) p
                """;

        @Override
        public void addAll(List<Payload> payloads) throws SQLException {
            try (PreparedStatement insert = adding().prepareStatement(INSERT_ALL)) {
                insert.setArray(
                        1,
                        adding().createArrayOf(
                                        "text",
                                        payloads.stream().map(Payload::json).toArray()));
                insert.executeUpdate();
            }
        }

        private Connection adding() throws SQLException {
            Connection connection = adding;
            if (connection == null) {
                connection = dataSource.getConnection();
                adding = connection;
            }
            return connection;
        }
    }
}
