package dev.pgworker;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import javax.sql.DataSource;

import org.springframework.jdbc.core.simple.JdbcClient;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.crontab.Crontab;
import dev.pgworker.event.WorkerEvent.JobCompleted;
import dev.pgworker.event.WorkerEvent.JobFailed;
import dev.pgworker.event.WorkerEvent.ScheduleExecuted;
import dev.pgworker.event.WorkerEvent.WorkersRecovered;
import dev.pgworker.job.Cancellation;
import dev.pgworker.job.CleanupTask;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobChange;
import dev.pgworker.job.JobChanges;
import dev.pgworker.job.JobKeyMode;
import dev.pgworker.job.JobQueries;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSelection;
import dev.pgworker.job.JobSort;
import dev.pgworker.job.JobSpec;
import dev.pgworker.job.JobState;
import dev.pgworker.job.PauseTarget;
import dev.pgworker.job.Rescheduling;
import dev.pgworker.job.SweepOptions;
import dev.pgworker.job.Task;
import dev.pgworker.job.WorkerOperations;
import dev.pgworker.recovery.RecoverySettings;
import dev.pgworker.schedule.Overlap;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.RecurringJob;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.schedule.RecurringQuery;
import dev.pgworker.schedule.Schedule;
import dev.pgworker.schema.SchemaMigrator;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.PayloadCodec;
import dev.pgworker.testing.ClaimSql;
import dev.pgworker.testing.RecordingListener;

import static org.assertj.core.api.Assertions.assertThat;

/** The roles of docs/schema.md: their scripts, and all that each of them is for, done with the product. */
final class GuideRoles {

    private static final Pattern SCRIPT = Pattern.compile("```sql\\R-- role: (\\w+)\\R(.*?)```", Pattern.DOTALL);

    private static final Task<String> WORK = Task.of("work", String.class);
    private static final Task<String> FAIL = Task.of("fail", String.class);

    private GuideRoles() {}

    /** Returns the scripts of the guide by the names that the roles have there. */
    static Map<String, String> scripts() throws IOException {
        Path directory = Path.of("").toAbsolutePath();
        while (!Files.exists(directory.resolve("docs/schema.md"))) {
            directory = Objects.requireNonNull(directory.getParent());
        }
        return SCRIPT.matcher(Files.readString(directory.resolve("docs/schema.md")))
                .results()
                .collect(Collectors.toMap((MatchResult match) -> match.group(1), match -> match.group(2)));
    }

    /** Creates a role as its script says, and returns its name. */
    static String create(DataSource owner, WorkerSchema schema, String role) throws IOException, SQLException {
        String name = schema.name() + "_" + role;
        String script = Objects.requireNonNull(scripts().get(role))
                .replace("graphile_worker", schema.name())
                .replaceAll("\\b(to|policy) " + role + "\\b", "$1 " + name);
        try (Connection connection = owner.getConnection();
                Statement statement = connection.createStatement()) {
            statement.execute("create role " + name);
            statement.execute(script);
        }
        return name;
    }

    private static JobScheduler scheduler(DataSource dataSource, WorkerSchema schema) {
        return WorkerClient.jobScheduler(dataSource, schema, new PayloadCodec(new JsonMapper()));
    }

    private static JdbcClient.StatementSpec sql(DataSource dataSource, WorkerSchema schema, String text) {
        return JdbcClient.create(dataSource).sql(schema.in(text));
    }

