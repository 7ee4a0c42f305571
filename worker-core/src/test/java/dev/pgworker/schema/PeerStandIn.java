package dev.pgworker.schema;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

import org.awaitility.Awaitility;

/**
 * Does what workers of Node.js and Rust and their applications do, on connections that stay open, with statements that are
 * prepared in the server: {@code PREPARE}, because a driver might hide that one has to be prepared again. Adders add jobs
 * alone, in batches, under keys and in transactions; workers claim with {@code returning *}, and complete or fail what they
 * have claimed. What goes wrong is kept.
 */
final class PeerStandIn implements AutoCloseable {

    private static final int KEYS = 20;

    private final String url;
    private final WorkerSchema schema;
    private final List<Thread> threads = new ArrayList<>();
    private final List<String> errors = Collections.synchronizedList(new ArrayList<>());
    private final AtomicInteger added = new AtomicInteger();
    private final AtomicInteger completed = new AtomicInteger();
    private final AtomicLong slowest = new AtomicLong();
    private volatile boolean ending;

    private PeerStandIn(String url, WorkerSchema schema) {
        this.url = url;
        this.schema = schema;
    }

    /** Starts adders and workers, and waits until each kind has done something. */
    static PeerStandIn start(String url, WorkerSchema schema) {
        PeerStandIn peers = new PeerStandIn(url, schema);
        for (int i = 1; i <= 2; i++) {
            int number = i;
            peers.start("adder-" + i, session -> peers.add(session, number));
            peers.start("worker-" + i, session -> peers.work(session, "pool-" + number));
        }
        peers.goOn();
        return peers;
    }

    /** Starts adders that find no schema at first, and wait for it. */
    static PeerStandIn startBeforeTheSchema(String url, WorkerSchema schema) {
        PeerStandIn peers = new PeerStandIn(url, schema);
        peers.start("adder-1", session -> {
            peers.awaitInterface(session);
            peers.add(session, 1);
        });
        peers.start("adder-2", session -> {
            peers.awaitInterface(session);
            peers.add(session, 2);
        });
        return peers;
    }

    /** Waits until more jobs have been added and completed. */
    void goOn() {
        int addedBefore = added.get();
        int completedBefore = completed.get();
        boolean works = threads.stream().anyMatch(t -> t.getName().startsWith("worker"));
        Awaitility.await()
                .until(() -> !errors.isEmpty()
                        || (added.get() > addedBefore + 50 && (!works || completed.get() > completedBefore + 50)));
    }

    List<String> errors() {
        return List.copyOf(errors);
    }

    /** Returns how long the slowest statement took so far. */
    Duration slowest() {
        return Duration.ofNanos(slowest.get());
    }

