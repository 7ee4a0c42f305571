package dev.pgworker.internal.client;

import java.time.Duration;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.Function;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.springframework.jdbc.core.simple.JdbcClient;
import tools.jackson.databind.node.ObjectNode;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.argument.LogText;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.internal.store.JobRows;
import dev.pgworker.internal.store.ScheduleRow;
import dev.pgworker.job.Job;
import dev.pgworker.job.JobRequest;
import dev.pgworker.job.JobScheduler;
import dev.pgworker.job.JobSpec;
import dev.pgworker.schedule.JobSchedules;
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.Schedule;
import dev.pgworker.schedule.ScheduleQuery;
import dev.pgworker.schedule.ScheduleStatus;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.PayloadCodec;

/** Recurring jobs of the database, on the connection of the caller's transaction. */
public final class JdbcJobSchedules implements JobSchedules {

    private static final Logger log = WorkerLog.of(JdbcJobSchedules.class);

    private static final int MAX_NAME = 128;

    private static final int MAX_PAYLOAD = 100_000;

    private static final DateTimeFormatter TIMESTAMP = DateTimeFormatter.ofPattern(
                    "uuuu-MM-dd'T'HH:mm:ss.SSS'Z'", Locale.ROOT)
            .withZone(ZoneOffset.UTC);

    private final ClientConnections connections;
    private final WorkerSchema schema;
    private final PayloadCodec codec;
    private final JobScheduler jobs;
    private final @Nullable String user;

    /**
     * Creates the schedules of one schema.
     *
     * @param jobs adds the jobs of triggered schedules
     */
    public JdbcJobSchedules(DataSource dataSource, WorkerSchema schema, PayloadCodec codec, JobScheduler jobs) {
        this(new ClientConnections(dataSource), schema, codec, jobs, null);
    }

    private JdbcJobSchedules(
            ClientConnections connections,
            WorkerSchema schema,
            PayloadCodec codec,
            JobScheduler jobs,
            @Nullable String user) {
        this.connections = connections;
        this.schema = schema;
        this.codec = codec;
        this.jobs = jobs;
        this.user = user;
    }

    @Override
    public JobSchedules actingAs(String name) {
        return new JdbcJobSchedules(connections, schema, codec, jobs, Arguments.requireUser(name));
    }

    @Override
    public ScheduleStatus create(Schedule schedule) {
        return write("create", schedule, true, null);
    }

    @Override
    public ScheduleStatus put(Schedule schedule) {
        return write("put", schedule, false, null);
    }

    private static final String TASK =
            "select task_identifier from {schema}.pgworker_schedules where name operator(pg_catalog.=) ?";

    private static final String LIMIT_LOCKS = """
            select pg_catalog.set_config('lock_timeout', ?, true)
            """;

    /**
     * Puts a schedule that the application declares: only applications that declare it execute it.
     *
     * @param lockLimit how long to wait for others who are changing it
     */
    public void declare(Schedule schedule, Duration lockLimit) {
        connections.query("declare schedule \"" + schedule.name() + "\"", true, client -> {
            client.sql("set transaction isolation level read committed").update();
            client.sql(LIMIT_LOCKS)
                    .param(lockLimit.toMillis() + "ms")
                    .query(String.class)
                    .single();
            warnOfAnotherTask(client, schedule);
            return write(client, schedule, false, true);
        });
    }

    /** Two applications of one schema that declare the same name would take it from each other in silence. */
    private void warnOfAnotherTask(JdbcClient client, Schedule schedule) {
        client.sql(schema.in(TASK))
                .param(schedule.name())
                .query(String.class)
                .optional()
                .filter(task -> !task.equals(schedule.job().identifier()))
                .ifPresent(task -> log.warn(
                        "Schedule \"{}\" was of task \"{}\" and is now of task \"{}\", as this application declares it. If another"
                                + " application declares the same name, give one of them another",
                        LogText.visible(schedule.name()),
                        LogText.visible(task),
                        LogText.visible(schedule.job().identifier())));
    }

    private ScheduleStatus write(String verb, Schedule schedule, boolean onlyNew, @Nullable Boolean declared) {
        Arguments.requireNonNull("schedule", schedule);
        ScheduleStatus status = connections.query(
                verb + " schedule \"" + schedule.name() + "\"",
                false,
                client -> write(client, schedule, onlyNew, declared));
        tell(onlyNew ? "created" : "put", schedule.name());
        return status;
    }

