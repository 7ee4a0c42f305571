package dev.pgworker.cli;

import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.StringJoiner;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.jspecify.annotations.Nullable;
import org.postgresql.Driver;
import org.postgresql.PGProperty;

/**
 * The properties of a connection, as a URL of JDBC, of libpq or of Node's {@code pg}, or a database's name says them. No message
 * quotes a URL: it may hold a password.
 */
final class DatabaseAddress {

    private static final Pattern LIBPQ = Pattern.compile(
            "postgres(?:ql)?://(?:(?<login>[^@/?]*)@)?(?<hosts>[^/?]*)(?:/(?<database>[^?]*))?(?:\\?(?<parameters>.*))?");

    private static final Pattern HOST = Pattern.compile("(?<host>\\[[^\\]]*\\]|[^:]*)(?::(?<port>[0-9]*))?");

    private static final Pattern DATABASE = Pattern.compile("[^:/?=@\\s]+");

    /** What libpq calls something else. */
    private static final Map<String, String> LIBPQ_NAMES = Map.of(
            "application_name", "ApplicationName",
            "connect_timeout", "connectTimeout",
            "dbname", "PGDBNAME",
            "host", "PGHOST",
            "port", "PGPORT",
            "target_session_attrs", "targetServerType");

    private static final Map<String, String> TARGETS = Map.of(
            "read-write",
            "primary",
            "read-only",
            "secondary",
            "standby",
            "secondary",
            "prefer-standby",
            "preferSecondary");

    private DatabaseAddress() {}

    /**
     * Reads an address.
     *
     * @param source where it was given, for messages
     * @throws CommandFailure if it is none
     */
    static Properties parse(String source, String address) {
        if (address.startsWith("jdbc:")) {
            return jdbc(source, address);
        }
        Matcher libpq = LIBPQ.matcher(address);
        if (libpq.matches()) {
            return libpq(source, libpq);
        }
        if (!DATABASE.matcher(address).matches()) {
            throw wrong(source);
        }
        Properties properties = new Properties();
        properties.setProperty("PGDBNAME", address);
        return properties;
    }

    private static Properties jdbc(String source, String address) {
        Properties parsed = address.startsWith("jdbc:postgresql:") ? Driver.parseURL(address, null) : null;
        if (parsed == null) {
            throw wrong(source);
        }
        Properties properties = new Properties();
        parsed.stringPropertyNames().forEach(name -> properties.setProperty(name, parsed.getProperty(name)));
        return properties;
    }

    private static Properties libpq(String source, Matcher address) {
        Properties properties = new Properties();
        String login = address.group("login");
        if (login != null) {
            int colon = login.indexOf(':');
            put(properties, "user", decode(source, colon < 0 ? login : login.substring(0, colon)));
            put(properties, "password", colon < 0 ? null : decode(source, login.substring(colon + 1)));
        }
        putHosts(source, properties, address.group("hosts"));
        String database = address.group("database");
        put(properties, "PGDBNAME", database == null ? null : decode(source, database));
        String parameters = address.group("parameters");
        if (parameters != null) {
            for (String parameter : parameters.split("&")) {
                putParameter(source, properties, parameter);
            }
        }
        requireNoSocket(source, properties.getProperty("PGHOST"));
        return properties;
    }

    private static void putHosts(String source, Properties properties, String all) {
        if (all.isEmpty()) {
            return;
        }
        List<String> hosts = new ArrayList<>();
        List<String> ports = new ArrayList<>();
        for (String each : all.split(",", -1)) {
            Matcher host = HOST.matcher(each);
            if (!host.matches()) {
                throw wrong(source);
            }
            String name = decode(source, host.group("host"));
            hosts.add(name.isEmpty() ? "localhost" : name);
            String port = host.group("port");
            ports.add(port == null || port.isEmpty() ? "5432" : port);
        }
        properties.setProperty("PGHOST", String.join(",", hosts));
        if (hosts.size() > 1 || all.matches(".*:[0-9]+")) {
            properties.setProperty("PGPORT", String.join(",", ports));
        }
    }

    private static void putParameter(String source, Properties properties, String parameter) {
        if (parameter.isEmpty()) {
            return;
        }
        int equals = parameter.indexOf('=');
        String given = decode(source, equals < 0 ? parameter : parameter.substring(0, equals));
        String value = equals < 0 ? "true" : decode(source, parameter.substring(equals + 1));
        String name = LIBPQ_NAMES.getOrDefault(given, given);
        if (PGProperty.forName(name) == null) {
            throw CommandFailure.usage(source + " has the parameter " + given
                    + ", which the driver of PostgreSQL for Java" + " does not know");
        }
        if (name.equals("ssl") && value.equals("1")) {
            value = "true";
        } else if (name.equals("sslmode") && value.equals("no-verify")) {
            value = "require";
        } else if (given.equals("target_session_attrs")) {
            value = TARGETS.getOrDefault(value, value);
        }
        properties.setProperty(name, value);
    }

    /** Returns the URL of hosts, ports and database; everything else stays in the properties. */
    static String url(Properties properties) {
        String[] hosts = properties.getProperty("PGHOST", "localhost").split(",", -1);
        String[] ports = properties.getProperty("PGPORT", "5432").split(",", -1);
        if (ports.length != 1 && ports.length != hosts.length) {
            throw CommandFailure.usage("The URL or PGPORT must have one port for all hosts, or one for each");
        }
        StringJoiner servers = new StringJoiner(",");
        for (int i = 0; i < hosts.length; i++) {
            String host = hosts[i].isEmpty() ? "localhost" : hosts[i];
            boolean bare = host.contains(":") && !host.startsWith("[");
            servers.add((bare ? "[" + host + "]" : host) + ":" + port(ports[ports.length == 1 ? 0 : i]));
        }
        String database = properties.getProperty("PGDBNAME", "");
        return "jdbc:postgresql://" + servers + "/" + URLEncoder.encode(database, StandardCharsets.UTF_8);
    }

    private static String port(String port) {
        if (port.isEmpty()) {
            return "5432";
        }
        if (!port.matches("[0-9]{1,5}") || Integer.parseInt(port) < 1 || Integer.parseInt(port) > 65_535) {
            throw CommandFailure.usage("The port in the URL or in PGPORT must be a number from 1 to 65535, but is '"
                    + Text.line(port) + "'");
        }
        return port;
    }

    /** Refuses a directory of Unix sockets. */
    static void requireNoSocket(String source, @Nullable String host) {
        if (host != null && host.startsWith("/")) {
            throw CommandFailure.usage(
                    source + " names a Unix socket, which the driver of PostgreSQL for Java cannot use;"
                            + " name a host, such as localhost");
        }
    }

    private static void put(Properties properties, String name, @Nullable String value) {
        if (value != null && !value.isEmpty()) {
            properties.setProperty(name, value);
        }
    }

    private static String decode(String source, String text) {
        try {
            return URLDecoder.decode(text.replace("+", "%2B"), StandardCharsets.UTF_8);
        } catch (IllegalArgumentException e) {
            throw wrong(source);
        }
    }

    private static CommandFailure wrong(String source) {
        return CommandFailure.usage(source + " must be postgres://user@host:5432/database,"
                + " jdbc:postgresql://host:5432/database?user=user, or the name of a database");
    }
}
