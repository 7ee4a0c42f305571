package dev.pgworker.internal.limit;

import java.sql.SQLException;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

import dev.pgworker.internal.argument.LogText;
import dev.pgworker.internal.client.JdbcJobLimits;
import dev.pgworker.internal.failure.DatabaseFailure;
import dev.pgworker.internal.failure.ErrorText;
import dev.pgworker.internal.failure.Obstacle;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.store.LimitStore.Known;
import dev.pgworker.limit.Limit;

/** Puts the limits that an application declares into the database when its worker starts. Used by one thread. */
public final class DeclaredLimits {

    private static final Logger log = WorkerLog.of(DeclaredLimits.class);

    /** Others change limits in no time. */
    private static final Duration LOCK_LIMIT = Duration.ofSeconds(5);

    private final JdbcJobLimits limits;
    private final List<Limit> declared;
    private final Set<String> served;

    /** Those that are not in the database yet, by name. */
    private final Map<String, Limit> missing = new LinkedHashMap<>();

    private final Obstacle obstacle = new Obstacle(Duration.ZERO);
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
        declared.forEach(limit -> missing.put(limit.name(), limit));
    }

    /** Returns whether there are any. */
    boolean exist() {
        return !declared.isEmpty();
    }

    /** Returns the tasks that are not to start before their limits have been put. */
    Set<String> heldBack() {
        Set<String> tasks = new TreeSet<>();
        missing.values().forEach(limit -> tasks.addAll(limit.tasks()));
        tasks.retainAll(served);
        return tasks;
    }

    /** Puts those that have not been put; one that the database refuses is tried again the next time. */
    void put() throws SQLException {
        boolean refused = false;
        for (Limit limit : List.copyOf(missing.values())) {
            try {
                limits.declare(limit, LOCK_LIMIT);
                missing.remove(limit.name());
            } catch (RuntimeException e) {
                SQLException cause = cause(e);
                if (cause != null
                        && DatabaseFailure.of(e) != DatabaseFailure.REFUSED
                        && !DatabaseFailure.isAboutTheSchema(cause)) {
                    throw cause;
                }
                String why = "limit \"" + LogText.visible(limit.name())
                        + "\" that the application declares cannot be put into the database, so no job of "
                        + limit.tasks() + " starts here: " + ErrorText.headline(cause == null ? e : cause)
                        + ". Migrate the schema, and grant the worker's role the rights of docs/schema.md";
                if (obstacle.met(why)) {
                    log.error("A {}", why, ErrorText.loggable(e));
                }
                refused = true;
            }
        }
        if (!refused) {
            obstacle.passed();
        }
    }

    /** Returns why a limit cannot be put, with the remedy; null if that is not so. May be called from any thread. */
    @Nullable String obstacle() {
        return obstacle.reason();
    }

    /**
     * Logs once the limits of this application's tasks that no application seems to declare any more: they stay in
     * effect.
     */
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
                                + " effect until it is deleted, for example by JobLimits.delete",
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
