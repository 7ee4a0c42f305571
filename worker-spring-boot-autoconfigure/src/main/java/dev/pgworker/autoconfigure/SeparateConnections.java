package dev.pgworker.autoconfigure;

import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.Properties;
import java.util.Set;
import javax.sql.DataSource;

import com.zaxxer.hikari.HikariConfigMXBean;
import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.util.Credentials;
import com.zaxxer.hikari.util.UtilityElf;
import org.jspecify.annotations.Nullable;
import org.postgresql.ds.PGSimpleDataSource;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.jdbc.DataSourceUnwrapper;
import org.springframework.boot.jdbc.autoconfigure.JdbcConnectionDetails;
import org.springframework.jdbc.datasource.DelegatingDataSource;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.jdbc.datasource.LazyConnectionDataSourceProxy;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;
import org.springframework.util.ClassUtils;

/** Makes the data sources that do not take their connections from the application's pool. */
final class SeparateConnections {

    private static final String POSTGRESQL = "jdbc:postgresql:";

    private static final int CONNECT_SECONDS = 3;
    private static final int LOGIN_SECONDS = 10;
    private static final int READ_SECONDS = 10;

    /** Driver properties that the worker's own connections have in its own way. */
    private static final Set<String> LIMITS = Set.of("connectTimeout", "loginTimeout", "socketTimeout", "tcpKeepAlive");

    private static final boolean HIKARI_PRESENT =
            ClassUtils.isPresent("com.zaxxer.hikari.HikariDataSource", SeparateConnections.class.getClassLoader());

    private SeparateConnections() {}

    /**
     * Returns a data source that opens a connection at every call, or null if nothing is set.
     *
     * @param prefix what the names of the properties begin with
     * @param database where what is not set comes from; what its pool does to each connection is done for the same user
     */
    static @Nullable DataSource create(
            String prefix,
            @Nullable String url,
            @Nullable String user,
            @Nullable String password,
            WorkerDatabase database) {
        if (url == null && user == null && password == null) {
            return null;
        }
        JdbcConnectionDetails application = database.connectionDetails();
        String usedUrl = url != null || application == null ? url : application.getJdbcUrl();
        if (usedUrl == null) {
            throw new InvalidConfigurationPropertyValueException(
                    prefix + ".url",
                    null,
                    "It must be set when " + prefix + ".user or " + prefix
                            + ".password is, because it is not known what the worker's DataSource connects to.");
        }
        String usedUser = user != null || application == null ? user : application.getUsername();
        String usedPassword =
                user != null || password != null || application == null ? password : application.getPassword();
        return open(
                prefix,
                usedUrl,
                usedUser,
                usedPassword,
                user == null ? database.dataSource() : null,
                user == null && password == null);
    }

    /**
     * Returns a data source that opens a connection at every call as the application's pool does, or null if it is unknown how
     * that does, or what it or a wrapper does to its connections: then the pool's are used.
     */
    static @Nullable DataSource like(DataSource pool) {
        return HIKARI_PRESENT ? Hikari.like(pool) : null;
    }

    /** Returns how a pool connects, or null if that is unknown. */
    static @Nullable JdbcConnectionDetails detailsOf(DataSource pool) {
        return HIKARI_PRESENT ? Hikari.details(pool) : null;
    }

    private static DataSource open(
            String prefix,
            String url,
            @Nullable String user,
            @Nullable String password,
            @Nullable DataSource pool,
            boolean sameLogin) {
        if (!url.startsWith("jdbc:")) {
            throw notAUrl(prefix);
        }
        if (!url.startsWith(POSTGRESQL)) {
            requireDriver(prefix, url);
            DriverManagerDataSource dataSource = new DriverManagerDataSource(url);
            dataSource.setUsername(user);
            dataSource.setPassword(password);
            return dataSource;
        }
        PGSimpleDataSource dataSource = driver(url, pool, sameLogin);
        if (dataSource == null) {
            throw notAUrl(prefix);
        }
        login(dataSource, user, password);
        return dataSource;
    }

    private static void login(PGSimpleDataSource dataSource, @Nullable String user, @Nullable String password) {
        if (user != null) {
            dataSource.setUser(user);
            dataSource.setPassword(password);
        } else if (password != null) {
            dataSource.setPassword(password);
        }
    }

