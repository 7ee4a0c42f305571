/** The database schema that holds the jobs: its name, and its installation with Flyway. */
@NullMarked
package dev.pgworker.schema;

import org.jspecify.annotations.NullMarked;