    @Override
    public void close() {
        ending = true;
        for (Thread thread : threads) {
            try {
                thread.join();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private interface Doing {
        void with(Session session) throws SQLException;
    }

    private void start(String name, Doing doing) {
        Thread thread = new Thread(
                () -> {
                    try (Connection connection = DriverManager.getConnection(url)) {
                        doing.with(new Session(connection));
                    } catch (SQLException e) {
                        errors.add(name + ": " + e.getSQLState() + " " + e.getMessage());
                    }
                },
                name);
        threads.add(thread);
        thread.start();
    }

    /** A connection whose statements are timed. */
    private final class Session {

        private final Connection connection;
        private final Statement statement;

        Session(Connection connection) throws SQLException {
            this.connection = connection;
            this.statement = connection.createStatement();
        }

        /** Returns the first column of all rows. */
        List<Long> run(String sql) throws SQLException {
            long begin = System.nanoTime();
            List<Long> values = new ArrayList<>();
            if (statement.execute(schema.in(sql))) {
                try (ResultSet rows = statement.getResultSet()) {
                    while (rows.next()) {
                        values.add(rows.getLong(1));
                    }
                }
            }
            slowest.accumulateAndGet(System.nanoTime() - begin, Math::max);
            return values;
        }
    }

    /** Nothing but the lack of the whole interface is allowed: a part of it would show as another error. */
    private void awaitInterface(Session session) throws SQLException {
        while (!ending) {
            try {
                session.run("select (j).id from {schema}.add_job('first', job_key => 'first') j");
                added.incrementAndGet();
                return;
            } catch (SQLException e) {
                if (!List.of("3F000", "42883").contains(e.getSQLState())) {
                    throw e;
                }
            }
        }
    }

    private void add(Session session, int seed) throws SQLException {
        Random random = new Random(seed);
        session.run("prepare add_one (text, json, text) as select * from {schema}.add_job($1, $2, queue_name => $3)");
        session.run("prepare add_keyed (text, json, text) as select * from {schema}.add_job($1, $2, job_key => $3)");
        session.run("prepare add_some (text) as select * from {schema}.add_jobs(array["
                + "($1, '[1]', null, null, null, null, null, null)::{schema}.job_spec,"
                + "($1, '[2]', 'lane', null, null, null, 1, null)::{schema}.job_spec])");
        while (!ending) {
            session.run("execute add_one('task" + random.nextInt(3) + "', '{}', null)");
            session.run("execute add_one('task', '{}', 'lane" + random.nextInt(3) + "')");
            session.run("execute add_keyed('task', '[1]', 'key" + seed + random.nextInt(KEYS) + "')");
            session.run("execute add_some('task')");
            session.connection.setAutoCommit(false);
            session.run("execute add_one('task', '{}', 'lane" + random.nextInt(3) + "')");
            session.run("execute add_keyed('task', '[1]', 'both" + seed + "')");
            session.run("select count(*) from {schema}.jobs where key = 'both" + seed + "'");
            session.connection.commit();
            session.connection.setAutoCommit(true);
            added.addAndGet(7);
        }
    }

    private void work(Session session, String pool) throws SQLException {
        session.run("""
                prepare claim (text) as
                with j as (
                  select jobs.job_queue_id, jobs.priority, jobs.run_at, jobs.id
                  from {schema}._private_jobs as jobs
                  where jobs.is_available = true and run_at <= now() and task_id = any(array(select id from {schema}._private_tasks))
                    and (jobs.job_queue_id is null or jobs.job_queue_id in (
                      select id from {schema}._private_job_queues as job_queues where job_queues.is_available = true
                      for update skip locked))
                  order by priority asc, run_at asc limit 1 for update skip locked),
                q as (
                  update {schema}._private_job_queues as job_queues set locked_by = $1::text, locked_at = now()
                  from j where job_queues.id = j.job_queue_id)
                update {schema}._private_jobs as jobs set attempts = jobs.attempts + 1, locked_by = $1::text, locked_at = now()
                from j where jobs.id = j.id
                returning *
                """);
        session.run("""
                prepare complete (bigint, text) as
                with j as (delete from {schema}._private_jobs where id = $1 returning *)
                update {schema}._private_job_queues as job_queues set locked_by = null, locked_at = null
                from j where job_queues.id = j.job_queue_id and job_queues.locked_by = $2
                """);
        session.run("""
                prepare fail (bigint, text) as
                with j as (
                  update {schema}._private_jobs set last_error = 'failed', run_at = now(), locked_by = null, locked_at = null
                  where id = $1 and locked_by = $2 returning *)
                update {schema}._private_job_queues as job_queues set locked_by = null, locked_at = null
                from j where job_queues.id = j.job_queue_id and job_queues.locked_by = $2
                """);
        int turn = 0;
        while (!ending) {
            for (long id : session.run("execute claim('" + pool + "')")) {
                session.run("execute " + (++turn % 10 == 0 ? "fail" : "complete") + "(" + id + ", '" + pool + "')");
                completed.incrementAndGet();
            }
        }
    }
}