    /** Adds jobs in all ways, none of which is due. */
    static void add(DataSource dataSource, WorkerSchema schema) throws SQLException {
        new SchemaMigrator(dataSource, schema).migrate();
        JobScheduler jobs = scheduler(dataSource, schema);
        JobSpec later = JobSpec.builder().runIn(Duration.ofDays(1)).build();
        jobs.addJob(WORK, "x", later);
        jobs.addJob(
                WORK,
                "x",
                JobSpec.builder()
                        .runIn(Duration.ofDays(1))
                        .queueName("q")
                        .flags("f")
                        .build());
        for (JobKeyMode mode : JobKeyMode.values()) {
            for (String key : List.of("k", "own-" + mode)) {
                jobs.addJob(
                        WORK,
                        "x",
                        JobSpec.builder()
                                .runIn(Duration.ofDays(1))
                                .jobKey(key)
                                .jobKeyMode(mode)
                                .build());
            }
        }
        assertThat(jobs.addJobs(IntStream.range(0, 20)
                        .mapToObj(n -> JobRequest.of(WORK, "x", later))
                        .toList()))
                .hasSize(20);
        assertThat(jobs.addJobs(IntStream.range(0, 20)
                        .mapToObj(n -> JobRequest.of(
                                WORK,
                                "x",
                                JobSpec.builder()
                                        .runIn(Duration.ofDays(1))
                                        .queueName("q" + n % 3)
                                        .build()))
                        .toList()))
                .hasSize(20);
        for (int i = 0; i < 2; i++) {
            assertThat(jobs.addJobs(IntStream.range(0, 20)
                            .mapToObj(n -> JobRequest.of(
                                    WORK,
                                    "x",
                                    n % 5 == 0
                                            ? later
                                            : JobSpec.builder()
                                                    .runIn(Duration.ofDays(1))
                                                    .jobKey("bulk" + n)
                                                    .build()))
                            .toList()))
                    .hasSize(20);
        }
        for (String statement : List.of(
                "select id from {schema}.add_job('work', '[1]', run_at => 'infinity', job_key => 'array')",
                "select id from {schema}.add_job('work', '[2]', run_at => 'infinity', job_key => 'array')",
                "select id from {schema}.add_job('made_by_sql', '{}', 'made_by_sql', 'infinity', 3, null, 1, '{a,b}')")) {
            assertThat(sql(dataSource, schema, statement).query(Long.class).list())
                    .hasSize(1);
        }
        assertThat(sql(
                                dataSource,
                                schema,
                                "select id from {schema}.add_jobs(array[('work', '{}', 'z', 'infinity', 3, 'b1', 1, '{f}'),"
                                        + " ('work', '{}', 'z', 'infinity', 3, null, 1, '{f}'), ('new', null, null, 'infinity', null, 'b0',"
                                        + " null, null)]::{schema}.job_spec[], true)")
                        .query(Long.class)
                        .list())
                .hasSize(3);
        try (Connection connection = dataSource.getConnection();
                Statement statement = connection.createStatement()) {
            connection.setAutoCommit(false);
            connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            statement.execute(schema.in("select {schema}.add_job('work', queue_name => 'q', run_at => 'infinity')"));
            connection.commit();
            connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
            connection.setAutoCommit(true);
        }
    }

