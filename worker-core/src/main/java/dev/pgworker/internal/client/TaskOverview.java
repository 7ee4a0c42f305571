package dev.pgworker.internal.client;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.jspecify.annotations.Nullable;
import org.springframework.jdbc.core.simple.JdbcClient;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

import dev.pgworker.internal.argument.Arguments;
import dev.pgworker.internal.jdbc.ClientConnections;
import dev.pgworker.internal.store.PauseStore;
import dev.pgworker.job.ActiveWorker;
import dev.pgworker.job.Pause;
import dev.pgworker.job.TaskSummary;
import dev.pgworker.schema.WorkerSchema;

/** The tasks of a schema: who serves them, and what there is to do. No index knows the jobs of a task, so the first of all are read. */
final class TaskOverview {

    /** So many jobs without a queue, with a queue and failed ones are looked at. */
    static final int MOST_READ = 10_000;

    private static final int MOST_COUNTED = 1_000;
    private static final int MOST_WORKERS = 100;

    private static final JsonMapper json = new JsonMapper();

    private final ClientConnections connections;
    private final WorkerSchema schema;

    TaskOverview(ClientConnections connections, WorkerSchema schema) {
        this.connections = connections;
        this.schema = schema;
    }

    private static final String TASKS = """
            select t.id, t.identifier, p.kind, p.name, p.paused_at, p.paused_by, p.reason
            from {schema}._private_tasks t
            left join {schema}.pgworker_pauses p on p.kind = 'task' and p.name = t.identifier
            where t.identifier > ?::pg_catalog.text
            order by t.identifier limit ?
            """;

    /**
     * Returns the tasks by name.
     *
     * @param workers all registered workers
     */
    List<TaskSummary> tasks(@Nullable String after, int limit, List<ActiveWorker> workers) {
        if (after != null && !after.isEmpty()) {
            Arguments.requireGivenText("after", after);
        }
        Arguments.requireRange("limit", limit, 1, 1000);
        Map<String, List<String>> served = served(workers);
        return connections.query("list the tasks", false, client -> {
            Map<Integer, String> tasks = new LinkedHashMap<>();
            Map<Integer, Pause> pauses = new HashMap<>();
            client.sql(schema.in(TASKS))
                    .param(after == null ? "" : after)
                    .param(limit)
                    .query(row -> {
                        tasks.put(row.getInt(1), row.getString(2));
                        if (row.getString(3) != null) {
                            pauses.put(row.getInt(1), PauseStore.pause(row, 3));
                        }
                    });
            Counted due = due(client);
            Counted failed = failed(client);
            List<TaskSummary> summaries = new ArrayList<>();
            tasks.forEach((id, name) -> {
                long waiting = due.of(id);
                long lost = failed.of(id);
                summaries.add(new TaskSummary(
                        name,
                        served.getOrDefault(name, List.of()),
                        Math.min(MOST_COUNTED, waiting),
                        Math.min(MOST_COUNTED, lost),
                        due.complete && failed.complete && waiting <= MOST_COUNTED && lost <= MOST_COUNTED,
                        pauses.get(id)));
            });
            return summaries;
        });
    }

    /** The live workers of each task. */
    private static Map<String, List<String>> served(List<ActiveWorker> workers) {
        Map<String, List<String>> served = new HashMap<>();
        for (ActiveWorker worker : workers) {
            if (!worker.stale()) {
                for (String task : tasks(worker)) {
                    List<String> ids = served.computeIfAbsent(task, name -> new ArrayList<>());
                    if (ids.size() < MOST_WORKERS) {
                        ids.add(worker.id());
                    }
                }
            }
        }
        return served;
    }

    /** Returns the tasks that a worker reports to serve. Any role may have written the metadata. */
    static List<String> tasks(ActiveWorker worker) {
        if (worker.metadata() == null) {
            return List.of();
        }
        try {
            List<String> tasks = new ArrayList<>();
            for (JsonNode task : json.readTree(worker.metadata()).path("tasks")) {
                if (task.isString()) {
                    tasks.add(task.stringValue());
                }
            }
            return tasks;
        } catch (JacksonException e) {
            return List.of();
        }
    }

    /** How many of the jobs that were read have each task, and whether all were read. */
    private record Counted(Map<Integer, Long> jobs, boolean complete) {

        long of(int task) {
            return jobs.getOrDefault(task, 0L);
        }
    }

    private Counted due(JdbcClient client) {
        Map<Integer, Long> jobs = new HashMap<>();
        boolean complete = true;
        for (String lane : List.of(ClaimOrder.UNQUEUED, ClaimOrder.QUEUED)) {
            complete &= count(client, ClaimOrder.first(lane, "j.task_id", ClaimOrder.DUE, MOST_READ), jobs);
        }
        complete &= count(client, LIMITED, jobs);
        return new Counted(jobs, complete);
    }

    private static final String LIMITED = """
            (select j.task_id from {schema}._private_jobs j where {parked} and j.run_at <= pg_catalog.now()
             order by j.locked_by collate "C", j.priority, j.run_at, j.id limit\s""".replace("{parked}", JobFilters.PARKED) + MOST_READ + ")";

    private static final String FAILED = """
            (select j.task_id from {schema}._private_jobs j where not j.is_available and j.locked_at is null
             order by j.id desc limit\s""" + MOST_READ + ")";

    private Counted failed(JdbcClient client) {
        Map<Integer, Long> jobs = new HashMap<>();
        return new Counted(jobs, count(client, FAILED, jobs));
    }

    /** Adds the numbers of jobs by task; returns whether there were fewer than may be read. */
    private boolean count(JdbcClient client, String read, Map<Integer, Long> jobs) {
        long[] total = {0};
        client.sql(schema.in("select x.task_id, pg_catalog.count(*) from " + read + " x group by x.task_id"))
                .query(row -> {
                    total[0] += row.getLong(2);
                    jobs.merge(row.getInt(1), row.getLong(2), Long::sum);
                });
        return total[0] < MOST_READ;
    }
}
