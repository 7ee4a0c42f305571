package dev.pgworker.internal.store;

import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.dao.DataAccessException;
import org.springframework.dao.DataAccessResourceFailureException;

import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;

/**
 * Whatever adders, workers of all kinds and people do at the same time, while limits are put, changed and deleted, and if some of them die:
 * never more jobs than a limit allows are running, and none is lost.
 */
@Tag("thorough")
class LimitModelTest {

    private static final int MOST = 3;
    private static final int MOST_OF_ALL = 7;
    private static final int TENANTS = 5;

    @RegisterExtension
    final TestSchema db = new TestSchema(16);

    private final AtomicBoolean stopped = new AtomicBoolean();
    private final Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
    private final AtomicLong ended = new AtomicLong();
    private final AtomicLong changes = new AtomicLong();
    private LimitedJobs jobs;

    private interface Step {
        void run(Random random) throws SQLException;
    }

    @Test
    void limitsHold() throws InterruptedException {
        jobs = new LimitedJobs(db);
        jobs.limit("tenants", "{t,u}", "{tenant}", MOST);
        jobs.limit("all", "{t}", null, MOST_OF_ALL);
        long seed = System.nanoTime();
        List<Thread> threads = new ArrayList<>();
        threads.add(repeat(seed + 1, this::add));
        threads.add(repeat(seed + 2, this::add));
        threads.add(repeat(seed + 3, random -> work(random, "v")));
        threads.add(repeat(seed + 4, random -> work(random, "w")));
        threads.add(repeat(seed + 5, this::workAsNodeDoes));
        threads.add(repeat(seed + 6, random -> work(random, "x")));
        threads.add(repeat(seed + 7, this::change));
        threads.add(repeat(seed + 8, this::administer));
        threads.add(repeat(seed + 9, this::apply));
        threads.add(repeat(seed + 10, this::die));

        long until = System.nanoTime() + 10_000_000_000L;
        long looks = 0;
        while (failures.isEmpty() && (System.nanoTime() < until || ended.get() <= 100 || changes.get() <= 10)) {
            try {
                look();
                looks++;
            } catch (DataAccessResourceFailureException e) {
                // its session was ended
            }
        }
        stopped.set(true);
        for (Thread thread : threads) {
            thread.join();
        }

        db.dataSource().getHikariPoolMXBean().softEvictConnections();

        assertThat(failures).as("seed %s", seed).isEmpty();
        assertThat(looks).isPositive();
        System.out.printf("%d looks, %d runs, %d changes of limits%n", looks, ended.get(), changes.get());
        nothingIsLost();
    }

    private Thread repeat(long seed, Step step) {
        Random random = new Random(seed);
        Thread thread = new Thread(() -> {
            while (!stopped.get()) {
                try {
                    step.run(random);
                } catch (DataAccessException | SQLException e) {
                    String text = String.valueOf(e);
                    // A release that meets a change of its job in the same moment fails as a whole, and is repeated by
                    // a worker.
                    if (text.contains("A trigger keeps jobs from being changed")) {
                        continue;
                    }
                    if (!text.contains("terminating connection")
                            && !text.contains("I/O error")
                            && !text.contains("lock timeout")
                            && !text.contains("onnection")) {
                        failures.add(e);
                    }
                } catch (Throwable e) {
                    failures.add(e);
                }
            }
        });
        thread.start();
        return thread;
    }

    /** In one snapshot: what is running of each tenant and of the task with two limits. */
    private void look() {
        List<String> over =
                jobs.sql("""
                select concat(case when grouping(tenant) = 0 then tenant else 'all' end, ': ', count(*))
                from (
                  select coalesce(j.payload ->> 'tenant', '') as tenant, t.identifier
                  from {schema}._private_jobs j join {schema}._private_tasks t on t.id = j.task_id
                  where j.locked_at < '9999-01-01' and t.identifier in ('t', 'u')) r
                group by grouping sets ((tenant), ())
                having count(*) > ? and grouping(tenant) = 0
                  or grouping(tenant) = 1 and count(*) filter (where identifier = 't') > ?
                """).params(MOST, MOST_OF_ALL).query(String.class).list();
        if (!over.isEmpty()) {
            failures.add(new AssertionError("over the limit: " + over));
        }
    }

    private static String payload(Random random) {
        return "{\"tenant\":\"" + random.nextInt(TENANTS) + "\"}";
    }

    private static String task(Random random) {
        return List.of("t", "t", "u", "free").get(random.nextInt(4));
    }

    private void add(Random random) {
        if (db.jobs() > 400) {
            return;
        }
        switch (random.nextInt(4)) {
            case 0 -> jobs.add(task(random), payload(random));
            case 1 ->
                jobs.addWithKey(
                        task(random),
                        payload(random),
                        "k" + random.nextInt(20),
                        List.of("replace", "preserve_run_at", "unsafe_dedupe").get(random.nextInt(3)));
            case 2 ->
                jobs.sql(
                                "select id from {schema}.add_jobs(array[(?, ?::json, null, null, 3, ?, null, null), (?, ?::json, ?, null, 3,"
                                        + " ?, ?::smallint, null)]::{schema}.job_spec[])")
                        .params(
                                task(random),
                                payload(random),
                                "k" + random.nextInt(10),
                                task(random),
                                payload(random),
                                random.nextBoolean() ? "q" + random.nextInt(2) : null,
                                "k" + (10 + random.nextInt(10)),
                                random.nextInt(3))
                        .query()
                        .listOfRows();
            default ->
                jobs.sql(
                                "insert into {schema}._private_jobs (task_id, payload, run_at) select id, ?::json, now() + ? * interval"
                                        + " '1 ms' from {schema}._private_tasks where identifier = ?")
                        .params(payload(random), random.nextInt(30), task(random))
                        .update();
        }
    }

