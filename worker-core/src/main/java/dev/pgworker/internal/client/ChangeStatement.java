package dev.pgworker.internal.client;

import java.sql.Types;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;

import org.jspecify.annotations.Nullable;
import org.springframework.jdbc.core.SqlParameterValue;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.support.SqlArrayValue;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.job.JobChange;
import dev.pgworker.job.Rescheduling;
import dev.pgworker.schema.WorkerSchema;

/** How jobs are changed by a function of the schema, which leaves alone what runs: its first parameter are the ids. */
enum ChangeStatement {
    COMPLETE("complete", "complete jobs", "completed", "", JobColumns.RECOVERIES, """
            from {schema}.complete_jobs(?) j
            """),

    FAIL("fail", "fail jobs permanently", "failed", "", JobColumns.RECOVERIES, """
            from {schema}.permanently_fail_jobs(?, ?) j
            """),

    REMOVE("remove", "remove jobs", "removed", "", JobColumns.RECOVERIES, """
            from {schema}.pgworker_remove_jobs(?) j
            """),

    CANCEL("cancel", "cancel jobs", "cancelled", "", JobColumns.RECOVERIES, """
            from {schema}.pgworker_cancel_jobs(?, ?) j where j.outcome <> 'gone'
            """),

    /** Given attempts end the count, which the statement still sees. */
    RESCHEDULE("reschedule", "reschedule jobs", "rescheduled", "", unlessAttemptsGiven(), """
            from (select ?::bigint[], ?::pg_catalog.timestamptz, ?::int, ?::int, ?::int) given(ids, run_at, priority, attempts, max_attempts)
            cross join lateral {schema}.reschedule_jobs(
              given.ids, given.run_at, given.priority, given.attempts, given.max_attempts) j
            """),

    /** Locks the jobs before it looks which of them have failed, so that none fails in between. */
    RUN_NOW("run-now", "make jobs due", "made due", """
            with due as materialized (
              select j.id, j.attempts >= j.max_attempts as failed
              from {schema}._private_jobs j
              where j.id = any(?::bigint[]) and not {schema}.pgworker_locked(j.locked_at, j.locked_by)
              order by j.id for update)
            """, unlessAttemptsGiven(), """
            from (
              select pg_catalog.array_agg(due.id) as ids, case when due.failed then 0 end as attempts
              from due group by due.failed) given
            cross join lateral {schema}.reschedule_jobs(given.ids, run_at => pg_catalog.now(), attempts => given.attempts) j
            """),

    RETRY_WITH(
            "retry-with", "retry jobs with another payload", "retried with another payload", """
            with given(ids, payload) as materialized (select ?::bigint[], ?::json),
            due as materialized (
              select j.id from {schema}._private_jobs j
              where j.id = any((select given.ids from given)::bigint[]) and j.attempts >= j.max_attempts
                and not {schema}.pgworker_locked(j.locked_at, j.locked_by)
              order by j.id for update),
            failed as materialized (
              update {schema}._private_jobs j set payload = given.payload, attempts = 0 from due, given where j.id = due.id
              returning j.id)
            """, "null::int\n", """
            from (select pg_catalog.array_agg(failed.id) as ids from failed) given
            cross join lateral {schema}.reschedule_jobs(given.ids, run_at => pg_catalog.now(), attempts => 0) j
            """);

    private final String action;
    private final String task;
    private final String participle;
    private final String jobs;
    private final String ids;

    ChangeStatement(String action, String task, String participle, String with, String recoveries, String from) {
        this.action = action;
        this.task = task;
        this.participle = participle;
        jobs = with + "select " + JobColumns.ALL + "j.task_id, j.job_queue_id, " + recoveries + from;
        ids = with + "select j.id " + from;
    }

    private static String unlessAttemptsGiven() {
        return "case when given.attempts is null then " + JobColumns.RECOVERIES + " end\n";
    }

    /** Returns the statement of a change. */
    static ChangeStatement of(JobChange change) {
        if (change instanceof JobChange.Complete) {
            return COMPLETE;
        } else if (change instanceof JobChange.Fail) {
            return FAIL;
        } else if (change instanceof JobChange.Remove) {
            return REMOVE;
        } else if (change instanceof JobChange.Cancel) {
            return CANCEL;
        }
        if (change instanceof JobChange.RetryWith) {
            return RETRY_WITH;
        }
        return change instanceof JobChange.Reschedule ? RESCHEDULE : RUN_NOW;
    }

    /**
     * Returns what the statement needs beside the ids, after a look whether that is allowed.
     *
     * @param user in whose name the jobs are changed; null if no name was given
     */
    static List<Object> values(JobChange change, @Nullable String user) {
        if (change instanceof JobChange.Fail fail) {
            return List.of(Arguments.requireGivenText("reason", fail.reason()));
        } else if (change instanceof JobChange.Reschedule reschedule) {
            Rescheduling given = Arguments.requireNonNull("rescheduling", reschedule.rescheduling());
            return List.of(
                    new SqlParameterValue(Types.TIMESTAMP_WITH_TIMEZONE, Timestamps.offset(given.runAt())),
                    new SqlParameterValue(Types.INTEGER, given.priority()),
                    new SqlParameterValue(Types.INTEGER, given.attempts()),
                    new SqlParameterValue(Types.INTEGER, given.maxAttempts()));
        } else if (change instanceof JobChange.RetryWith retry) {
            return List.of(json(Arguments.requireNonNull("payload", retry.payload())));
        } else if (change instanceof JobChange.Cancel) {
            return List.of(new SqlParameterValue(Types.VARCHAR, user));
        }
        Arguments.requireNonNull("change", change);
        return List.of();
    }

    private static String json(JsonNode payload) {
        if (payload.isMissingNode()) {
            throw new IllegalArgumentException("payload must be a JSON value, not a missing node");
        }
        try {
            return Arguments.requireStorable("payload", payload.toString());
        } catch (JacksonException e) {
            throw new IllegalArgumentException(
                    "payload must be writable as JSON, but is not: " + e.getOriginalMessage(), e);
        }
    }

    /** Returns what it is called in events. */
    String action() {
        return action;
    }

    /** Returns what is done, for the message of an exception. */
    String task() {
        return task;
    }

    /** Returns what has been done to a job. */
    String participle() {
        return participle;
    }

    /** Returns the statement that answers with the changed jobs, without the names of tasks and queues. */
    JdbcClient.StatementSpec changingJobs(
            JdbcClient client, WorkerSchema schema, Collection<Long> given, List<Object> values) {
        return client.sql(schema.in(jobs)).params(all(given, values));
    }

    /** Returns the statement that answers with the ids of the changed jobs alone. */
    JdbcClient.StatementSpec changing(
            JdbcClient client, WorkerSchema schema, Collection<Long> given, List<Object> values) {
        return client.sql(schema.in(ids)).params(all(given, values));
    }

    private static List<Object> all(Collection<Long> given, List<Object> values) {
        List<Object> all = new ArrayList<>();
        all.add(new SqlArrayValue("int8", given.toArray()));
        all.addAll(values);
        return all;
    }
}
