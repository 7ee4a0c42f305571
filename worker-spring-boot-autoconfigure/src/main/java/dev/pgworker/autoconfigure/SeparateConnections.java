package dev.pgworker.autoconfigure;

import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.postgresql.ds.PGSimpleDataSource;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.jdbc.autoconfigure.JdbcConnectionDetails;
import org.springframework.jdbc.datasource.DriverManagerDataSource;

/** Makes the data sources that do not take their connections from the application's pool. */
final class SeparateConnections {

    private SeparateConnections() {}

    /**
     * Returns a data source that opens a connection at every call, or null if nothing is set.
     *
     * @param prefix what the names of the properties begin with
     * @param application where what is not set comes from, or null if that is unknown
     */
    static @Nullable DataSource create(
            String prefix,
            @Nullable String url,
            @Nullable String user,
            @Nullable String password,
            @Nullable JdbcConnectionDetails application) {
        if (url == null && user == null && password == null) {
            return null;
        }
        String usedUrl = url != null || application == null ? url : application.getJdbcUrl();
        if (usedUrl == null) {
            throw new InvalidConfigurationPropertyValueException(
                    prefix + ".url",
                    null,
                    "It must be set when " + prefix + ".user or " + prefix
                            + ".password is, because the application's DataSource does not come from spring.datasource.url.");
        }
        String usedUser = user != null || application == null ? user : application.getUsername();
        String usedPassword =
                user != null || password != null || application == null ? password : application.getPassword();
        return open(prefix, usedUrl, usedUser, usedPassword);
    }

    private static DataSource open(String prefix, String url, @Nullable String user, @Nullable String password) {
        if (!url.startsWith("jdbc:")) {
            throw notAUrl(prefix, url);
        }
        if (!url.startsWith("jdbc:postgresql:")) {
            DriverManagerDataSource dataSource = new DriverManagerDataSource(url);
            dataSource.setUsername(user);
            dataSource.setPassword(password);
            return dataSource;
        }
        // The plain driver prefers a user inside the URL to the one given beside it.
        PGSimpleDataSource dataSource = new PGSimpleDataSource();
        try {
            dataSource.setUrl(url);
        } catch (IllegalArgumentException e) {
            throw notAUrl(prefix, url);
        }
        if (user != null) {
            dataSource.setUser(user);
            dataSource.setPassword(password);
        } else if (password != null) {
            dataSource.setPassword(password);
        }
        return dataSource;
    }

    private static InvalidConfigurationPropertyValueException notAUrl(String prefix, String url) {
        return new InvalidConfigurationPropertyValueException(
                prefix + ".url", url, "It must be a JDBC URL such as jdbc:postgresql://host:5432/database.");
    }
}