    private static final String PUT = "select " + ScheduleRow.COLUMNS + """
            from {schema}.pgworker_put_schedule(
              name => ?, identifier => ?, payload => ?::pg_catalog.json, crontab => ?, cron => ?,
              fixed_rate => pg_catalog.make_interval(secs => ?), fixed_delay => pg_catalog.make_interval(secs => ?), zone => ?,
              origin => ?, starts_at => ?, ends_at => ?, jitter => pg_catalog.make_interval(secs => ?), queue_name => ?,
              max_attempts => ?, job_key => ?, priority => ?, flags => ?::pg_catalog.text[], job_key_mode => ?, overlap => ?,
              misfire => ?, backfill => pg_catalog.make_interval(secs => ?), only_new => ?, declared => ?) s
            """;

    private ScheduleStatus write(JdbcClient client, Schedule schedule, boolean onlyNew, @Nullable Boolean declared) {
        List<@Nullable Object> values = new ArrayList<>();
        values.add(schedule.name());
        values.add(schedule.job().identifier());
        values.add(payload(schedule));
        addRecurrence(values, schedule.recurrence());
        values.add(Timestamps.offset(schedule.startsAt()));
        values.add(Timestamps.offset(schedule.endsAt()));
        values.add(seconds(schedule.jitter()));
        addSpec(values, schedule.job().spec());
        values.add(word(schedule.overlap()));
        values.add(word(schedule.misfire()));
        values.add(seconds(schedule.backfill()));
        values.add(onlyNew);
        values.add(declared);
        return client.sql(schema.in(PUT))
                .params(values)
                .query((row, number) -> ScheduleRow.read(row).status())
                .single();
    }

    private String payload(Schedule schedule) {
        JobRequest job = schedule.job();
        String name = "payload of schedule \"" + schedule.name() + "\"";
        String json = codec.encode(name, job.payload(), job.payloadType());
        int length = json.codePointCount(0, json.length());
        if (length > MAX_PAYLOAD) {
            throw new IllegalArgumentException(
                    name + " must have at most " + MAX_PAYLOAD + " characters as JSON, but has " + length);
        }
        ObjectNode unused = ScheduleRow.payload(name, json);
        return json;
    }

    private static void addRecurrence(List<@Nullable Object> values, Recurrence recurrence) {
        Recurrence.Kind kind = recurrence.kind();
        ZoneId zone = recurrence.zone();
        values.add(kind == Recurrence.Kind.CRONTAB ? recurrence.expression() : null);
        values.add(kind == Recurrence.Kind.CRON ? recurrence.expression() : null);
        values.add(kind == Recurrence.Kind.FIXED_RATE ? seconds(recurrence.every()) : null);
        values.add(kind == Recurrence.Kind.FIXED_DELAY ? seconds(recurrence.every()) : null);
        values.add(zone == null ? null : zone.getId());
        values.add(Timestamps.offset(recurrence.origin()));
    }

    private static void addSpec(List<@Nullable Object> values, JobSpec spec) {
        values.add(spec.queueName());
        values.add(spec.maxAttempts());
        values.add(spec.jobKey());
        values.add(spec.priority());
        values.add(JobRows.flags(spec));
        values.add(JobRows.keyMode(spec).sqlName());
    }

    private static @Nullable Double seconds(@Nullable Duration duration) {
        return duration == null ? null : Timestamps.millis(duration) / 1_000;
    }

    private static String word(Enum<?> value) {
        return value.name().toLowerCase(Locale.ROOT);
    }

    private static final String DELETE = """
            select {schema}.pgworker_delete_schedule(:name)
            """;

    @Override
    public boolean delete(String name) {
        return change("delete", "deleted", name, client -> client.sql(schema.in(DELETE)));
    }

    private static final String PAUSE = """
            select {schema}.pgworker_pause_schedule(:name, :user)
            """;

    @Override
    public boolean pause(String name) {
        return change(
                "pause",
                "paused",
                name,
                client -> client.sql(schema.in(PAUSE)).param("user", Arguments.storable(user, Integer.MAX_VALUE)));
    }

    private static final String RESUME = """
            select {schema}.pgworker_resume_schedule(:name)
            """;