    private void work(Random random, String worker) {
        List<Long> claimed = random.nextInt(4) == 0
                ? jobs.claimOrdinary(worker, 1 + random.nextInt(4))
                : jobs.claim(worker, 1 + random.nextInt(8));
        for (long id : claimed) {
            switch (random.nextInt(6)) {
                case 0 -> jobs.release(worker, id, "retry", random.nextInt(3) * 0.01);
                case 1 -> jobs.release(worker, id, "back", 0);
                case 2 -> jobs.release(worker, id, "fail", 0);
                default -> jobs.complete(worker, id);
            }
            ended.incrementAndGet();
        }
    }

    /** As a worker that knows nothing of limits claims, and ends a job of any kind. */
    private void workAsNodeDoes(Random random) {
        for (long id : jobs.claimOrdinary("pool-node", 1)) {
            // What a claim took whose session died is still its own.
            List<Integer> queues = jobs.sql(
                            "select job_queue_id from {schema}._private_jobs where id = ? and job_queue_id is not null")
                    .param(id)
                    .query(Integer.class)
                    .list();
            if (random.nextBoolean()) {
                jobs.sql(
                                "update {schema}._private_jobs set last_error = 'e', run_at = greatest(now(), run_at) + interval '10 ms',"
                                        + " locked_by = null, locked_at = null where id = ? and locked_by = 'pool-node'")
                        .param(id)
                        .update();
            } else {
                jobs.sql("delete from {schema}._private_jobs where id = ?")
                        .param(id)
                        .update();
            }
            for (int queue : queues) {
                jobs.sql("update {schema}._private_job_queues set locked_by = null, locked_at = null"
                                + " where locked_by = 'pool-node' and id = ?")
                        .param(queue)
                        .update();
            }
        }
    }

    /** A third limit comes, goes, and is changed in between. */
    private void change(Random random) throws SQLException {
        switch (random.nextInt(4)) {
            case 0 -> jobs.delete("extra");
            case 1 -> jobs.putLimit("extra", "{t,u}", "{other}", 1 + random.nextInt(MOST_OF_ALL));
            case 2 -> jobs.putLimit("extra", "{u,free}", null, 1 + random.nextInt(MOST_OF_ALL));
            default -> {
                jobs.putLimit("tenants", "{t,u}", "{tenant}", 1 + random.nextInt(MOST));
                jobs.putLimit("all", "{t}", null, 1 + random.nextInt(MOST_OF_ALL));
            }
        }
        changes.incrementAndGet();
        pause(50 + random.nextInt(100));
    }

    private void apply(Random random) {
        if (!"more"
                .equals(jobs.sql("select {schema}.pgworker_apply_limits(?)")
                        .param(1 + random.nextInt(100))
                        .query(String.class)
                        .single())) {
            pause(5);
        }
    }

    private static void pause(int millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void administer(Random random) {
        String ids = "array(select id from {schema}._private_jobs order by random() limit 2)";
        String key = "k" + random.nextInt(20);
        switch (random.nextInt(5)) {
            case 0 ->
                jobs.sql("select id from {schema}.reschedule_jobs(" + ids + ", run_at => now() + interval '5 ms')")
                        .query()
                        .listOfRows();
            case 1 ->
                jobs.sql("select id from {schema}.reschedule_jobs(" + ids + ", attempts => 0)")
                        .query()
                        .listOfRows();
            case 2 ->
                jobs.sql("select id from {schema}.permanently_fail_jobs(" + ids + ")")
                        .query()
                        .listOfRows();
            case 3 ->
                jobs.sql("select id from {schema}.remove_job(?)")
                        .param(key)
                        .query()
                        .listOfRows();
            default ->
                jobs.sql("select {schema}.recover_dead_worker_jobs(array['pool-node', 'v', 'w', 'x'])")
                        .query()
                        .listOfRows();
        }
    }

    /** Ends a session of the test's, whatever it is doing. */
    private void die(Random random) {
        jobs.sql(
                        "select pg_terminate_backend(a.pid) from pg_stat_activity a where a.pid <> pg_backend_pid() and a.datname ="
                                + " current_database() and a.query like ? and a.query not like '%grouping%' order by random() limit 1")
                .param("%" + db.schema().name() + "%")
                .query()
                .listOfRows();
        pause(100 + random.nextInt(200));
    }

    private void nothingIsLost() {
        jobs.sql("select {schema}.force_unlock_workers(array['v', 'w', 'x', 'pool-node'])")
                .query()
                .listOfRows();
        jobs.sql("update {schema}._private_jobs set run_at = now() - interval '1 s', attempts = 0")
                .update();
        jobs.apply();
        for (int round = 0; db.jobs() > 0 && round < 2_000; round++) {
            List<Long> claimed = new ArrayList<>(jobs.claim("x", 100));
            claimed.addAll(jobs.claimOrdinary("x", 100));
            look();
            claimed.forEach(id -> jobs.complete("x", id));
        }
        assertThat(db.jobs()).isZero();
        assertThat(jobs.used()).isZero();
        assertThat(failures).isEmpty();
    }
}
