package dev.pgworker.autoconfigure;

import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.springframework.boot.jdbc.autoconfigure.JdbcConnectionDetails;

/**
 * Where a worker keeps its jobs.
 *
 * @param dataSource the pool it takes its connections from
 * @param connectionDetails how the pool connects, or null if that is unknown
 */
record WorkerDatabase(DataSource dataSource, @Nullable JdbcConnectionDetails connectionDetails) {}
