package dev.pgworker.internal.client;

import java.util.ArrayList;
import java.util.List;

import dev.pgworker.job.JobQuery;
import dev.pgworker.job.JobState;

/** The conditions of a query on rows {@code j}, in SQL, with their values. */
final class JobFilters {

    private final List<String> conditions = new ArrayList<>(List.of("true"));
    private final List<Object> values = new ArrayList<>();

    JobFilters(JobQuery query) {
        if (query.state() != null) {
            add(condition(query.state()));
        }
        if (query.taskIdentifier() != null) {
            add(
                    "j.task_id = (select t.id from {schema}._private_tasks t where t.identifier = ?::pg_catalog.text)",
                    query.taskIdentifier());
        }
        if (query.queueName() != null) {
            add(
                    "j.job_queue_id = (select q.id from {schema}._private_job_queues q where q.queue_name = ?::pg_catalog.text)",
                    query.queueName());
        }
        String search = query.search();
        if (search != null) {
            add(
                    "(pg_catalog.strpos(j.key, ?) > 0 or pg_catalog.strpos(j.last_error, ?) > 0"
                            + " or pg_catalog.strpos(j.payload::pg_catalog.text, ?) > 0)",
                    search,
                    search,
                    search);
        }
    }

    private static String condition(JobState state) {
        return switch (state) {
            case READY -> "j.is_available and j.run_at <= pg_catalog.now()";
            case SCHEDULED -> "j.is_available and j.run_at > pg_catalog.now() and j.attempts = 0";
            case RETRYING -> "j.is_available and j.run_at > pg_catalog.now() and j.attempts > 0";
            case RUNNING -> "j.locked_at is not null";
            case FAILED -> "j.locked_at is null and not j.is_available";
        };
    }

    void add(String condition, Object... itsValues) {
        conditions.add(condition);
        values.addAll(List.of(itsValues));
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
