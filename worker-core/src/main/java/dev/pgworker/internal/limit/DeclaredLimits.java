package dev.pgworker.internal.limit;

import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import dev.pgworker.internal.client.JdbcJobLimits;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.store.LimitStore.Known;
import dev.pgworker.limit.Limit;

/** Puts the limits that an application declares into the database when its worker starts. Used by one thread. */
public final class DeclaredLimits {

    private static final Logger log = LoggerFactory.getLogger(DeclaredLimits.class);

    /** Others change limits in no time. */
    private static final Duration LOCK_LIMIT = Duration.ofSeconds(5);

    private final JdbcJobLimits limits;
    private final List<Limit> declared;
    private final Set<String> served;
    private boolean done;
    private boolean compared;

    /**
     * Creates the limits of one worker.
     *
     * @param served the tasks that it serves
     */
    public DeclaredLimits(JdbcJobLimits limits, List<Limit> declared, Set<String> served) {
        this.limits = limits;
        this.declared = declared;
        this.served = served;
    }

    /** Returns whether there are any. */
    boolean exist() {
        return !declared.isEmpty();
    }

    /** Returns the tasks that are not to start before the limits have been put. */
    Set<String> heldBack() {
        Set<String> tasks = new TreeSet<>();
        if (!done) {
            declared.forEach(limit -> tasks.addAll(limit.tasks()));
        }
        return tasks;
    }

    /** Puts them, unless that has been done. One that the database refuses is left out. */
    void put() throws SQLException {
        if (done) {
            return;
        }
        for (Limit limit : declared) {
            try {
                limits.declare(limit, LOCK_LIMIT);
            } catch (RuntimeException e) {
                SQLException cause = cause(e);
                if (cause != null
                        && (DatabaseFailure.of(e) != DatabaseFailure.REFUSED
                                || DatabaseFailure.isAboutTheSchema(cause))) {
                    throw cause;
                }
                log.error("{} that the application declares could not be put into the database", limit, e);
            }
        }
        done = true;
    }

    /** Tells, once, of limits of this application's tasks that nobody seems to declare any more: they stay in effect. */
    void compare(Map<String, Known> known) {
        if (compared) {
            return;
        }
        compared = true;
        known.forEach((name, limit) -> {
            boolean own = declared.stream().anyMatch(one -> one.name().equals(name));
            if (limit.declared() && !own && served.containsAll(limit.tasks())) {
                log.info(
                        "Limit \"{}\" of tasks {} was declared by an application, and this one does not declare it: it stays in"
                                + " effect until it is deleted, for instance by JobLimits.delete",
                        name,
                        limit.tasks());
            }
        });
    }

    private static @Nullable SQLException cause(Throwable failure) {
        for (Throwable current = failure; current != null; current = current.getCause()) {
            if (current instanceof SQLException e) {
                return e;
            }
        }
        return null;
    }
}
