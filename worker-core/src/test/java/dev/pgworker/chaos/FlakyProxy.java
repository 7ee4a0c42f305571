package dev.pgworker.chaos;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/** Stands between a worker and its server, and forwards bytes as well or badly as it is told to. */
final class FlakyProxy implements AutoCloseable {

    /** What becomes of what arrives. */
    enum Mode {
        FORWARD,
        /** Each packet takes a while. */
        DELAY,
        /** Nothing arrives any more, and nobody is told: half-open connections. */
        HOLD,
        /** New connections are closed at once. */
        REFUSE
    }

    private static final int DELAY_MILLIS = 100;

    private final ServerSocket listening;
    private final int target;
    private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
    private volatile Mode mode = Mode.FORWARD;

    FlakyProxy(int target) throws IOException {
        this.target = target;
        listening = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        daemon(this::accept);
    }

    int port() {
        return listening.getLocalPort();
    }

    void set(Mode mode) {
        this.mode = mode;
    }

    /** Cuts every connection. */
    void cut() {
        sockets.forEach(FlakyProxy::close);
    }

    private void accept() {
        while (!listening.isClosed()) {
            try {
                connect(listening.accept());
            } catch (IOException e) {
                // The server is down, or the test is over: the client sees a closed connection.
            }
        }
    }

    private void connect(Socket client) throws IOException {
        sockets.add(client);
        if (mode == Mode.REFUSE) {
            close(client);
            sockets.remove(client);
            return;
        }
        Socket server = new Socket();
        sockets.add(server);
        try {
            server.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), target));
        } catch (IOException e) {
            end(client, server);
            throw e;
        }
        daemon(() -> forward(client, server));
        daemon(() -> forward(server, client));
    }

    private void forward(Socket from, Socket to) {
        byte[] buffer = new byte[16_384];
        try {
            InputStream in = from.getInputStream();
            OutputStream out = to.getOutputStream();
            for (int length = in.read(buffer); length >= 0; length = in.read(buffer)) {
                hinder(from);
                out.write(buffer, 0, length);
            }
        } catch (IOException | InterruptedException e) {
            // One side is gone: so will be the other.
        }
        end(from, to);
    }

    private void hinder(Socket from) throws InterruptedException {
        if (mode == Mode.DELAY) {
            TimeUnit.MILLISECONDS.sleep(DELAY_MILLIS);
        }
        while (mode == Mode.HOLD && !from.isClosed()) {
            TimeUnit.MILLISECONDS.sleep(10);
        }
    }

    private void end(Socket one, Socket other) {
        close(one);
        close(other);
        sockets.remove(one);
        sockets.remove(other);
    }

    private static void close(Socket socket) {
        try {
            socket.close();
        } catch (IOException e) {
            // Closed is closed.
        }
    }

    private static void daemon(Runnable work) {
        Thread thread = new Thread(work, "flaky-proxy");
        thread.setDaemon(true);
        thread.start();
    }

    @Override
    public void close() throws IOException {
        listening.close();
        cut();
    }
}
