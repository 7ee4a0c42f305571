package dev.pgworker.internal.watch;

import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.sql.SQLException;
import java.util.function.Consumer;
import java.util.function.Supplier;
import javax.net.SocketFactory;
import javax.sql.DataSource;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;
import org.postgresql.core.BaseConnection;
import org.postgresql.ds.PGSimpleDataSource;
import org.slf4j.Logger;

import dev.pgworker.internal.failure.WorkerLog;
import dev.pgworker.internal.jdbc.SqlWork;

/**
 * Ends the driver's wait for notifications with the first one. pgjdbc's own wait returns a millisecond after one has come, because
 * it looks for so long whether another one follows.
 *
 * <p>pgjdbc collects notifications until none follows any more, however many there are. Here they are taken from it while it continues
 * reading, so that those who send more than fits into the memory of this process do no harm.
 *
 * <p>It is the socket factory of listener connections, by the driver's property {@code socketFactory}. On others the driver's
 * millisecond passes.
 */
public final class MessageArrival extends SocketFactory {

    private static final Logger log = WorkerLog.of(MessageArrival.class);

    /** The timeout with which the driver looks whether another message follows, and does nothing else. */
    private static final int LOOK_MILLIS = 1;

    /** What the thread is waiting by. */
    private static final ThreadLocal<@Nullable Reception> waiting = new ThreadLocal<>();

    /** Creates a factory of sockets that are not connected; called by the driver. */
    public MessageArrival() {}

    /**
     * Returns a source of connections like those of the given one, on which waits end sooner: the given one itself, where it
     * is no data source of the driver, has a socket factory of its own, or its driver does not see this class. A subclass has to supply
     * copies of itself.
     */
    public static DataSource promptly(DataSource source) {
        if (!(source instanceof PGSimpleDataSource plain) || plain.getSocketFactory() != null) {
            return source;
        }
        try {
            String name = MessageArrival.class.getName();
            if (Class.forName(name, false, PGSimpleDataSource.class.getClassLoader()) != MessageArrival.class) {
                return source;
            }
            PGSimpleDataSource prompt = copy(plain);
            if (prompt == null) {
                return source;
            }
            prompt.setSocketFactory(name);
            return prompt;
        } catch (ReflectiveOperationException | IOException | RuntimeException | LinkageError e) {
            log.debug("The driver's own wait for notifications is used", e);
            return source;
        }
    }

    /** A subclass may do more than the driver's data source does. */
    private static @Nullable PGSimpleDataSource copy(PGSimpleDataSource source)
            throws ReflectiveOperationException, IOException {
        if (source.getClass() != PGSimpleDataSource.class) {
            return source instanceof Supplier<?> copies && copies.get() instanceof PGSimpleDataSource copy
                    ? copy
                    : null;
        }
        PGSimpleDataSource copy = new PGSimpleDataSource();
        copy.initializeFrom(source);
        return copy;
    }

    /** Waits for notifications, one after the other, on one connection. */
    static final class Reception {

        /** After how many bytes notifications are taken from the driver, which may hold seven times as many in memory. */
        static final int PART_BYTES = 256 * 1024;

        private final PGConnection connection;
        private final Consumer<PGNotification[]> onPart;

        /** What has been read since the driver was last asked. Owned by the thread that waits. */
        private int bytes;

        /** Whether nothing is waited for but notifications. Owned by the thread that waits. */
        private boolean awaiting;

        /** Whether something has come since the wait began. Owned by the thread that waits. */
        private boolean arrived;

        /** Where the thread that waits has read; null while that is not known, and where waits are the driver's own. */
        private volatile @Nullable Socket socket;

        private volatile boolean ended;

        /** Set while the connection is used for a statement, whose answer is not to be lost. */
        @GuardedBy("this") private boolean inUse;

        /**
         * Creates one.
         *
         * @param onPart called with notifications of which more follow, on the thread that waits or uses the connection; must not use
         *     it itself
         */
        Reception(PGConnection connection, Consumer<PGNotification[]> onPart) {
            this.connection = connection;
            this.onPart = onPart;
        }

        /**
         * Waits as the driver does.
         *
         * @param millis how long at most
         * @return none, or null, after that time
         */
        PGNotification @Nullable [] await(int millis) throws SQLException {
            arrived = false;
            awaiting = true;
            try {
                return reading(() -> connection.getNotifications(millis));
            } finally {
                awaiting = false;
            }
        }

