package dev.pgworker.internal.jdbc;

import java.sql.SQLException;

import org.jspecify.annotations.Nullable;

/** What is done with SQL, and may fail. */
@FunctionalInterface
public interface SqlWork<T extends @Nullable Object> {
    T run() throws SQLException;
}
