package dev.pgworker.internal.watch;

import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.sql.SQLException;
import java.util.function.Consumer;
import javax.net.SocketFactory;
import javax.sql.DataSource;

import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;
import org.postgresql.core.BaseConnection;
import org.postgresql.ds.PGSimpleDataSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells that the server begins to send something while the driver waits for notifications. pgjdbc's own wait returns a
 * millisecond after one has come, because it looks whether another one follows; whoever is told here can act within that
 * millisecond.
 *
 * <p>pgjdbc collects notifications until none follows any more, however many there are. Here they are taken from it while it goes on
 * reading, so that those who send more than fits into the memory of this process do no harm.
 *
 * <p>It is the socket factory of connections that listen, by the driver's property {@code socketFactory}. On others nothing is told.
 */
public final class MessageArrival extends SocketFactory {

    private static final Logger log = LoggerFactory.getLogger(MessageArrival.class);

    /** What the thread is waiting by. */
    private static final ThreadLocal<@Nullable Reception> waiting = new ThreadLocal<>();

    /** Creates a factory of sockets that are not connected; called by the driver. */
    public MessageArrival() {}

    /**
     * Returns a source of connections like those of the given one, on which arrivals are told: the given one itself, where it
     * is no data source of the driver, has a socket factory of its own, or its driver does not see this class.
     */
    public static DataSource toldBy(DataSource source) {
        if (!(source instanceof PGSimpleDataSource plain) || plain.getSocketFactory() != null) {
            return source;
        }
        try {
            String name = MessageArrival.class.getName();
            if (Class.forName(name, false, PGSimpleDataSource.class.getClassLoader()) != MessageArrival.class) {
                return source;
            }
            PGSimpleDataSource told = new PGSimpleDataSource();
            told.initializeFrom(plain);
            told.setSocketFactory(name);
            return told;
        } catch (ReflectiveOperationException | IOException | RuntimeException | LinkageError e) {
            log.debug("The driver's own wait for notifications is used", e);
            return source;
        }
    }

    /** Something that the driver does on a connection. */
    @FunctionalInterface
    interface Call<T> {
        T on(PGConnection connection) throws SQLException;
    }

    /** Waits for notifications, one after the other, on one connection. */
    static final class Reception {

        /** After how many bytes notifications are taken from the driver, which may hold seven times as many in memory. */
        static final int PART_BYTES = 256 * 1024;

        private final PGConnection connection;
        private final Runnable onArrival;
        private final Consumer<PGNotification[]> onPart;

        /** What has been read since the driver was last asked. Owned by the thread that waits. */
        private int bytes;

        /** Whether what arrives is still to be told. Owned by the thread that waits. */
        private boolean untold;

        /** Where the thread that waits has read; null while that is not known, and where arrivals are not told. */
        private volatile @Nullable Socket socket;

        private volatile boolean ended;

        /**
         * Creates one.
         *
         * @param onArrival called once in each wait, on its thread, when the server begins to send something, whatever that is
         * @param onPart called with notifications of which more follow, on the thread that waits or calls; must not use the connection
         */
        Reception(PGConnection connection, Runnable onArrival, Consumer<PGNotification[]> onPart) {
            this.connection = connection;
            this.onArrival = onArrival;
            this.onPart = onPart;
        }

        /**
         * Waits as the driver does.
         *
         * @param millis how long at most
         * @return none, or null, after that time
         */
        PGNotification @Nullable [] await(int millis) throws SQLException {
            untold = true;
            return call(used -> used.getNotifications(millis));
        }

        /** Does something else, during which notifications may come. */
        <T> T call(Call<T> call) throws SQLException {
            bytes = 0;
            waiting.set(this);
            try {
                return call.on(connection);
            } finally {
                untold = false;
                waiting.remove();
            }
        }

        /** Returns whether {@link #end} works. */
        boolean canBeEnded() {
            return socket != null;
        }

        /** Breaks the connection, so that the wait ends with an exception. May be called from any thread. */
        void end() {
            ended = true;
            shutDown();
        }

        private void beginRead(Socket from) {
            socket = from;
            if (ended) {
                shutDown();
            }
        }

        private void shutDown() {
            Socket read = socket;
            try {
                if (read != null) {
                    read.shutdownInput();
                }
            } catch (IOException e) {
                log.debug("The listening connection was broken already", e);
            }
        }

        private void endRead(int read) throws IOException {
            if (untold) {
                untold = false;
                onArrival.run();
            }
            bytes += read;
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
        return new TellingSocket();
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

    private static final class TellingSocket extends Socket {

        @Override
        public InputStream getInputStream() throws IOException {
            return new TellingStream(this, super.getInputStream());
        }
    }

    private static final class TellingStream extends FilterInputStream {

        private final Socket socket;

        TellingStream(Socket socket, InputStream in) {
            super(in);
            this.socket = socket;
        }

        @Override
        public int read() throws IOException {
            Reception reception = begin();
            int read = super.read();
            if (reception != null && read >= 0) {
                reception.endRead(1);
            }
            return read;
        }

        @Override
        public int read(byte[] bytes, int offset, int length) throws IOException {
            Reception reception = begin();
            int read = super.read(bytes, offset, length);
            if (reception != null && read > 0) {
                reception.endRead(read);
            }
            return read;
        }

        private @Nullable Reception begin() {
            Reception reception = waiting.get();
            if (reception != null) {
                reception.beginRead(socket);
            }
            return reception;
        }
    }
}
