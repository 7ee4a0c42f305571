package dev.pgworker.internal.jdbc;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;

import org.jspecify.annotations.Nullable;

/** Binds and runs a statement and reads its result. */
@FunctionalInterface
public interface StatementCall<T extends @Nullable Object> {
    T on(Connection connection, PreparedStatement statement) throws SQLException;
}
