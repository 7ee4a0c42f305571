package dev.pgworker.schema;

/**
 * What happens to the schema when an application starts.
 *
 * @since 0.1.0
 */
public enum SchemaMode {

    /** The schema is installed, adopted from another Graphile Worker, or brought up to date. */
    MIGRATE,

    /** The start fails unless the schema is installed and up to date; nothing is changed. */
    VALIDATE,

    /** The schema is not looked at. */
    NONE
}
