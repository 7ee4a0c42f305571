package dev.pgworker.limit;

import java.util.List;
import java.util.Optional;

import org.jspecify.annotations.Nullable;

/**
 * Makes, changes and removes limits and fair shares at run time. They are rows of the database, and bind all PgWorkers of the
 * schema. Graphile Workers on Node.js and in Rust do not see jobs of limited tasks, and therefore do not run them.
 *
 * <p>A limit that is new or changed takes effect when the jobs that wait have been gone through, which takes workers some
 * seconds per 100,000 jobs; until then, workers of PgWorker start no jobs of its tasks. Jobs that run already continue, even if they
 * are more than a limit allows.
 *
 * <p>Every method runs on the caller's thread and joins the caller's Spring transaction on the worker's {@code DataSource};
 * without one it commits on return. Thread-safe. If the database cannot be used, each method throws a Spring {@code
 * DataAccessException}.
 *
 * @since 0.1.0
 */
public interface JobLimits {

    /** Creates a limit, or changes the one that has the name. */
    LimitStatus put(Limit limit);

    /** Removes a limit; jobs that wait for it become available. Returns whether there was one. */
    boolean delete(String name);

    /** Returns a limit, if there is one of that name, without how much of it is used. */
    Optional<LimitStatus> find(String name);

    /** Returns all limits in the order of their names, and how much of each is used. Costs milliseconds, however many jobs wait. */
    List<LimitStatus> list();

    /**
     * Returns how much of a limit is used, for values of its field in their order. For a limit without a field, there is one
     * entry with the value {@code ""}. Values of which no job runs or waits may be missing. Values come from payloads: show them to
     * those only who may see payloads. It takes a right of its own in the database, see the role Viewer in the guide.
     *
     * @param name the limit's name; the list is empty if there is none
     * @param after the value after which to begin; null for the first
     * @param most how many values to return at most, 1 to 1000
     */
    List<LimitUsage> usage(String name, @Nullable String after, int most);

    /** Returns these limits with the user named in log lines. */
    JobLimits actingAs(String user);
}
