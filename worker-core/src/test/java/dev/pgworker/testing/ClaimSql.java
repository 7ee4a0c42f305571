package dev.pgworker.testing;

/** Claims and ends of jobs in SQL, as workers make them. */
public final class ClaimSql {

    private ClaimSql() {}

    /** Returns what stands for the jobs that a claim returns: from the first entry on, one job of each queue. */
    public static String claim(String worker, String wanted) {
        return claim(worker, wanted, "null", "null");
    }

    /**
     * As {@link #claim(String, String)}.
     *
     * @param forbidden an array of flags, or null
     * @param run how many jobs of a queue to take together
     */
    public static String claim(String worker, String wanted, String forbidden, String run) {
        return "(select * from {schema}.pgworker_claim(" + request(worker, forbidden, run) + ", " + wanted + ", "
                + FLOORS + ") where id is not null)";
    }

    /** Returns what stands for what a worker asks for. */
    public static String request(String worker, String forbidden, String run) {
        return "row(" + worker + ", array(select id from {schema}._private_tasks order by id), null, array(select "
                + run + "::int from {schema}._private_tasks), 12, true, " + forbidden
                + ", null)::{schema}.pgworker_request";
    }

    /** The first entries of all jobs. */
    public static final String FLOORS =
            "array(select row(q.queued, p.priority, '-infinity', 0)::{schema}.pgworker_floor"
                    + " from (select distinct priority from {schema}._private_jobs) p"
                    + " cross join unnest(array[false, true]) q(queued) order by q.queued, p.priority)";

    /** Returns what stands for the end of a job by its claim that did not succeed, with arguments that are SQL. */
    public static String outcome(String id, String action, String delay, String error, String key, String attempts) {
        return "row(" + id + ", (select locked_at from {schema}._private_jobs where id = " + id + "), " + action + ", "
                + delay + ", null, " + error + ", " + key + ", " + attempts
                + ", null, null, null, null)::{schema}.pgworker_outcome";
    }
}