        private <T extends @Nullable Object> T reading(SqlWork<T> work) throws SQLException {
            bytes = 0;
            waiting.set(this);
            try {
                return work.run();
            } finally {
                waiting.remove();
            }
        }

        /** Returns whether {@link #end} works. */
        boolean canBeEnded() {
            return socket != null;
        }

        /**
         * Does something else on the connection, during which notifications may come, and which {@link #end} does not break before it
         * is done.
         */
        <T> T using(SqlWork<T> work) throws SQLException {
            synchronized (this) {
                inUse = true;
            }
            try {
                return reading(work);
            } finally {
                synchronized (this) {
                    inUse = false;
                    if (ended) {
                        endRead();
                    }
                }
            }
        }

        /** Breaks the connection, so that the wait ends with an exception. May be called from any thread. */
        void end() {
            ended = true;
            endRead();
        }

        private void beginRead(Socket from) {
            socket = from;
            if (ended) {
                endRead();
            }
        }

        private synchronized void endRead() {
            Socket read = socket;
            try {
                if (read != null && !inUse) {
                    read.shutdownInput();
                }
            } catch (IOException e) {
                log.debug("The listener connection was broken already", e);
            }
        }

        /** Returns whether the thread has what it waits for, and now only looks for more. */
        private boolean looksForMore(PromptSocket read) {
            return awaiting && arrived && read.timeoutMillis == LOOK_MILLIS;
        }

        private void hasRead(int count) throws IOException {
            arrived = true;
            bytes += count;
            if (bytes >= PART_BYTES) {
                bytes = 0;
                takePart();
            }
        }

        /** The driver reads under a lock that this thread therefore has already. */
        private void takePart() throws IOException {
            if (connection instanceof BaseConnection base) {
                try {
                    PGNotification[] part = base.getQueryExecutor().getNotifications();
                    if (part.length > 0) {
                        onPart.accept(part);
                    }
                } catch (SQLException e) {
                    throw new IOException(e);
                }
            }
        }
    }

    @Override
    public Socket createSocket() {
        return new PromptSocket();
    }

    @Override
    public Socket createSocket(String host, int port) throws IOException {
        throw unused();
    }

    @Override
    public Socket createSocket(String host, int port, InetAddress localHost, int localPort) throws IOException {
        throw unused();
    }

    @Override
    public Socket createSocket(InetAddress host, int port) throws IOException {
        throw unused();
    }

    @Override
    public Socket createSocket(InetAddress address, int port, InetAddress localAddress, int localPort)
            throws IOException {
        throw unused();
    }

    private static IOException unused() {
        return new IOException("Only sockets that are not connected are made");
    }

    private static final class PromptSocket extends Socket {

        /** As {@link #getSoTimeout}, without asking the system. Written and read by the thread that uses the connection. */
        private volatile int timeoutMillis;

        @Override
        public synchronized void setSoTimeout(int millis) throws SocketException {
            super.setSoTimeout(millis);
            timeoutMillis = millis;
        }

        @Override
        public InputStream getInputStream() throws IOException {
            return new PromptStream(this, super.getInputStream());
        }
    }

    private static final class PromptStream extends FilterInputStream {

        private final PromptSocket socket;

        PromptStream(PromptSocket socket, InputStream in) {
            super(in);
            this.socket = socket;
        }

        @Override
        public int read() throws IOException {
            Reception reception = begin();
            int read = super.read();
            if (reception != null && read >= 0) {
                reception.hasRead(1);
            }
            return read;
        }

        @Override
        public int read(byte[] bytes, int offset, int length) throws IOException {
            Reception reception = begin();
            int read = super.read(bytes, offset, length);
            if (reception != null && read > 0) {
                reception.hasRead(read);
            }
            return read;
        }

        /** What the driver's look for more would end with after its time, unless something is there. */
        private @Nullable Reception begin() throws IOException {
            Reception reception = waiting.get();
            if (reception != null) {
                reception.beginRead(socket);
                if (reception.looksForMore(socket) && in.available() == 0) {
                    throw new SocketTimeoutException("Nothing else has arrived");
                }
            }
            return reception;
        }
    }
}