    /**
     * Returns the driver's own data source with limits: a server that was stopped or cut off must not keep anybody waiting.
     * The plain driver prefers a user inside the URL to the one given beside it; this one does not.
     *
     * @param pool whose initialization the connections get, or null for none
     * @param sameLogin whether they log in as that pool does, which may change while the application runs
     */
    private static @Nullable PGSimpleDataSource driver(
            @Nullable String url, @Nullable DataSource pool, boolean sameLogin) {
        if (url == null || !url.startsWith(POSTGRESQL)) {
            return null;
        }
        PGSimpleDataSource dataSource =
                pool != null && HIKARI_PRESENT ? Hikari.initializedAs(pool, sameLogin) : new PGSimpleDataSource();
        try {
            dataSource.setUrl(url);
            dataSource.setConnectTimeout(shorter(dataSource.getConnectTimeout(), CONNECT_SECONDS));
            dataSource.setLoginTimeout(shorter(dataSource.getLoginTimeout(), LOGIN_SECONDS));
            dataSource.setSocketTimeout(shorter(dataSource.getSocketTimeout(), READ_SECONDS));
            dataSource.setTcpKeepAlive(true);
            if (!url.contains("ApplicationName=")) {
                dataSource.setApplicationName("pgworker");
            }
            if (dataSource.getServerNames().length > 1 && !url.contains("targetServerType=")) {
                dataSource.setTargetServerType("primary");
            }
            return dataSource;
        } catch (IllegalArgumentException e) {
            return null;
        }
    }

    private static int shorter(int seconds, int longest) {
        return seconds > 0 ? Math.min(seconds, longest) : longest;
    }

    /** Without a driver the attempt to connect would fail, with the URL in its message. */
    private static void requireDriver(String prefix, String url) {
        try {
            DriverManager.getDriver(url);
        } catch (SQLException e) {
            throw notAUrl(prefix);
        }
    }

    /** Does not show the URL, which may contain a password. */
    private static InvalidConfigurationPropertyValueException notAUrl(String prefix) {
        return new InvalidConfigurationPropertyValueException(
                prefix + ".url", "******", "It must be a JDBC URL such as jdbc:postgresql://host:5432/database.");
    }

    /** Connection details that no property has. */
    private record Details(
            String getJdbcUrl,
            @Nullable String getUsername,
            @Nullable String getPassword) implements JdbcConnectionDetails {

        /** Leaves the password out. */
        @Override
        public String toString() {
            return "Details[url=" + getJdbcUrl + ", user=" + getUsername + "]";
        }
    }

    /** Apart, so that the outer class loads without Hikari. */
    private static final class Hikari {

        static @Nullable JdbcConnectionDetails details(DataSource dataSource) {
            HikariDataSource pool =
                    DataSourceUnwrapper.unwrap(dataSource, HikariConfigMXBean.class, HikariDataSource.class);
            return pool == null || pool.getJdbcUrl() == null ? null : details(pool);
        }

        private static Details details(HikariDataSource pool) {
            Credentials login = pool.getCredentials();
            return new Details(pool.getJdbcUrl(), login.getUsername(), login.getPassword());
        }

        /** Returns the pool if nothing but HikariCP itself decides what connections it gives. */
        private static @Nullable HikariDataSource plain(DataSource dataSource) {
            DataSource plain = dataSource;
            while (plain instanceof TransactionAwareDataSourceProxy || plain instanceof LazyConnectionDataSourceProxy) {
                plain = ((DelegatingDataSource) plain).getTargetDataSource();
            }
            return plain instanceof HikariDataSource pool && pool.getClass() == HikariDataSource.class ? pool : null;
        }

        /** Returns a data source without an address that does to its connections what a pool does to its own. */
        static PGSimpleDataSource initializedAs(DataSource dataSource, boolean sameLogin) {
            HikariDataSource pool = plain(dataSource);
            return pool == null
                    ? new PGSimpleDataSource()
                    : new InitializedDataSource(
                            () -> sameLogin && pool.getUsername() != null ? details(pool) : null,
                            UtilityElf.getTransactionIsolation(pool.getTransactionIsolation()),
                            pool.getSchema(),
                            pool.getConnectionInitSql());
        }

        static @Nullable DataSource like(DataSource dataSource) {
            HikariDataSource pool = plain(dataSource);
            if (pool == null
                    || pool.getDataSourceClassName() != null
                    || pool.getDataSource() != null
                    || pool.getCredentialsProvider() != null) {
                return null;
            }
            PGSimpleDataSource like = driver(pool.getJdbcUrl(), dataSource, true);
            if (like == null) {
                return null;
            }
            Properties properties = pool.getDataSourceProperties();
            try {
                for (String name : properties.stringPropertyNames()) {
                    if (!LIMITS.contains(name)) {
                        like.setProperty(name, properties.getProperty(name));
                    }
                }
            } catch (SQLException e) {
                return null;
            }
            login(like, pool.getUsername(), pool.getPassword());
            return like;
        }
    }
}
