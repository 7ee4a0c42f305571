/** PgWorker in a Spring Boot application: properties, beans and lifecycle. */
@NullMarked
package dev.pgworker.autoconfigure;

import org.jspecify.annotations.NullMarked;
