package dev.pgworker.schema;

/**
 * What to do with the schema when an application starts.
 *
 * @since 0.1.0
 */
public enum SchemaMode {

    /** The schema is installed, adopted from another Graphile Worker, or brought up to date. */
    MIGRATE,

    /** The start fails unless the schema is installed and up to date; nothing is changed. */
    VALIDATE,

    /** The schema is used without being checked. */
    NONE
}
