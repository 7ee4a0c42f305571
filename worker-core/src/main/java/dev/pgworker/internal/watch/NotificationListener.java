package dev.pgworker.internal.watch;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;
import org.slf4j.Logger;

import dev.pgworker.event.WorkerEvent;
import dev.pgworker.internal.argument.LogText;
import dev.pgworker.internal.engine.WorkerContext;
import dev.pgworker.internal.engine.floor.JobAnnouncements;
import dev.pgworker.internal.failure.DatabaseContact;
import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.jdbc.Pooler;
import dev.pgworker.internal.lifecycle.BackgroundService;
import dev.pgworker.internal.lifecycle.Started;
import dev.pgworker.internal.watch.MessageArrival.Reception;

/**
 * Listens for notifications on {@code worker-listen}, on a connection that it keeps for itself and replaces when it
 * breaks. Whatever happened without a listener connection is caught up on: each (re)connection counts as a
 * notification.
 */
public final class NotificationListener extends BackgroundService {

    private static final Logger log = WorkerLog.of(NotificationListener.class);

    private static final String JOBS_INSERT = "jobs:insert";

    /** How long one wait takes at most, and so how long a stop may go unnoticed where it cannot end the wait. */
    private static final int WAIT_MILLIS = 200;

    /** How often the connection is checked, so that one cut silently is noticed. */
    private static final long CHECK_NANOS = TimeUnit.SECONDS.toNanos(5);

    /** How long a server may take that is asked to listen. */
    private static final int LISTEN_LIMIT_MILLIS = 10_000;

    private static final String POOLED =
            "The connection pooler gives the server's sessions to others between transactions, so that"
                    + " notifications would go to these. Set pgworker.listen.url to an address of PostgreSQL itself, or"
                    + " pgworker.listen.enabled=false; until then the worker finds jobs at each pgworker.poll-interval";

    private static final int UNLISTEN_LIMIT_MILLIS = 1_000;

    /** So much at once is worth a word: as many jobs are announced in no time. */
    private static final int FLOOD_MEGABYTES = 16;

    private static final int FLOOD_PARTS = FLOOD_MEGABYTES * 1024 * 1024 / Reception.PART_BYTES;

    private static final long FLOOD_REMINDER_NANOS = TimeUnit.MINUTES.toNanos(10);

    private final WorkerContext context;
    private final DataSource dataSource;
    private final JobAnnouncements announcements;
    private final Told listeners;

    /** Written by the thread. */
    private volatile boolean listening;

    /** Set by the thread, one for each connection. */
    private volatile @Nullable Reception reception;

    // Owned by the thread.
    private @Nullable Connection connection;
    private int parts;
    private boolean floodTold;
    private long floodToldAt;
    private long checkAt;
    private boolean disconnectedReported;

    /**
     * What is called on the listening thread; each must return at once. Any role may notify, of any schema and with any
     * text.
     *
     * @param onJobs when jobs may be due
     * @param claim claims a job that was announced alone
     * @param check asked from time to time whether the connection works
     * @param channels by the names of the other channels: with the text of each notification, and with null when some may have been
     *     missed, because the connection has just been made, and when they are no longer heard
     */
    public record Told(
            Runnable onJobs, ClaimOfTold claim, Check check, Map<String, Consumer<@Nullable String>> channels) {

        /** Copies the channels. */
        public Told {
            channels = Map.copyOf(channels);
        }
    }

    /** Claims a job on the connection that has brought the news, which is the shortest way. */
    @FunctionalInterface
    public interface ClaimOfTold {

        /**
         * Claims the job if nothing speaks against it.
         *
         * @param connection in auto-commit mode and in no transaction
         * @return whether it need not be looked for any more; otherwise it is looked for among all jobs
         * @throws SQLException if the connection is broken
         */
        boolean claim(Connection connection, long jobId) throws SQLException;
    }

    /** Finds out whether a connection works. */
    @FunctionalInterface
    public interface Check {

