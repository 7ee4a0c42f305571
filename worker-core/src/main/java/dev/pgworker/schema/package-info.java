/** The schema that holds the jobs: its name, and its installation by Flyway. */
@NullMarked
package dev.pgworker.schema;

import org.jspecify.annotations.NullMarked;
