package dev.pgworker.autoconfigure;

import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.sql.DataSource;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariConfigMXBean;
import com.zaxxer.hikari.HikariDataSource;
import org.slf4j.Logger;
import org.springframework.boot.jdbc.DataSourceUnwrapper;
import org.springframework.util.ClassUtils;

import dev.pgworker.Worker;
import dev.pgworker.internal.failure.WorkerLog;

/** Compares the size of the application's pool with what a worker needs. */
final class ConnectionPool {

    private static final Logger log = WorkerLog.of(ConnectionPool.class);

    private static final Pattern SEVERAL_SERVERS = Pattern.compile("jdbc:postgresql://[^/?]*,");

    private static final boolean HIKARI_PRESENT =
            ClassUtils.isPresent("com.zaxxer.hikari.HikariDataSource", ConnectionPool.class.getClassLoader());

    private ConnectionPool() {}

    /**
     * Warns of a pool that is small for the workers that use it; does nothing for a pool that is not Hikari.
     *
     * @throws PoolTooSmallException if the worker cannot work with the pool
     */
    static void check(DataSource dataSource, List<Worker> workers) {
        if (HIKARI_PRESENT) {
            Hikari.check(dataSource, workers);
        }
    }

    /** Apart, so that the outer class loads without Hikari. */
    private static final class Hikari {

        static void check(DataSource dataSource, List<Worker> workers) {
            HikariConfigMXBean pool =
                    DataSourceUnwrapper.unwrap(dataSource, HikariConfigMXBean.class, HikariDataSource.class);
            if (pool == null) {
                return;
            }
            if (pool instanceof HikariConfig config) {
                warnOfServers(config);
            }
            int size = pool.getMaximumPoolSize();
            if (size == 1 && workers.stream().anyMatch(Worker::isListeningOnDataSource)) {
                throw new PoolTooSmallException();
            }
            int needed = workers.stream().mapToInt(Worker::connectionsNeeded).sum();
            if (size < needed) {
                log.warn(
                        "The connection pool has {} connection(s), but the worker may need {} at the same time, so that"
                                + " jobs wait for each other; set spring.datasource.hikari.maximum-pool-size to at least"
                                + " {}, more if the application also uses the database itself",
                        size,
                        needed,
                        needed);
            }
        }

        /** With several servers somebody expects that the next one is used, which does not come by itself. */
        private static void warnOfServers(HikariConfig pool) {
            String url = pool.getJdbcUrl();
            if (url == null || !SEVERAL_SERVERS.matcher(url).lookingAt()) {
                return;
            }
            List<String> missing = Stream.of("targetServerType", "connectTimeout", "socketTimeout")
                    .filter(name -> !url.contains(name + "=")
                            && !pool.getDataSourceProperties().containsKey(name))
                    .toList();
            if (!missing.isEmpty()) {
                log.warn(
                        "The JDBC URL names several servers, but has no {}: after a failover the pool may wait for the old"
                                + " server, or keep using it although it is read-only",
                        String.join(", ", missing));
            }
        }
    }
}
