package dev.pgworker.internal.client;

import java.util.List;
import java.util.stream.Collectors;

/**
 * The jobs that wait, read from the indexes of claims in the order in which they are claimed. Steps from priority to priority: beside a
 * million jobs that are due later, those that are due now are found by a few entries.
 */
final class ClaimOrder {

    /** Jobs without a queue. */
    static final String UNQUEUED = "j.is_available and j.job_queue_id is null";

    /** Jobs of all queues; the priority is named for the index. */
    static final String QUEUED = "j.is_available and j.job_queue_id is not null and j.priority >= -32768";

    static final String DUE = "j.run_at <= pg_catalog.now()";

    private ClaimOrder() {}

    /** Jobs of one queue. */
    static String ofQueue(int id) {
        return "j.is_available and j.job_queue_id = " + id;
    }

    private static final String FIRST = """
            (with recursive level(p) as (
               (select j.priority from {schema}._private_jobs j where {lane} order by j.priority, j.run_at, j.id limit 1)
               union all
               select (
                 select j.priority from {schema}._private_jobs j where {lane} and j.priority > l.p
                 order by j.priority, j.run_at, j.id limit 1)
               from level l where l.p is not null)
             select j.* from level l cross join lateral (
               select {columns} from {schema}._private_jobs j where {lane} and j.priority = l.p and {which}
               order by j.run_at, j.id limit {most}) j
             limit {most})
            """;

    /**
     * Returns a query for the ids of the first jobs of several lanes together.
     *
     * @param which a condition on the run time; its values are needed once for each lane
     */
    static String ids(List<String> lanes, String which, int most) {
        return lanes.stream()
                .map(lane -> "select * from " + first(lane, "j.id, j.priority, j.run_at", which, most) + " lane")
                .collect(Collectors.joining(
                        " union all ", "select x.id from (", ") x order by x.priority, x.run_at, x.id limit " + most));
    }

    /**
     * Returns a table expression.
     *
     * @param lane one of the above
     * @param which a condition on the run time
     */
    static String first(String lane, String columns, String which, int most) {
        return FIRST.replace("{lane}", lane)
                .replace("{columns}", columns)
                .replace("{which}", which)
                .replace("{most}", String.valueOf(most));
    }
}