        /**
         * Has the server answer something, whatever that is.
         *
         * @param connection in auto-commit mode and in no transaction
         * @return whether it has
         * @throws SQLException if the connection is broken
         */
        boolean answers(Connection connection) throws SQLException;
    }

    /**
     * Creates a listener.
     *
     * @param announcements receives the notifications of jobs
     */
    public NotificationListener(
            WorkerContext context, DataSource dataSource, JobAnnouncements announcements, Told listeners) {
        super("worker-listen", true, context.outage());
        this.context = context;
        this.dataSource = dataSource;
        this.announcements = announcements;
        this.listeners = listeners;
    }

    @Override
    protected void step() throws SQLException {
        Connection current = connection;
        try {
            if (current == null) {
                connect();
            } else {
                receive(current);
            }
        } catch (SQLException | RuntimeException | Error e) {
            drop();
            if (!isStopping() && !disconnectedReported) {
                disconnectedReported = true;
                tellUnheard();
                Exception error = e instanceof Exception exception ? exception : new IllegalStateException(e);
                context.events().publish(new WorkerEvent.ListenerDisconnected(context.workerId(), error));
            }
            throw e;
        }
    }

    private void connect() throws SQLException {
        context.events().publish(new WorkerEvent.ListenerConnecting(context.workerId()));
        Connection fresh = dataSource.getConnection();
        // Even if the rest fails it is to be given back.
        connection = fresh;
        if (!fresh.getAutoCommit()) {
            fresh.setAutoCommit(true);
        }
        int usual = fresh.getNetworkTimeout();
        fresh.setNetworkTimeout(Runnable::run, LISTEN_LIMIT_MILLIS);
        if (Pooler.sharesSessions(fresh, dataSource)) {
            throw new SQLException(POOLED, "0A000");
        }
        Reception current = reception(fresh);
        reception = current;
        // What others send may come before the answers do.
        current.using(() -> {
            listen(fresh);
            return true;
        });
        fresh.setNetworkTimeout(Runnable::run, usual);
        DatabaseContact.made();
        listening = true;
        disconnectedReported = false;
        checkAt = System.nanoTime();
        log.debug("Listening for jobs");
        context.started().done(Started.Part.LISTENER);
        context.events().publish(new WorkerEvent.ListenerConnected(context.workerId()));
        announcements.missed();
        tellJobs();
        tellUnheard();
    }

    private Reception reception(Connection fresh) throws SQLException {
        return new Reception(fresh.unwrap(PGConnection.class), part -> {
            News news = tell(part);
            if (news.ofJobs()) {
                tellJobs();
            }
            tellFlood(part[part.length - 1]);
        });
    }

    private void listen(Connection fresh) throws SQLException {
        try (Statement statement = fresh.createStatement()) {
            statement.execute("listen \"" + JOBS_INSERT + "\"");
            for (String channel : listeners.channels().keySet()) {
                statement.execute("listen \"" + channel + "\"");
            }
        }
    }

    private void receive(Connection used) throws SQLException {
        Reception current = reception;
        if (current == null || isStopping()) {
            return;
        }
        int partsBefore = parts;
        PGNotification[] notifications = current.await(waitMillis(current));
        if (parts == partsBefore) {
            parts = 0;
        }
        News news = notifications == null ? News.NONE : tell(notifications);
        if (news.ofJobs() && !(news.alone() != null && claim(used, current, news.alone()))) {
            tellJobs();
        }
        check(used, current);
    }

    /** Returns how long to wait for notifications until the next check; 1 at least, as the driver waits for ever otherwise. */
    private int waitMillis(Reception current) {
        long untilCheck = TimeUnit.NANOSECONDS.toMillis(checkAt - System.nanoTime());
        return (int) Math.max(1, current.canBeEnded() ? untilCheck : Math.min(untilCheck, WAIT_MILLIS));
    }

    /**
     * What is to be done about notifications that have been read.
     *
     * @param ofJobs whether jobs may be due
     * @param alone the only one of them; null if there are others, or not known
     */
    private record News(boolean ofJobs, @Nullable Long alone) {

        private static final News NONE = new News(false, null);
    }