    /** Starts a worker, which runs and fails jobs, adds some, has a crontab, and recovers what a dead worker held. */
    static void work(DataSource owner, DataSource dataSource, WorkerSchema schema) {
        SchemaMigrator migrator = new SchemaMigrator(dataSource, schema);
        migrator.migrate();
        migrator.validate();
        JobScheduler jobs = scheduler(owner, schema);
        Job lost = jobs.addJob(WORK, "lost", JobSpec.builder().queueName("lost").build());
        sql(owner, schema, "select {schema}.worker_heartbeat('dead')").query().listOfRows();
        sql(owner, schema, "update {schema}._private_workers set last_heartbeat_at = now() - interval '1 day'")
                .update();
        sql(owner, schema, "select from " + ClaimSql.claim("'dead'", "1") + " c")
                .query()
                .listOfRows();
        RecordingListener events = new RecordingListener();
        Worker worker = Worker.builder(dataSource)
                .schema(schema)
                .listener(events)
                .settings(WorkerSettings.builder()
                        .statistics(true)
                        .recovery(RecoverySettings.builder()
                                .enabled(true)
                                .recoveryDelay(Duration.ZERO)
                                .build())
                        .build())
                .crontab(Crontab.parse("t", "* * * * * minutely ?fill=2m&jobKey=minutely {}"))
                .schedules(List.of(
                        Schedule.builder("declared", Recurrence.fixedDelay(Duration.ofSeconds(1)), "minutely", null)
                                .spec(JobSpec.builder().jobKey("declared").build())
                                .build()))
                .task(WORK, (text, context) -> {
                    if (text.equals("more")) {
                        context.jobScheduler()
                                .addJob(
                                        WORK,
                                        "child",
                                        JobSpec.builder().queueName("children").build());
                    }
                })
                .task(Task.of("minutely", JsonNode.class), (payload, context) -> {})
                .task(FAIL, (text, context) -> {
                    throw new IllegalStateException("on purpose");
                })
                .build();
        worker.start();
        try {
            events.await(WorkersRecovered.class);
            events.await(JobCompleted.class, done -> done.job().id() == lost.id());
            jobs.addJob(WORK, "more");
            for (int i = 0; i < 3; i++) {
                jobs.addJob(WORK, "x", JobSpec.builder().queueName("q").build());
            }
            jobs.addJobs(IntStream.range(0, 200)
                    .mapToObj(n -> JobRequest.of(WORK, "x", JobSpec.DEFAULT))
                    .toList());
            jobs.addJob(FAIL, "x", JobSpec.builder().maxAttempts(1).build());
            jobs.addJob(FAIL, "x", JobSpec.builder().queueName("q").build());
            events.await(JobFailed.class, 2);
            events.await(JobCompleted.class, done -> done.job().payload().contains("child"));
            events.await(JobCompleted.class, 206);
            schedules(owner, schema)
                    .put(Schedule.builder(
                                    "skip",
                                    Recurrence.cron("* * * * * *", ZoneId.of("UTC")),
                                    "minutely",
                                    Map.of("a", 1))
                            .overlap(Overlap.SKIP)
                            .build());
            for (String name : List.of("declared", "skip")) {
                events.await(
                        ScheduleExecuted.class,
                        2,
                        executed -> executed.schedule().equals(name));
            }
        } finally {
            worker.stop();
        }
        assertThat(sql(owner, schema, "select count(*) from {schema}._private_jobs where locked_by is not null")
                        .query(Long.class)
                        .single())
                .isZero();
    }

