package dev.pgworker.schema;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * A connection in a transaction that its user, Flyway, cannot end, and whose session keeps nothing of what it sets. Flyway
 * sets the search path and the role of the session, with prepared statements.
 */
final class PinnedConnection {

    private static final Set<String> PASSED_OVER = Set.of("setAutoCommit", "commit", "rollback", "close");

    private static final Pattern ROLE = Pattern.compile("^set role", Pattern.CASE_INSENSITIVE);

    private static final Pattern SETTING = Pattern.compile("(set_config\\(.*), false\\)$", Pattern.CASE_INSENSITIVE);

    private PinnedConnection() {}

    static Connection of(Connection connection) {
        return (Connection) Proxy.newProxyInstance(
                Connection.class.getClassLoader(), new Class<?>[] {Connection.class}, (proxy, method, args) -> {
                    if (PASSED_OVER.contains(method.getName())) {
                        return null;
                    }
                    if (method.getName().equals("prepareStatement") && args[0] instanceof String sql) {
                        args[0] = local(sql);
                    }
                    try {
                        return method.invoke(connection, args);
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                });
    }

    private static String local(String sql) {
        return SETTING.matcher(ROLE.matcher(sql).replaceFirst("set local role")).replaceFirst("$1, true)");
    }
}
