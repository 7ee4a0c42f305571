package dev.pgworker.limit;

import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

import org.jspecify.annotations.Nullable;

/**
 * A limit as the database has it. All times are by the database's clock.
 *
 * @param name the limit's name
 * @param limit the limit; null if it was written by SQL and cannot be read
 * @param phase whether the limit is in effect
 * @param declared whether an application declares it at its start
 * @param waiting how many jobs wait for it, up to 10,000; those that are not due yet are included. Null where it is not counted
 * @param used how many jobs run that it counts; 0 for one of a rate. Null where it is not counted
 * @param createdAt when it was created
 * @param updatedAt when it was last changed
 * @since 0.1.0
 */
public record LimitStatus(
        String name,
        @Nullable Limit limit,
        Phase phase,
        boolean declared,
        @Nullable Long waiting,
        @Nullable Long used,
        Instant createdAt,
        Instant updatedAt) {

    /** Returns all that is known, with {@link Limit#attributes}, for commands and pages; may be changed. */
    public Map<String, Object> attributes() {
        Map<String, Object> attributes = new LinkedHashMap<>();
        attributes.put("name", name);
        if (limit != null) {
            attributes.putAll(limit.attributes());
        }
        attributes.put("phase", phase.name().toLowerCase(Locale.ROOT));
        attributes.put("declared", declared);
        if (waiting != null && used != null) {
            attributes.put("waiting", waiting);
            attributes.put("used", used);
        }
        attributes.put("createdAt", createdAt);
        attributes.put("updatedAt", updatedAt);
        return attributes;
    }

    /**
     * Whether a limit is in effect.
     *
     * @since 0.1.0
     */
    public enum Phase {

        /** Workers go through the jobs that wait; until that is done, no job of its tasks starts. */
        APPLYING,

        /** The limit is in effect. */
        ACTIVE,

        /** The limit has been deleted, and jobs that waited for it are made available. */
        REMOVING
    }
}