    /** Does everything that administration can do. */
    static void operate(DataSource owner, DataSource dataSource, WorkerSchema schema) {
        JobScheduler jobs = scheduler(owner, schema);
        JobQueries queries = WorkerClient.jobQueries(dataSource, schema);
        JobChanges changes = WorkerClient.jobChanges(dataSource, schema);
        WorkerOperations operations = WorkerClient.workerOperations(dataSource, schema);
        JobSpec later = JobSpec.builder()
                .runIn(Duration.ofDays(1))
                .queueName("admin")
                .jobKey("admin")
                .build();
        Job job = jobs.addJob(WORK, "secret", later);
        Job other = jobs.addJob(WORK, "other", JobSpec.DEFAULT);
        assertThat(queries.find(job.id()).orElseThrow().payload()).contains("secret");
        assertThat(queries.list(JobQuery.builder()
                                .state(JobState.SCHEDULED)
                                .taskIdentifier("work")
                                .queueName("admin")
                                .search("secret")
                                .build())
                        .jobs())
                .hasSize(1);
        look(queries, null);
        assertThat(changes.remove(
                        List.of(jobs.addJob(WORK, "removed", JobSpec.DEFAULT).id())))
                .hasSize(1);
        for (JobChange change : List.of(new JobChange.RunNow(), new JobChange.Fail("wrong"), new JobChange.Remove())) {
            JobSelection selection = new JobSelection(
                    List.of(jobs.addJob(WORK, "bulk", JobSpec.DEFAULT).id()), true);
            assertThat(changes.change(selection, change, (done, changed, total) -> true)
                            .changed())
                    .isEqualTo(1);
        }
        changes.remove(
                queries.select(JobQuery.builder().search("bulk").build(), 10).ids());
        assertThat(changes.reschedule(
                        List.of(job.id()),
                        Rescheduling.builder().priority(3).attempts(1).build()))
                .hasSize(1);
        assertThat(changes.permanentlyFail(List.of(other.id()), "by hand")).hasSize(1);
        assertThat(changes.complete(List.of(other.id()))).hasSize(1);
        assertThat(changes.remove("admin")).isPresent();
        cancel(changes, operations, owner, schema);
        sql(
                        owner,
                        schema,
                        "insert into {schema}._private_workers (id, last_heartbeat_at, metadata) values ('gone', now() - interval '1 day', '{}')")
                .update();
        for (String holder : List.of("gone", "stuck")) {
            jobs.addJob(WORK, "held", JobSpec.builder().queueName(holder).build());
            sql(owner, schema, "select from " + ClaimSql.claim("'" + holder + "'", "1") + " c")
                    .query()
                    .listOfRows();
        }
        assertThat(operations.sweep(SweepOptions.DEFAULT).workerIds()).containsExactly("gone");
        operations.forceUnlockWorkers(List.of("stuck"));
        assertThat(operations.cleanup(Set.of(CleanupTask.values())).skipped()).isEmpty();
        queries.running(10);
        for (PauseTarget target :
                List.of(PauseTarget.task("work"), PauseTarget.queue("missing"), PauseTarget.everything())) {
            assertThat(operations.actingAs("ada").pause(target, "for a while")).isTrue();
            assertThat(queries.pauses()).hasSize(1);
            assertThat(operations.resume(target)).isTrue();
        }
        view(dataSource, schema);
        schedules(owner, schema)
                .put(Schedule.builder("own", Recurrence.fixedDelay(Duration.ofDays(1)), WORK.identifier(), Map.of())
                        .startsAt(Instant.parse("2999-01-01T00:00:00Z"))
                        .build());
        manage(schedules(dataSource, schema));
        sql(owner, schema, "insert into {schema}._private_known_crontabs values ('nightly', now(), null)")
                .update();
        RecurringJobs recurring = schedules(dataSource, schema);
        assertThat(recurring.pause("nightly")).isTrue();
        assertThat(recurring.resume("nightly")).isTrue();
        assertThat(recurring.delete("nightly")).isTrue();
        sql(owner, schema, "delete from {schema}._private_jobs where locked_at is null and run_at <= now()")
                .update();
    }

    /** Cancels jobs that wait, and one that runs, ends without success and is cleaned up. */
    private static void cancel(JobChanges changes, WorkerOperations operations, DataSource owner, WorkerSchema schema) {
        JobScheduler jobs = scheduler(owner, schema);
        JobSpec keyed =
                JobSpec.builder().runIn(Duration.ofDays(1)).jobKey("cancelled").build();
        Job running = jobs.addJob(WORK, "x", keyed);
        sql(
                        owner,
                        schema,
                        "update {schema}._private_jobs set locked_at = now(), locked_by = 'pool-1' where key = 'cancelled'")
                .update();
        assertThat(changes.cancel("cancelled")).isPresent();
        Job waiting = jobs.addJob(WORK, "x", keyed);
        assertThat(changes.cancel(List.of(running.id(), waiting.id()))).hasSize(2);
        sql(
                        owner,
                        schema,
                        "update {schema}._private_jobs set locked_at = null, locked_by = null where locked_by = 'pool-1'")
                .update();
        operations.cleanup(EnumSet.of(CleanupTask.DELETE_PERMAFAILED_JOBS));
        assertThat(changes.awaitCancellations(List.of(running.id()), Duration.ZERO))
                .allMatch(end -> end.state() == Cancellation.State.CANCELLED);
    }

