package dev.pgworker.testing;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Arrays;
import java.util.List;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.springframework.jdbc.datasource.DelegatingDataSource;

/** A data source between which and its caller a test stands: it sees each call on a prepared statement and on its rows. */
public final class InterceptedDataSource extends DelegatingDataSource {

    private final Interceptor interceptor;

    public InterceptedDataSource(DataSource target, Interceptor interceptor) {
        super(target);
        this.interceptor = interceptor;
    }

    /** A call that is about to be made. */
    public record Call(Connection connection, String sql, Method method, List<@Nullable Object> arguments) {

        public boolean is(String methodName, String partOfSql) {
            return method.getName().equals(methodName) && sql.contains(partOfSql);
        }
    }

    /** Makes a call, or does something else. */
    @FunctionalInterface
    public interface Interceptor {
        @Nullable Object intercept(Call call, Proceed proceed) throws Throwable;
    }

    /** Makes the call. */
    @FunctionalInterface
    public interface Proceed {
        @Nullable Object proceed() throws Throwable;
    }

    @Override
    public Connection getConnection() throws SQLException {
        Connection connection = super.getConnection();
        return proxy(Connection.class, (method, arguments) -> {
            Object result = invoke(method, connection, arguments);
            return method.getName().equals("prepareStatement") && arguments != null
                    ? statement(connection, (PreparedStatement) result, (String) arguments[0])
                    : result;
        });
    }

    private PreparedStatement statement(Connection connection, PreparedStatement statement, String sql) {
        return proxy(PreparedStatement.class, (method, arguments) -> {
            Object result = interceptor.intercept(
                    new Call(connection, sql, method, list(arguments)), () -> invoke(method, statement, arguments));
            return result instanceof ResultSet rows ? rows(connection, rows, sql) : result;
        });
    }

    private ResultSet rows(Connection connection, ResultSet rows, String sql) {
        return proxy(
                ResultSet.class,
                (method, arguments) -> interceptor.intercept(
                        new Call(connection, sql, method, list(arguments)), () -> invoke(method, rows, arguments)));
    }

    private static List<@Nullable Object> list(@Nullable Object @Nullable [] arguments) {
        return arguments == null ? List.of() : Arrays.asList(arguments);
    }

    private static @Nullable Object invoke(Method method, Object target, @Nullable Object @Nullable [] arguments)
            throws Throwable {
        try {
            return method.invoke(target, arguments);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }

    private interface Invocation {
        @Nullable Object call(Method method, @Nullable Object @Nullable [] arguments) throws Throwable;
    }

    private static <T> T proxy(Class<T> type, Invocation invocation) {
        return type.cast(Proxy.newProxyInstance(
                type.getClassLoader(),
                new Class<?>[] {type},
                (self, method, arguments) -> invocation.call(method, arguments)));
    }
}
