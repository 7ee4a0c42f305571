package dev.pgworker.testing;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;

/**
 * What tests have left running that may still use a schema: sessions, processes, threads of workers and of pools. Each is held
 * against the first schema that is given back while it is there.
 */
final class Strays {

    /** How long what has been closed or stopped may take to end. */
    private static final long LONGEST_END_NANOS = TimeUnit.SECONDS.toNanos(1);

    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(2);

    private Set<Object> known = Set.of();

    /** Waits a moment until there are none that have not been there the last time; returns whether that is so. */
    boolean haveEnded(Connection connection) throws SQLException {
        long deadline = System.nanoTime() + LONGEST_END_NANOS;
        Set<Object> found = find(connection);
        while (!known.containsAll(found) && System.nanoTime() - deadline < 0) {
            LockSupport.parkNanos(LOOK_NANOS);
            found = find(connection);
        }
        boolean ended = known.containsAll(found);
        known = found;
        return ended;
    }

    private static Set<Object> find(Connection connection) throws SQLException {
        Set<Object> found = new HashSet<>();
        addThreads(found);
        try (Stream<ProcessHandle> children = ProcessHandle.current().children()) {
            children.filter(ProcessHandle::isAlive).forEach(found::add);
        }
        try (Statement statement = connection.createStatement();
                ResultSet sessions =
                        statement.executeQuery("select pid::text || ' ' || backend_start::text from pg_stat_activity"
                                + " where datname = current_database() and backend_type = 'client backend'"
                                + " and pid <> pg_backend_pid()")) {
            while (sessions.next()) {
                found.add(sessions.getString(1));
            }
        }
        return found;
    }

    private static void addThreads(Set<Object> found) {
        Thread[] threads = new Thread[2 * Thread.activeCount() + 100];
        int count = Thread.enumerate(threads);
        for (int i = 0; i < count; i++) {
            String name = threads[i].getName();
            if (name.startsWith("worker-") || name.startsWith("HikariPool-")) {
                found.add(threads[i]);
            }
        }
    }
}
