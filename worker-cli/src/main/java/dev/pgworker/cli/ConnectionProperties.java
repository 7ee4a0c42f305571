package dev.pgworker.cli;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Properties;

import org.jspecify.annotations.Nullable;

/**
 * Finds out how to connect: options before the URL, the URL before libpq's variables. Passwords are never taken from the command
 * line, which other users of the machine see.
 */
final class ConnectionProperties {

    private static final List<String> URL_VARIABLES = List.of("PGWORKER_URL", "DATABASE_URL", "SPRING_DATASOURCE_URL");

    /** Variables of libpq and what the driver calls them; it reads {@code PGPASSFILE} by itself. */
    private static final Map<String, String> LIBPQ_VARIABLES = Map.ofEntries(
            Map.entry("PGHOST", "PGHOST"),
            Map.entry("PGPORT", "PGPORT"),
            Map.entry("PGDATABASE", "PGDBNAME"),
            Map.entry("PGUSER", "user"),
            Map.entry("PGPASSWORD", "password"),
            Map.entry("PGOPTIONS", "options"),
            Map.entry("PGAPPNAME", "ApplicationName"),
            Map.entry("PGCONNECT_TIMEOUT", "connectTimeout"),
            Map.entry("PGSSLMODE", "sslmode"),
            Map.entry("PGSSLROOTCERT", "sslrootcert"),
            Map.entry("PGSSLCERT", "sslcert"),
            Map.entry("PGSSLKEY", "sslkey"));

    /** Nothing is prepared on the server: behind a connection pooler others would meet it in their sessions. */
    private static final Map<String, String> DEFAULTS = Map.of(
            "ApplicationName", "worker-cli", "connectTimeout", "10", "tcpKeepAlive", "true", "prepareThreshold", "0");

    private final Map<String, String> environment;

    ConnectionProperties(Map<String, String> environment) {
        this.environment = environment;
    }

    /**
     * Returns the properties of the driver.
     *
     * @param url the option, null for a variable
     * @param user the option, null for what URL or variables say
     * @param password what was asked for, null for none
     * @param passwordFile the option, null for none
     */
    Properties resolve(
            @Nullable String url, @Nullable String user, char @Nullable [] password, @Nullable Path passwordFile) {
        Properties properties = url == null ? fromEnvironment() : fromOption(url);
        LIBPQ_VARIABLES.forEach((variable, name) -> putIfAbsent(properties, name, environment.get(variable)));
        DatabaseAddress.requireNoSocket("PGHOST", properties.getProperty("PGHOST"));
        DEFAULTS.forEach((name, value) -> putIfAbsent(properties, name, value));
        if (user != null) {
            properties.setProperty("user", user);
        }
        if (password != null) {
            properties.setProperty("password", new String(password));
        } else if (passwordFile != null) {
            properties.setProperty("password", firstLine(passwordFile));
        }
        return properties;
    }

    private static Properties fromOption(String url) {
        Properties properties = DatabaseAddress.parse("--url", url);
        if (properties.containsKey("password") || properties.containsKey("sslpassword")) {
            throw CommandFailure.usage(
                    "--url must not contain a password, because other users of this machine can read it in the"
                            + " list of processes; pass the URL in PGWORKER_URL, or the password in PGPASSWORD, ~/.pgpass or"
                            + " --password-file, or let --password ask for it");
        }
        return properties;
    }

    private Properties fromEnvironment() {
        for (String variable : URL_VARIABLES) {
            String url = environment.get(variable);
            if (url != null && !url.isBlank()) {
                Properties properties = DatabaseAddress.parse(variable, url.strip());
                if (variable.equals("SPRING_DATASOURCE_URL")) {
                    putIfAbsent(properties, "user", environment.get("SPRING_DATASOURCE_USERNAME"));
                    putIfAbsent(properties, "password", environment.get("SPRING_DATASOURCE_PASSWORD"));
                }
                return properties;
            }
        }
        if (!environment.containsKey("PGHOST") && !environment.containsKey("PGDATABASE")) {
            throw CommandFailure.usage(
                    "--url must name the database, such as postgres://user@host:5432/database, or one of the variables"
                            + " PGWORKER_URL, DATABASE_URL, SPRING_DATASOURCE_URL, PGHOST and PGDATABASE");
        }
        return new Properties();
    }

    private static void putIfAbsent(Properties properties, String name, @Nullable String value) {
        if (value != null && !value.isEmpty()) {
            properties.putIfAbsent(name, value);
        }
    }

    private static String firstLine(Path file) {
        try (BufferedReader reader = Files.newBufferedReader(file)) {
            String line = reader.readLine();
            if (line == null || line.isEmpty()) {
                throw CommandFailure.usage("--password-file " + file + " must have the password in its first line");
            }
            return line;
        } catch (CharacterCodingException e) {
            throw CommandFailure.usage("--password-file " + file + " must be text in UTF-8");
        } catch (IOException e) {
            throw CommandFailure.usage("--password-file " + file + " cannot be read: " + Reasons.of(e));
        }
    }
}