    /** Does everything that RecurringJobs can do, except to add jobs. */
    static void schedule(DataSource dataSource, WorkerSchema schema) {
        RecurringJobs schedules = schedules(dataSource, schema);
        for (Recurrence recurrence : List.of(
                Recurrence.crontab("30 4 * * *", ZoneOffset.UTC),
                Recurrence.cron("@daily", ZoneOffset.UTC),
                Recurrence.fixedRate(Duration.ofDays(1), Instant.EPOCH),
                Recurrence.fixedDelay(Duration.ofDays(1)))) {
            Schedule schedule = Schedule.builder("own", recurrence, WORK.identifier(), Map.of("a", 1))
                    .startsAt(Instant.parse("2999-01-01T00:00:00Z"))
                    .spec(JobSpec.builder().queueName("q").flags("f").build())
                    .build();
            schedules.create(schedule);
            schedules.put(schedule.toBuilder().overlap(Overlap.SKIP).build());
            manage(schedules);
        }
    }

    /** Looks at the schedule of this name, pauses, resumes and deletes it. */
    private static void manage(RecurringJobs schedules) {
        assertThat(schedules.list(new RecurringQuery("own", "work", false, "a", 10)))
                .hasSize(1);
        assertThat(schedules.actingAs("ada").pause("own")).isTrue();
        assertThat(schedules.resume("own")).isTrue();
        assertThat(schedules.find("own")).isPresent();
        assertThat(schedules.delete("own")).isTrue();
    }

    private static RecurringJobs schedules(DataSource dataSource, WorkerSchema schema) {
        return WorkerClient.recurringJobs(dataSource, schema, new PayloadCodec(new JsonMapper()));
    }

    /** Looks at everything that has no payload. */
    static void view(DataSource dataSource, WorkerSchema schema) {
        JobQueries queries = WorkerClient.jobQueries(dataSource, schema);
        queries.backlog();
        queries.count(JobQuery.builder().taskIdentifier("work").queueName("q").build());
        queries.queues(null, 10);
        queries.pauses();
        queries.activeWorkers();
        look(queries, 0);
        queries.statistics().series(Duration.ofHours(1), 60);
        queries.statistics().tasks(Duration.ofHours(1));
        schedules(dataSource, schema)
                .list(new RecurringQuery(null, null, null, null, Set.of(RecurringJob.Origin.CRONTAB), null, 10));
        sql(dataSource, schema, "select * from {schema}.jobs").query().listOfRows();
        new SchemaMigrator(dataSource, schema).validate();
    }

    /** Calls what reads jobs, by each of its ways. */
    static void look(JobQueries queries, Integer payloadLimit) {
        for (JobState state : JobState.values()) {
            for (JobSort sort : JobSort.values()) {
                for (Integer scanLimit : new Integer[] {null, 1000}) {
                    JobQuery query = JobQuery.builder()
                            .state(state)
                            .sort(sort)
                            .scanLimit(scanLimit)
                            .payloadLimit(payloadLimit)
                            .build();
                    queries.list(query);
                    JobQuery filtered = query.toBuilder()
                            .queueName("q")
                            .flag("f")
                            .search("s")
                            .taskIdentifier("work")
                            .from(Instant.EPOCH)
                            .to(Instant.now())
                            .build();
                    queries.list(filtered);
                    queries.list(filtered.toBuilder().state(null).build());
                    queries.list(filtered.toBuilder().key("k").build());
                    queries.count(filtered);
                    queries.select(filtered, 10);
                }
            }
        }
        queries.find(List.of(1L, 2L), payloadLimit == null ? 100 : payloadLimit);
        queries.list(JobQuery.builder().payloadLimit(payloadLimit).build())
                .jobs()
                .forEach(job -> queries.waitOf(job.id()));
        queries.cancellations(List.of(1L, 2L));
        queries.registeredWorkers();
        queries.tasks(null, 10);
        queries.previewCleanup(EnumSet.allOf(CleanupTask.class));
        queries.previewCleanup(EnumSet.of(CleanupTask.GC_JOB_QUEUES, CleanupTask.GC_TASK_IDENTIFIERS));
    }
}
