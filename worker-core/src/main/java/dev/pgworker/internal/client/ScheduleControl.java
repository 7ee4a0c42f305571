package dev.pgworker.internal.client;

import java.time.Duration;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
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
import dev.pgworker.schedule.Recurrence;
import dev.pgworker.schedule.RecurringJob;
import dev.pgworker.schedule.RecurringJob.Origin;
import dev.pgworker.schedule.RecurringJobs;
import dev.pgworker.schedule.RecurringQuery;
import dev.pgworker.schedule.Schedule;
import dev.pgworker.schema.WorkerSchema;
import dev.pgworker.task.PayloadCodec;

/** The schedules of the database, on the connection of the caller's transaction. */
public final class ScheduleControl {

    private static final Logger log = WorkerLog.of(ScheduleControl.class);

    private static final int MAX_PAYLOAD = 100_000;

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
    public ScheduleControl(DataSource dataSource, WorkerSchema schema, PayloadCodec codec, JobScheduler jobs) {
        this(new ClientConnections(dataSource), schema, codec, jobs, null);
    }

    private ScheduleControl(
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

    /** As {@link RecurringJobs#actingAs}. */
    public ScheduleControl actingAs(String name) {
        return new ScheduleControl(connections, schema, codec, jobs, Arguments.requireUser(name));
    }

    /** As {@link RecurringJobs#create}. */
    public RecurringJob create(Schedule schedule) {
        return write("create", schedule, true, null);
    }

    /** As {@link RecurringJobs#put}. */
    public RecurringJob put(Schedule schedule) {
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

    private RecurringJob write(String verb, Schedule schedule, boolean onlyNew, @Nullable Boolean declared) {
        Arguments.requireNonNull("schedule", schedule);
        RecurringJob status = connections.query(
                verb + " schedule \"" + schedule.name() + "\"",
                false,
                client -> write(client, schedule, onlyNew, declared));
        tell("Schedule", onlyNew ? "created" : "put", schedule.name());
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

    private RecurringJob write(JdbcClient client, Schedule schedule, boolean onlyNew, @Nullable Boolean declared) {
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

    /** Returns whether there was one. */
    public boolean delete(String name) {
        return change("delete", "deleted", name, client -> client.sql(schema.in(DELETE)));
    }

    private static final String PAUSE = """
            select {schema}.pgworker_pause_schedule(:name, :user)
            """;

    /** Returns whether there is one that was not paused before. */
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

    /** Returns whether there is one that was paused. */
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
            tell("Schedule", participle, name);
        }
        return changed;
    }

    private static final String FIND = "select " + ScheduleRow.COLUMNS + """
            from {schema}.pgworker_schedules s where s.name operator(pg_catalog.=) ?
            """;

    /** Returns the one of this name. */
    public Optional<RecurringJob> find(String name) {
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

    /** Returns those that match, but not more than the limit. */
    public List<RecurringJob> list(RecurringQuery query) {
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
        if (!query.origins().contains(Origin.DECLARED)) {
            conditions.add("not s.declared");
        }
        if (!query.origins().contains(Origin.DATABASE)) {
            conditions.add("s.declared");
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

    /** Adds a job of a schedule; empty if there is none of that name. */
    public Optional<Job> trigger(String name) {
        return row(name).map(row -> add(row, (ObjectNode) requireReadable(row).payload()));
    }

    /** As {@link #trigger(String)}, with another payload. */
    public Optional<Job> trigger(String name, @Nullable Object payload) {
        return row(name).map(row -> add(row, tree(payload)));
    }

    /**
     * Returns a payload as a tree.
     *
     * @throws IllegalArgumentException if it is not written as a JSON object
     */
    public ObjectNode tree(@Nullable Object payload) {
        return payload instanceof ObjectNode tree
                ? tree.deepCopy()
                : ScheduleRow.payload("payload", codec.encode("payload", payload));
    }

    private static JobRequest requireReadable(ScheduleRow row) {
        if (row.job() == null) {
            throw new IllegalStateException(
                    "Schedule \"" + row.status().id() + "\" cannot be read: " + row.unreadable());
        }
        return row.job();
    }

    private Job add(ScheduleRow row, @Nullable ObjectNode payload) {
        JobRequest job = requireReadable(row);
        String name = row.status().id();
        ObjectNode stamped = ScheduleRow.stamped(Objects.requireNonNull(payload), name, row.readAt(), false);
        Job added = jobs.addJob(job.identifier(), stamped, row.specOfJobs(job.spec()));
        tell("Schedule", "triggered", name);
        return added;
    }

    private static String requireName(@Nullable String name) {
        return Arguments.requireGivenText("id", name);
    }

    /** Logs who has changed what after the commit, if a user is named. */
    public void tell(String what, String participle, String name) {
        if (user != null) {
            ClientConnections.afterCommit(() -> log.info(
                    "{} \"{}\" {} by user \"{}\"", what, LogText.visible(name), participle, LogText.visible(user)));
        }
    }
}
