package dev.pgworker.benchmarks;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

/** The loops of {@link Bare}, each on a connection of its own. */
final class Loops implements JvmQueue {

    private final Bare bare;
    private final DataSource dataSource;
    private final Probe probe;
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final List<Future<?>> running = new ArrayList<>();
    private volatile boolean stopping;
    private @Nullable Connection adding;

    Loops(Bare bare, DataSource dataSource, Probe probe) {
        this.bare = bare;
        this.dataSource = dataSource;
        this.probe = probe;
    }

    /**
     * What a loop does in one turn.
     *
     * @param take a query with the number of jobs as its parameter; its column {@code id} tells which jobs it took
     * @param delete a statement with an array of these as its parameter
     * @param type their SQL type
     * @param held whether both are one transaction, so that the jobs need only be locked meanwhile
     */
    record Turn(String take, String delete, String type, boolean held) {}

    private static final String TASK = """
            insert into graphile_worker._private_tasks (identifier) values ('noop')
            """;

    @Override
    public void createTables() throws SQLException {
        bare.tables().create(dataSource);
        try (Connection connection = dataSource.getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute(TASK);
        }
    }

    @Override
    public void start() {
        stopping = false;
        for (int i = 0; i < bare.connections(); i++) {
            running.add(threads.submit(() -> {
                loop(bare.turn());
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

    private void loop(Turn turn) throws SQLException, InterruptedException {
        try (Connection connection = dataSource.getConnection();
                Statement settings = connection.createStatement();
                PreparedStatement take = connection.prepareStatement(turn.take());
                PreparedStatement delete = connection.prepareStatement(turn.delete())) {
            settings.execute(PLAN);
            connection.setAutoCommit(!turn.held());
            take.setInt(1, Ours.BATCH);
            while (!stopping) {
                Object[] taken = taken(take);
                int deleted = 0;
                if (taken.length > 0) {
                    delete.setArray(1, connection.createArrayOf(turn.type(), taken));
                    deleted = delete.executeUpdate();
                }
                if (turn.held()) {
                    connection.commit();
                }
                probe.count(deleted);
                if (taken.length == 0) {
                    Thread.sleep(5);
                }
            }
            connection.setAutoCommit(true);
            settings.execute("reset all");
        }
    }

    private static Object[] taken(PreparedStatement take) throws SQLException {
        List<Object> taken = new ArrayList<>(Ours.BATCH);
        try (ResultSet rows = take.executeQuery()) {
            int id = rows.findColumn("id");
            while (rows.next()) {
                taken.add(rows.getObject(id));
            }
        }
        return taken.toArray();
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
                                    "text", payloads.stream().map(Payload::json).toArray()));
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
