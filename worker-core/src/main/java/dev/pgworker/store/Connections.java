package dev.pgworker.store;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;

/** Runs one statement in a transaction of its own, whatever the pool's auto-commit default is. */
final class Connections {

    private Connections() {}

    static <T extends @Nullable Object> T call(DataSource dataSource, String sql, JobStore.Call<T> call)
            throws SQLException {
        try (Connection connection = dataSource.getConnection();
                PreparedStatement statement = connection.prepareStatement(sql)) {
            T result = call.on(connection, statement);
            if (!connection.getAutoCommit()) {
                connection.commit();
            }
            return result;
        }
    }
}
