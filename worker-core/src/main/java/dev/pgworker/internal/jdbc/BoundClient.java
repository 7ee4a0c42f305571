package dev.pgworker.internal.jdbc;

import java.sql.Connection;
import java.util.function.Function;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.datasource.ConnectionHolder;
import org.springframework.jdbc.datasource.SingleConnectionDataSource;
import org.springframework.jdbc.support.SQLExceptionTranslator;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/** Spring's client on one connection, which it neither commits nor gives back. */
final class BoundClient {

    private BoundClient() {}

    /**
     * Does something with a client whose exceptions are the translator's.
     *
     * @param dataSource of whose Spring transaction the connection may be, whose timeout then holds for the statements;
     *     null if it is of none
     */
    static <T extends @Nullable Object> T with(
            Connection connection,
            @Nullable DataSource dataSource,
            SQLExceptionTranslator translator,
            Function<JdbcClient, T> work) {
        // Stands for the connection alone. As it is bound here, no transaction of the caller's keeps it for its end.
        DataSource single = new SingleConnectionDataSource(connection, true);
        JdbcTemplate template = new JdbcTemplate(single);
        template.setExceptionTranslator(translator);
        ConnectionHolder holder = new ConnectionHolder(connection);
        if (dataSource != null
                && TransactionSynchronizationManager.getResource(dataSource) instanceof ConnectionHolder callers
                && callers.hasTimeout()) {
            holder.setTimeoutInMillis(callers.getTimeToLiveInMillis());
        }
        TransactionSynchronizationManager.bindResource(single, holder);
        try {
            return work.apply(JdbcClient.create(template));
        } finally {
            TransactionSynchronizationManager.unbindResource(single);
        }
    }
}
