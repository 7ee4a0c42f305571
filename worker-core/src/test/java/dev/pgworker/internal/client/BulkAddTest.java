package dev.pgworker.internal.client;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.sql.DataSource;

import org.awaitility.Awaitility;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

import dev.pgworker.WorkerClient;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.Task;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.testing.OwnThread;
import dev.pgworker.testing.TestSchema;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

/** Adding many jobs at once. */
class BulkAddTest {

    private static final Task<Integer> NUMBER = Task.of("number", Integer.class);

    @RegisterExtension
    final TestSchema db = new TestSchema();

    /** The statements sent through {@link #counted()}, in order. */
    private final List<String> statements = new CopyOnWriteArrayList<>();

    @Test
    void returnsTheJobsInTheOrderOfTheRequestsInOneRoundTrip() {
        JobScheduler scheduler = counted();
        long existing = db.scheduler()
                .addJob("old", 0, JobSpec.builder().jobKey("m").build())
                .id();
        List<JobRequest> requests = List.of(
                request("t1", 1, JobSpec.builder().jobKey("z").queueName("q2")),
                request("t2", Map.of("a", 2), JobSpec.builder().queueName("q1").flags("x", "y,\"z")),
                request("t1", List.of(3), JobSpec.builder().jobKey("m").priority(-3)),
                JobRequest.of(NUMBER, 4),
                request("t3", null, JobSpec.builder().jobKey("a").maxAttempts(7)),
                request("t2", "6", JobSpec.builder().runAt(Instant.parse("2100-01-01T00:00:00Z"))));

        List<Job> jobs = scheduler.addJobs(requests);

        assertThat(statements).singleElement().asString().contains("add_jobs(");
        assertThat(jobs).extracting(Job::taskIdentifier).containsExactly("t1", "t2", "t1", "number", "t3", "t2");
        assertThat(jobs).extracting(Job::payload).containsExactly("1", "{\"a\":2}", "[3]", "4", "{}", "\"6\"");
        assertThat(jobs).extracting(Job::queueName).containsExactly("q2", "q1", null, null, null, null);
        assertThat(jobs).extracting(Job::key).containsExactly("z", null, "m", null, "a", null);
        assertThat(jobs).extracting(Job::revision).containsExactly(0, 0, 1, 0, 0, 0);
        assertThat(jobs.get(1).flags()).containsExactlyInAnyOrder("x", "y,\"z");
        assertThat(jobs.get(2).id()).isEqualTo(existing);
        assertThat(jobs.get(2).priority()).isEqualTo(-3);
        assertThat(jobs.get(4).maxAttempts()).isEqualTo(7);
        assertThat(jobs.get(5).runAt()).isEqualTo("2100-01-01T00:00:00Z");
        assertThat(jobs.stream().map(Job::id).filter(id -> id != existing)).isSorted();
        for (Job job : jobs) {
            assertThat(db.sql("select task_identifier || coalesce(queue_name, '') from {schema}.jobs where id = ?")
                            .param(job.id())
                            .query(String.class)
                            .single())
                    .isEqualTo(job.taskIdentifier() + (job.queueName() == null ? "" : job.queueName()));
        }
    }

    @Test
    void aBatchWithoutKeysIsReturnedInOrderInOneRoundTrip() {
        List<Integer> numbers = IntStream.range(0, 5_000).boxed().toList();

        List<Job> jobs = counted()
                .addJobs(NUMBER, numbers, JobSpec.builder().queueName("q").build());

        assertThat(statements).hasSize(1);
        assertThat(jobs)
                .extracting(Job::payload)
                .containsExactlyElementsOf(numbers.stream().map(String::valueOf).toList());
        assertThat(jobs).extracting(Job::id).isSorted().doesNotHaveDuplicates();
        assertThat(db.sql("select payload::text from {schema}._private_jobs order by priority, run_at, id")
                        .query(String.class)
                        .list())
                .as("the order of the queue")
                .isEqualTo(jobs.stream().map(Job::payload).toList());
    }

    @Test
    void moreJobsThanAChunkAreReturnedInOrderToo() {
        List<Integer> numbers = IntStream.range(0, 12_001).boxed().toList();

        List<Job> jobs = counted()
                .addJobs(NUMBER, numbers, JobSpec.builder().queueName("q").build());

        assertThat(statements.stream().filter(s -> s.contains("add_jobs("))).hasSize(3);
        assertThat(jobs)
                .extracting(Job::payload)
                .containsExactlyElementsOf(numbers.stream().map(String::valueOf).toList());
        assertThat(jobs).extracting(Job::id).isSorted();
        assertThat(db.jobs()).isEqualTo(12_001);
    }

