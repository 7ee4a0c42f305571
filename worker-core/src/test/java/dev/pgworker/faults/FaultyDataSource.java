package dev.pgworker.faults;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.sql.DataSource;

import org.postgresql.PGConnection;
import org.springframework.jdbc.datasource.DelegatingDataSource;

import dev.pgworker.faults.FaultPlan.Area;
import dev.pgworker.faults.FaultPlan.Fault;
import dev.pgworker.faults.FaultPlan.Kind;

/**
 * A pool of which every JDBC call may go wrong, in ways that drivers and networks know: nothing that fails without effect
 * has one, no answer is wrong, and what is closed is closed. Knows which connections have not been given back.
 */
final class FaultyDataSource extends DelegatingDataSource {

    private static final Pattern SUBJECT =
            Pattern.compile("(?i)\\b(pgworker_\\w+|worker_\\w+|add_jobs?|\\w*_jobs|_private_\\w+|listen|unlisten)\\b");

    private static final Kind[] PLAIN = {Kind.FAILURE, Kind.ERROR, Kind.DELAY};
    private static final Kind[] CHANGING = {Kind.FAILURE, Kind.LOST_ANSWER, Kind.ERROR, Kind.LATE_ERROR, Kind.DELAY};
    private static final Kind[] EXECUTING = {
        Kind.FAILURE, Kind.LOST_ANSWER, Kind.ERROR, Kind.LATE_ERROR, Kind.CUT, Kind.DELAY, Kind.TWICE
    };
    // What was not rolled back because the call failed would be committed with the next switch to auto-commit.
    private static final Kind[] ROLLING_BACK = {Kind.LOST_ANSWER, Kind.LATE_ERROR, Kind.CUT, Kind.DELAY, Kind.TWICE};
    private static final Kind[] CLOSING = {Kind.LOST_ANSWER, Kind.LATE_ERROR, Kind.DELAY, Kind.TWICE};
    private static final Kind[] HARMLESS = {Kind.DELAY};

    private final FaultPlan plan;
    private final Map<Connection, Exception> open = new ConcurrentHashMap<>();
    private final Map<Connection, String> openers = new ConcurrentHashMap<>();

    FaultyDataSource(DataSource target, FaultPlan plan) {
        super(target);
        this.plan = plan;
    }

    /** Returns the names of the threads that have taken a connection which is still out. */
    List<String> borrowers() {
        return List.copyOf(openers.values());
    }

    /** Returns where the connections were taken that are still out. */
    List<Exception> borrowings() {
        return List.copyOf(open.values());
    }

    @Override
    public Connection getConnection() throws SQLException {
        Fault fault = plan.next(Area.POOL, "getConnection", PLAIN);
        if (fault != null) {
            if (fault.is(Kind.FAILURE)) {
                throw FaultPlan.<RuntimeException>sneaky(fault.ofDatabase());
            }
            if (fault.is(Kind.ERROR)) {
                throw fault.error();
            }
            fault.delay();
        }
        Connection target = super.getConnection();
        Connection connection = proxy(Connection.class, new Faulty(target, target, "Connection", null));
        open.put(connection, new Exception("Taken by " + Thread.currentThread().getName()));
        openers.put(connection, Thread.currentThread().getName());
        return connection;
    }

    private static <T> T proxy(Class<T> type, InvocationHandler handler) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler));
    }

    /** Calls one JDBC object. */
    private final class Faulty implements InvocationHandler {

        private static final Set<String> IDENTITY = Set.of("toString", "hashCode", "equals");

        private final Object target;
        private final Connection connection;
        private final String label;
        /** The proxy of the connection or statement that this belongs to. */
        private final Object owner;

        Faulty(Object target, Connection connection, String label, Object owner) {
            this.target = target;
            this.connection = connection;
            this.label = label;
            this.owner = owner;
        }

        @Override
        public Object invoke(Object self, Method method, Object[] args) throws Throwable {
            String name = method.getName();
            if (IDENTITY.contains(name) && method.getDeclaringClass() == Object.class) {
                return switch (name) {
                    case "equals" -> self == args[0];
                    case "hashCode" -> System.identityHashCode(self);
                    default -> "faulty " + target;
                };
            }
            if (owner != null && (name.equals("getConnection") || name.equals("getStatement"))) {
                return owner;
            }
            if (target instanceof Connection && (name.equals("close") || name.equals("abort"))) {
                open.remove(self);
                openers.remove(self);
            }
            Object result = faulty(method, args, name);
            return wrapped(self, result, args);
        }

        private Object faulty(Method method, Object[] args, String name) throws Throwable {
            Area area = target instanceof ResultSet ? Area.ROWS : Area.STATEMENT;
            Fault fault = plan.next(area, label + "." + name, kinds(name));
            if (fault == null) {
                return call(method, args);
            }
            switch (fault.kind()) {
                case FAILURE -> {
                    if (name.equals("commit")) {
                        // A server that refuses a commit has rolled back.
                        connection.rollback();
                    }
                    throw fault.ofDatabase();
                }
                case LOST_ANSWER -> {
                    call(method, args);
                    throw fault.ofDatabase();
                }
                case ERROR -> throw fault.error();
                case LATE_ERROR -> {
                    call(method, args);
                    throw fault.error();
                }
                case CUT -> {
                    if (fault.random().nextBoolean()) {
                        call(method, args);
                    }
                    connection.abort(Runnable::run);
                    throw new SQLException("On purpose: the connection broke at " + fault.site(), "08006");
                }
                case DELAY -> {
                    fault.delay();
                    return call(method, args);
                }
                case TWICE -> {
                    call(method, args);
                    return call(method, args);
                }
                default -> throw new AssertionError(fault);
            }
        }

        private Kind[] kinds(String name) {
            if (name.equals("rollback")) {
                return ROLLING_BACK;
            }
            if (name.equals("close")) {
                return CLOSING;
            }
            if (name.equals("abort") || name.equals("isClosed") || name.equals("isValid")) {
                return HARMLESS;
            }
            if (name.startsWith("execute") || name.equals("commit") || name.equals("getNotifications")) {
                return EXECUTING;
            }
            if (name.equals("setNetworkTimeout")
                    || name.equals("setAutoCommit")
                    || name.equals("prepareStatement")
                    || name.equals("createStatement")) {
                return CHANGING;
            }
            return PLAIN;
        }

        private Object call(Method method, Object[] args) throws Throwable {
            try {
                return method.invoke(target, args);
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
        }

        private Object wrapped(Object self, Object result, Object[] args) {
            if (result instanceof PreparedStatement statement) {
                return proxy(
                        PreparedStatement.class, new Faulty(statement, connection, subject((String) args[0]), self));
            }
            if (result instanceof Statement statement) {
                return proxy(Statement.class, new Faulty(statement, connection, "Statement", self));
            }
            if (result instanceof ResultSet rows) {
                return proxy(ResultSet.class, new Faulty(rows, connection, label + " rows", self));
            }
            if (result instanceof PGConnection driver && args != null && args[0] == PGConnection.class) {
                return proxy(PGConnection.class, new Faulty(driver, connection, "PGConnection", null));
            }
            return result;
        }
    }

    private static String subject(String sql) {
        Matcher matcher = SUBJECT.matcher(sql);
        return matcher.find() ? matcher.group(1) : "statement";
    }
}
