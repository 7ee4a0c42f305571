package dev.pgworker.schema;

import java.util.Objects;
import java.util.regex.Pattern;

/**
 * The name of the database schema that holds the jobs.
 *
 * @param name a lower-case name that needs no quotes, at most 63 characters, not beginning with {@code pg_}
 * @since 0.1.0
 */
public record WorkerSchema(String name) {

    private static final Pattern ALLOWED = Pattern.compile("(?!pg_)[a-z_][a-z0-9_]{0,62}");

    /** The schema that the Node.js and Rust Graphile Workers use by default. */
    public static final WorkerSchema DEFAULT = new WorkerSchema("graphile_worker");

    /**
     * Validates the name, so that it can be used in SQL as it is.
     *
     * @throws IllegalArgumentException if the name is invalid
     */
    public WorkerSchema {
        Objects.requireNonNull(name, "name");
        if (!ALLOWED.matcher(name).matches()) {
            throw new IllegalArgumentException("schema name \"" + name + "\" must have 1 to 63 characters, "
                    + "only lower-case letters, digits and underscores, must begin with a letter or an underscore "
                    + "and must not begin with pg_");
        }
    }

    /** Returns the SQL text with every {@code {schema}} replaced by the quoted name. */
    public String in(String sql) {
        return Objects.requireNonNull(sql, "sql").replace("{schema}", '"' + name + '"');
    }
}
