package dev.pgworker.internal.client;

import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;

import org.jspecify.annotations.Nullable;
import org.springframework.jdbc.core.SqlParameterValue;
import org.springframework.jdbc.support.SqlArrayValue;

import dev.pgworker.internal.jdbc.Timestamps;
import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobState;

/** Conditions on rows {@code j}, in SQL, with their values. */
final class JobFilters {

    /** Jobs that wait for a limit have a lock of their own kind; the index of such jobs needs the very constant. */
    static final String PARKED = "j.locked_at = '9999-01-01 00:00:00+00'::pg_catalog.timestamptz";

    static final String RUNNING = "j.locked_at <> '9999-01-01 00:00:00+00'::pg_catalog.timestamptz";

    private static final String WAITING = "(j.is_available or " + PARKED + ")";

    private final List<String> conditions = new ArrayList<>(List.of("true"));
    private final List<Object> values = new ArrayList<>();

    /** All that a query asks for. */
    static JobFilters of(JobQuery query) {
        JobFilters filters = new JobFilters();
        if (query.state() != null) {
            filters.add(condition(query.state()));
        }
        if (query.taskIdentifier() != null) {
            filters.add(
                    "j.task_id = (select t.id from {schema}._private_tasks t where t.identifier = ?::pg_catalog.text)",
                    query.taskIdentifier());
        }
        if (query.queueName() != null) {
            filters.add(
                    "j.job_queue_id = (select q.id from {schema}._private_job_queues q where q.queue_name = ?::pg_catalog.text)",
                    query.queueName());
        }
        if (query.key() != null) {
            filters.add("j.key = ?::pg_catalog.text", query.key());
        }
        if (query.flag() != null) {
            filters.add("pg_catalog.jsonb_exists(j.flags, ?)", query.flag());
        }
        filters.addRunTimes(query);
        filters.addSearch(query);
        return filters;
    }

    static String condition(JobState state) {
        return switch (state) {
            case READY -> "j.is_available and j.run_at <= pg_catalog.now()";
            case SCHEDULED -> WAITING + " and j.run_at > pg_catalog.now() and j.attempts = 0";
            case RETRYING -> WAITING + " and j.run_at > pg_catalog.now() and j.attempts > 0";
            case LIMITED -> PARKED + " and j.run_at <= pg_catalog.now()";
            case RUNNING -> RUNNING;
            case FAILED -> "j.locked_at is null and not j.is_available";
        };
    }

    /** Adds the limits of the run time. */
    void addRunTimes(JobQuery query) {
        addTime("j.run_at >= ?", query.from());
        addTime("j.run_at < ?", query.to());
    }

    private void addTime(String condition, @Nullable Instant time) {
        if (time != null) {
            add(condition, new SqlParameterValue(java.sql.Types.TIMESTAMP_WITH_TIMEZONE, Timestamps.offset(time)));
        }
    }

    private void addSearch(JobQuery query) {
        String search = query.search();
        if (search == null) {
            return;
        }
        String plain = "pg_catalog.strpos(j.key, ?) > 0 or pg_catalog.strpos(j.last_error, ?) > 0";
        if (readsPayloads(query)) {
            add("(" + plain + " or pg_catalog.strpos(j.payload::pg_catalog.text, ?) > 0)", search, search, search);
        } else {
            add("(" + plain + ")", search, search);
        }
    }

    /** Returns whether a search looks into payloads. */
    static boolean readsPayloads(JobQuery query) {
        return query.search() != null && !Integer.valueOf(0).equals(query.payloadLimit());
    }

    void add(String condition, Object... itsValues) {
        conditions.add(condition);
        values.addAll(List.of(itsValues));
    }

    void addIds(Collection<Long> ids) {
        add("j.id = any(?)", new SqlArrayValue("int8", ids.toArray()));
    }

    void add(JobFilters others) {
        conditions.addAll(others.conditions);
        values.addAll(others.values);
    }

    /** Returns what the conditions compare with, in their order. */
    List<Object> values() {
        return values;
    }

    /** Returns all conditions as one, which is true if there is none. */
    @Override
    public String toString() {
        return String.join(" and ", conditions);
    }
}