    private News tell(PGNotification[] notifications) {
        boolean jobs = false;
        Long alone = null;
        PGNotification before = null;
        for (PGNotification notification : notifications) {
            if (before != null && isSame(before, notification)) {
                continue;
            }
            before = notification;
            if (listeners.channels().containsKey(notification.getName())) {
                tell(notification.getName(), notification.getParameter());
            } else {
                Long job = announcements.made(notification.getParameter());
                alone = jobs ? null : job;
                jobs = true;
            }
        }
        return new News(jobs, alone);
    }

    private static boolean isSame(PGNotification one, PGNotification other) {
        return one.getName().equals(other.getName()) && one.getParameter().equals(other.getParameter());
    }

    /** Any role that may connect to the database may do that, on purpose or not. */
    private void tellFlood(PGNotification last) {
        parts++;
        long now = System.nanoTime();
        if (parts < FLOOD_PARTS || (floodTold && now - floodToldAt < FLOOD_REMINDER_NANOS)) {
            return;
        }
        floodTold = true;
        floodToldAt = now;
        log.warn(
                "Notifications flood in: more than {} MB without a pause, the last ones on channel \"{}\" from the server process {},"
                        + " which pg_stat_activity knows. Jobs continue, and may be noticed late",
                FLOOD_MEGABYTES,
                LogText.visible(last.getName()),
                last.getPID());
    }

    private boolean claim(Connection used, Reception current, long jobId) throws SQLException {
        try {
            return current.using(() -> listeners.claim().claim(used, jobId));
        } catch (RuntimeException | Error e) {
            log.error("A job was announced, but could not be claimed at once", e);
            return false;
        }
    }

    /** A failure of what is called is no reason to end listening. */
    private void tellJobs() {
        try {
            listeners.onJobs().run();
        } catch (RuntimeException | Error e) {
            log.error("Jobs were announced, but not all parts of the worker could be notified", e);
        }
    }

    private void tellUnheard() {
        listeners.channels().keySet().forEach(channel -> tell(channel, null));
    }

    private void tell(String channel, @Nullable String text) {
        try {
            Objects.requireNonNull(listeners.channels().get(channel)).accept(text);
        } catch (RuntimeException | Error e) {
            log.debug("Channel {} was notified, but not all parts of the worker could be told", channel, e);
        }
    }

    private void check(Connection used, Reception current) throws SQLException {
        if (System.nanoTime() - checkAt < 0) {
            return;
        }
        if (!current.using(() -> listeners.check().answers(used))) {
            throw new SQLException("The listener connection does not answer", "08006");
        }
        DatabaseContact.made();
        checkAt = System.nanoTime() + CHECK_NANOS;
    }

    @Override
    protected void endWait() {
        Reception current = reception;
        if (current != null) {
            current.end();
        }
    }

    @Override
    protected void afterLastStep() {
        disconnect();
    }

    /** Returns true while notifications arrive, as far as is known. */
    public boolean isListening() {
        return listening;
    }

    private @Nullable Connection forget() {
        Connection current = connection;
        listening = false;
        connection = null;
        reception = null;
        return current;
    }

    /** Gives the connection back as it was: the pool may hand it to code that does not expect notifications. */
    private void disconnect() {
        Connection current = forget();
        if (current == null) {
            return;
        }
        try (current;
                Statement statement = current.createStatement()) {
            int usual = current.getNetworkTimeout();
            current.setNetworkTimeout(Runnable::run, UNLISTEN_LIMIT_MILLIS);
            statement.execute("unlisten *");
            current.setNetworkTimeout(Runnable::run, usual);
        } catch (SQLException e) {
            log.debug("The listener connection was broken already", e);
        }
    }

    /** Breaks the connection, which may lead to a server that gives no answer or is no longer the one to talk to. */
    private void drop() {
        Connection current = forget();
        if (current == null) {
            return;
        }
        try (current) {
            current.abort(Runnable::run);
        } catch (SQLException | RuntimeException e) {
            log.debug("The listener connection was broken already", e);
        }
    }
}