    @Override
    public boolean resume(String name) {
        return change("resume", "resumed", name, client -> client.sql(schema.in(RESUME)));
    }

    private boolean change(
            String verb, String participle, String name, Function<JdbcClient, JdbcClient.StatementSpec> statement) {
        requireName(name);
        boolean changed = connections.query(
                verb + " schedule \"" + name + "\"",
                false,
                client -> statement
                        .apply(client)
                        .param("name", name)
                        .query(Boolean.class)
                        .single());
        if (changed) {
            tell(participle, name);
        }
        return changed;
    }

    private static final String FIND = "select " + ScheduleRow.COLUMNS + """
            from {schema}.pgworker_schedules s where s.name operator(pg_catalog.=) ?
            """;

    @Override
    public Optional<ScheduleStatus> find(String name) {
        return row(name).map(ScheduleRow::status);
    }

    private Optional<ScheduleRow> row(String name) {
        requireName(name);
        return connections.query(
                "find schedule \"" + name + "\"",
                false,
                client -> client.sql(schema.in(FIND))
                        .param(name)
                        .query((row, number) -> ScheduleRow.read(row))
                        .optional());
    }

    @Override
    public List<ScheduleStatus> list(ScheduleQuery query) {
        Arguments.requireNonNull("query", query);
        List<String> conditions = new ArrayList<>();
        List<Object> values = new ArrayList<>();
        if (query.prefix() != null && !query.prefix().isEmpty()) {
            conditions.add("s.name operator(pg_catalog.~~) ?");
            values.add(query.prefix().replaceAll("[\\\\%_]", "\\\\$0") + "%");
        }
        if (query.task() != null) {
            conditions.add("s.task_identifier operator(pg_catalog.=) ?");
            values.add(query.task());
        }
        if (query.after() != null) {
            conditions.add("s.name operator(pg_catalog.>) ?");
            values.add(query.after());
        }
        if (query.paused() != null) {
            conditions.add(query.paused() ? "s.paused_at is not null" : "s.paused_at is null");
        }
        if (query.problem() != null) {
            conditions.add(query.problem() ? "s.problem is not null" : "s.problem is null");
        }
        String sql = "select " + ScheduleRow.COLUMNS + " from {schema}.pgworker_schedules s"
                + (conditions.isEmpty() ? "" : " where " + String.join(" and ", conditions))
                + " order by s.name limit " + query.limit();
        return connections.query(
                "list schedules",
                false,
                client -> client.sql(schema.in(sql))
                        .params(values)
                        .query((row, number) -> ScheduleRow.read(row).status())
                        .list());
    }

    @Override
    public Job trigger(String name) {
        ScheduleRow row = triggered(name);
        return add(row, requireReadable(row).payload());
    }

    @Override
    public Job trigger(String name, @Nullable Object payload) {
        return add(triggered(name), payload);
    }

    private ScheduleRow triggered(String name) {
        return row(name)
                .orElseThrow(() -> new IllegalArgumentException(
                        "name \"" + name + "\" must be that of a schedule, but there is none"));
    }

    private static JobRequest requireReadable(ScheduleRow row) {
        if (row.job() == null) {
            throw new IllegalStateException(
                    "Schedule \"" + row.status().name() + "\" cannot be read: " + row.unreadable());
        }
        return row.job();
    }

    private Job add(ScheduleRow row, @Nullable Object given) {
        JobRequest job = requireReadable(row);
        String name = row.status().name();
        ObjectNode payload = given instanceof ObjectNode tree
                ? tree.deepCopy()
                : ScheduleRow.payload("payload", codec.encode("payload", given));
        payload.putObject("_cron")
                .put("ts", TIMESTAMP.format(row.readAt()))
                .put("backfilled", false)
                .put("schedule", name);
        Job added = jobs.addJob(job.identifier(), payload, row.specOfJobs(job.spec()));
        tell("triggered", name);
        return added;
    }

    private static String requireName(@Nullable String name) {
        return Arguments.requireGivenText("name", name, MAX_NAME);
    }

    /** Says who has changed what once that is committed; what applications do by themselves need not be read. */
    private void tell(String participle, String name) {
        if (user != null) {
            ClientConnections.afterCommit(() -> log.info(
                    "Schedule \"{}\" {} by user \"{}\"", LogText.visible(name), participle, LogText.visible(user)));
        }
    }
}