    @Test
    void plainJobsOfAKnownTaskTakeOneStatementForEachChunk() {
        db.scheduler().addJob(NUMBER, -1);
        List<Integer> numbers = IntStream.range(0, 12_001).boxed().toList();

        List<Job> jobs = counted().addJobs(NUMBER, numbers);

        assertThat(statements.stream().filter(s -> s.contains("insert into"))).hasSize(3);
        assertThat(statements.stream().filter(s -> s.contains("add_jobs("))).isEmpty();
        assertThat(jobs)
                .extracting(Job::payload)
                .containsExactlyElementsOf(numbers.stream().map(String::valueOf).toList());
        assertThat(jobs).extracting(Job::id).isSorted();
        assertThat(db.jobs()).isEqualTo(12_002);
    }

    @Test
    void refusesBadRequestsBeforeAnySqlAndNamesThem() {
        JobScheduler scheduler = WorkerClient.jobScheduler(counting(), new WorkerSchema("no_such_schema"), db.codec());
        JobRequest good = request("t", 1, JobSpec.builder().jobKey("k"));

        refused(scheduler, "requests[2].jobKey", good, JobRequest.of("t", 1), good);
        refused(
                scheduler,
                "requests[1].jobKeyMode",
                good,
                request("t", 1, JobSpec.builder().jobKey("l").jobKeyMode(JobKeyMode.UNSAFE_DEDUPE)));
        refused(
                scheduler,
                "requests[2].jobKeyMode",
                good,
                JobRequest.of("t", 1),
                request("t", 1, JobSpec.builder().jobKey("l").jobKeyMode(JobKeyMode.PRESERVE_RUN_AT)));
        refused(scheduler, "requests[1].payload", good, JobRequest.of("t", new Unwritable()));
        refused(scheduler, "requests[1]", good, null);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> scheduler.addJobs(
                        NUMBER, List.of(1, 2), JobSpec.builder().jobKey("k").build()))
                .withMessageContaining("requests[1].jobKey");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> scheduler.addJobs((List<JobRequest>) null))
                .withMessageContaining("requests");
        assertThat(statements).isEmpty();
    }

    private static void refused(JobScheduler scheduler, String name, JobRequest... requests) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> scheduler.addJobs(Arrays.asList(requests)))
                .withMessageContaining(name);
    }

    static class Unwritable {
        public String getName() {
            throw new IllegalStateException("on purpose");
        }
    }

    @Test
    void nothingToAddIsNoStatement() {
        assertThat(counted().addJobs(List.of())).isEmpty();
        assertThat(statements).isEmpty();
        assertThat(counted().addJobs(Stream.of())).isZero();
        assertThat(db.jobs()).isZero();
    }

    @Test
    @Tag("thorough")
    void streamsAHundredThousandJobsInOneTransactionWithoutHoldingThem() {
        db.sql("alter table {schema}._private_jobs set (autovacuum_enabled = false)")
                .update();
        int total = 120_000;
        int[] mostUnwritten = {0};
        long begun = System.nanoTime();

        long added = counted().addJobs(IntStream.range(0, total).mapToObj(i -> {
            mostUnwritten[0] = Math.max(mostUnwritten[0], i - 5_000 * statements.size());
            if (i == total - 1) {
                assertThat(db.jobs()).as("seen by others before the commit").isZero();
            }
            return JobRequest.of(
                    NUMBER, i, JobSpec.builder().queueName("q" + i % 3).build());
        }));

        System.out.printf("%d jobs streamed in %.1f s%n", total, (System.nanoTime() - begun) / 1e9);
        assertThat(added).isEqualTo(total);
        assertThat(mostUnwritten[0]).as("requests in memory").isLessThanOrEqualTo(5_000);
        assertThat(statements.stream().filter(s -> s.contains("add_jobs("))).hasSize(24);
        assertThat(db.jobs()).isEqualTo(total);
        assertThat(db.sql("select reltuples from pg_class where oid = '{schema}._private_jobs'::regclass")
                        .query(Double.class)
                        .single())
                .isBetween(total * 0.9, total * 1.1);
        assertThat(db.sql("""
                        select bool_and(n > before) from (
                          select n, lag(n, 1, -1) over (partition by job_queue_id order by priority, run_at, id) as before
                          from (select job_queue_id, payload::text::int as n, priority, run_at, id
                                from {schema}._private_jobs) j) o""").query(Boolean.class).single())
                .as("the order of the queues is that of the stream")
                .isTrue();
    }

    @Test
    void aRollbackLeavesNone() {
        transaction().executeWithoutResult(status -> {
            db.scheduler().addJobs(numbers(12_000));
            db.scheduler().addJobs(NUMBER, List.of(1, 2));
            assertThat(db.jobs()).isEqualTo(12_002);
            status.setRollbackOnly();
        });
        assertThat(db.jobs()).isZero();
    }

    @Test
    void aStreamThatFailsLeavesNone() {
        assertThatThrownBy(() -> db.scheduler().addJobs(failingStream()))
                .hasMessageContaining("requests[7000].payload");
        assertThat(db.jobs()).isZero();
        assertThat(db.dataSource().getHikariPoolMXBean().getActiveConnections()).isZero();
    }

    @Test
    void aStreamThatFailsInATransactionThatIsCommittedAllTheSameLeavesNone() {
        transaction().executeWithoutResult(status -> {
            db.scheduler().addJob("before");
            assertThatThrownBy(() -> db.scheduler().addJobs(failingStream()))
                    .hasMessageContaining("requests[7000].payload");
            db.scheduler().addJob("after");
        });

        assertThat(db.sql("select task_identifier from {schema}.jobs order by id")
                        .query(String.class)
                        .list())
                .containsExactly("before", "after");
    }

    @Test
    void aChunkThatTheDatabaseRefusesLeavesNone() {
        db.sql("alter table {schema}._private_jobs add constraint odd check (payload::text <> '7000')")
                .update();
        transaction().executeWithoutResult(status -> {
            assertThatThrownBy(() -> db.scheduler().addJobs(numbers(12_000))).isInstanceOf(DataAccessException.class);
            assertThatThrownBy(() -> db.scheduler()
                            .addJobs(NUMBER, IntStream.range(0, 12_000).boxed().toList()))
                    .isInstanceOf(DataAccessException.class);
        });
        assertThat(db.jobs()).isZero();
    }

    @Test
    void keysInAStreamReplaceAndAreCheckedOverItsWholeLength() {
        long existing = db.scheduler()
                .addJob("old", 0, JobSpec.builder().jobKey("k1").build())
                .id();

        assertThat(db.scheduler()
                        .addJobs(IntStream.range(0, 11_000)
                                .mapToObj(i -> request(
                                        "t",
                                        i,
                                        i % 2 == 0
                                                ? JobSpec.builder()
                                                : JobSpec.builder().jobKey("k" + i)))))
                .isEqualTo(11_000);

        assertThat(db.jobs()).isEqualTo(11_000);
        assertThat(db.sql("select task_identifier || revision from {schema}.jobs where id = ?")
                        .param(existing)
                        .query(String.class)
                        .single())
                .isEqualTo("t1");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> db.scheduler()
                        .addJobs(IntStream.rangeClosed(0, 6_000)
                                .mapToObj(i -> request("t", i, JobSpec.builder().jobKey("l" + i % 6_000)))))
                .withMessageContaining("requests[6000].jobKey");
        assertThat(db.jobs()).isEqualTo(11_000);
    }

    @Test
    void aLargeBatchTreatsEachKeyByItself() {
        int total = 6_000;
        JobRequest[] first = IntStream.range(0, total)
                .filter(i -> i % 3 != 0)
                .mapToObj(i -> request("t", List.of(i), JobSpec.builder().jobKey("k" + i)))
                .toArray(JobRequest[]::new);
        List<Job> before = db.scheduler().addJobs(List.of(first));
        db.sql("update {schema}._private_jobs set locked_at = now(), locked_by = 'w', attempts = 1 where id % 300 = 0")
                .update();
        Map<String, Long> idsBefore = before.stream().collect(Collectors.toMap(Job::key, Job::id));

        List<Job> after = db.scheduler()
                .addJobs(IntStream.range(0, total)
                        .map(i -> total - 1 - i)
                        .mapToObj(i -> request(
                                "u" + i % 2,
                                List.of("new"),
                                JobSpec.builder().jobKey("k" + i).queueName("q" + i % 5)))
                        .toList());

        assertThat(after)
                .extracting(Job::key)
                .containsExactlyElementsOf(IntStream.range(0, total)
                        .mapToObj(i -> "k" + (total - 1 - i))
                        .toList());
        for (Job job : after) {
            int i = Integer.parseInt(job.key().substring(1));
            Long idBefore = idsBefore.get(job.key());
            boolean updated = idBefore != null && idBefore % 300 != 0;
            assertThat(job.id() == (idBefore == null ? -1 : idBefore))
                    .as(job.key())
                    .isEqualTo(updated);
            assertThat(job.revision()).isEqualTo(updated ? 1 : 0);
            assertThat(job.payload().replace(" ", "")).isEqualTo(updated ? "[" + i + ",\"new\"]" : "[\"new\"]");
            assertThat(job.taskIdentifier()).isEqualTo("u" + i % 2);
            assertThat(job.queueName()).isEqualTo("q" + i % 5);
        }
        assertThat(db.sql("select count(*) from {schema}._private_jobs where key is null and locked_by = 'w' and"
                                + " attempts = max_attempts and id % 300 = 0")
                        .query(Long.class)
                        .single())
                .as("retired")
                .isEqualTo(
                        idsBefore.values().stream().filter(id -> id % 300 == 0).count());
    }

    /** The server would look for a deadlock after an hour only. */
    @Test
    void aBatchThatWaitsForAKeyKeepsNobodyWaitingForItsOthers() throws Exception {
        db.scheduler().addJob("t", 0);
        String batch = """
                select count(*) from {schema}.add_jobs(array[
                  ('t', '1', null, null, null, 'a', null, null), ('t', '1', null, null, null, 'b', null, null)
                ]::{schema}.job_spec[])""";
        try (Connection first = db.dataSource().getConnection();
                Connection second = db.dataSource().getConnection()) {
            first.setAutoCommit(false);
            second.setAutoCommit(false);
            in(first, "select set_config('deadlock_timeout', '1h', true)");
            in(first, "select (select count(*) from {schema}.add_job('t', '2', job_key => 'b'))");
            CompletableFuture<String> adding = CompletableFuture.supplyAsync(
                    () -> {
                        in(
                                second,
                                "select set_config('deadlock_timeout', '1h', true), set_config('lock_timeout', '2min', true)");
                        in(second, batch);
                        return in(second, "select current_setting('lock_timeout')");
                    },
                    OwnThread.EACH);
            Awaitility.await()
                    .pollInterval(Duration.ofMillis(2))
                    .until(() -> db.sql("select exists (select from pg_stat_activity where wait_event_type = 'Lock'"
                                    + " and query like '%' || ? || '%add_jobs%')")
                            .param(db.schema().name())
                            .query(Boolean.class)
                            .single());

            CompletableFuture<String> other = CompletableFuture.supplyAsync(
                    () -> in(first, "select (select count(*) from {schema}.add_job('t', '3', job_key => 'a'))"),
                    OwnThread.EACH);
            assertThat(other.get(120, TimeUnit.SECONDS)).isEqualTo("1");
            first.commit();

            assertThat(adding.get(120, TimeUnit.SECONDS))
                    .as("that of the caller")
                    .isEqualTo("2min");
            second.commit();
        }
        assertThat(db.sql("select key || revision from {schema}.jobs where key is not null order by key")
                        .query(String.class)
                        .list())
                .containsExactly("a1", "b1");
    }

    private String in(Connection connection, String sql) {
        try (var statement = connection.createStatement();
                var row = statement.executeQuery(db.schema().in(sql))) {
            row.next();
            return row.getString(1);
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    private static JobRequest request(String task, Object payload, JobSpec.Builder spec) {
        return JobRequest.of(task, payload, spec.build());
    }

    private static Stream<JobRequest> numbers(int count) {
        return IntStream.range(0, count).mapToObj(i -> JobRequest.of(NUMBER, i));
    }

    private static Stream<JobRequest> failingStream() {
        return Stream.concat(numbers(7_000), Stream.of(JobRequest.of("t", new Unwritable())));
    }

    private TransactionTemplate transaction() {
        return new TransactionTemplate(new JdbcTransactionManager(db.dataSource()));
    }

    /** Returns a scheduler whose statements are recorded. */
    private JobScheduler counted() {
        return WorkerClient.jobScheduler(counting(), db.schema(), db.codec());
    }

    private DataSource counting() {
        return proxy(DataSource.class, db.dataSource(), null);
    }

    /** Passes everything on, and records the SQL of whatever is executed below it. */
    private <T> T proxy(Class<T> type, T target, String sql) {
        return type.cast(Proxy.newProxyInstance(
                type.getClassLoader(), new Class<?>[] {type}, (self, method, arguments) -> {
                    if (method.getName().startsWith("execute")) {
                        statements.add(sql == null ? String.valueOf(arguments[0]) : sql);
                    }
                    try {
                        Object result = method.invoke(target, arguments);
                        if (method.getName().equals("getConnection") && result instanceof Connection connection) {
                            return proxy(Connection.class, connection, null);
                        }
                        return result instanceof PreparedStatement statement
                                ? proxy(PreparedStatement.class, statement, (String) arguments[0])
                                : result;
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                }));
    }
}
