package dev.pgworker.dashboard;

import java.io.BufferedInputStream;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.Socket;
import java.util.Locale;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;

import tools.jackson.databind.JsonNode;

import static java.nio.charset.StandardCharsets.UTF_8;

/** An open tab: the events that it receives. */
final class Events implements AutoCloseable {

    /**
     * An event.
     *
     * @param name its name; "closed" when the stream has ended, "refused" if the answer is no stream: its data is the error
     */
    record Event(String name, JsonNode data) {}

    private final Socket socket;
    private final BlockingQueue<Event> received = new LinkedBlockingQueue<>();

    private Events(Socket socket) {
        this.socket = socket;
        Thread reader = new Thread(this::read, "test-events");
        reader.setDaemon(true);
        reader.start();
    }

    static Events open(int port, String path) {
        try {
            Socket socket = new Socket(InetAddress.getLoopbackAddress(), port);
            socket.getOutputStream().write(("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n").getBytes(UTF_8));
            return new Events(socket);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void read() {
        try (Body body = new Body(socket.getInputStream());
                BufferedReader lines = new BufferedReader(new InputStreamReader(body, UTF_8))) {
            if (body.isRefusal()) {
                received.add(new Event("refused", Http.json.readTree(body.readNBytes(body.left))));
                return;
            }
            String name = "";
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.startsWith("event: ")) {
                    name = line.substring(7);
                } else if (line.startsWith("data: ")) {
                    received.add(new Event(name, Http.json.readTree(line.substring(6))));
                }
            }
        } catch (IOException e) {
            // The test has closed it, or the server.
        }
        received.add(new Event("closed", Http.json.createObjectNode()));
    }

    /** What an answer in chunks contains. */
    private static final class Body extends InputStream {

        private final InputStream answer;
        private final String status;
        private int left;

        Body(InputStream answer) throws IOException {
            this.answer = new BufferedInputStream(answer);
            status = line();
            for (String header = line(); !header.isEmpty(); header = line()) {
                if (header.toLowerCase(Locale.ROOT).startsWith("content-length:")) {
                    left = Integer.parseInt(header.substring(15).strip());
                }
            }
        }

        private boolean isRefusal() {
            return !status.endsWith(" 200");
        }

        private String line() throws IOException {
            StringBuilder line = new StringBuilder();
            for (int c = answer.read(); c >= 0 && c != '\n'; c = answer.read()) {
                line.append((char) c);
            }
            return line.toString().strip();
        }

        @Override
        public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override
        public int read(byte[] bytes, int from, int most) throws IOException {
            if (left == 0) {
                String size = line();
                left = size.isEmpty() ? 0 : Integer.parseInt(size, 16);
                if (left == 0) {
                    return -1;
                }
            }
            int read = answer.read(bytes, from, Math.min(left, most));
            left -= Math.max(read, 0);
            if (left == 0) {
                String unused = line();
            }
            return read;
        }
    }

    /** Waits for an event. */
    JsonNode await(String name, Predicate<JsonNode> wanted) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.MINUTES.toNanos(2);
        while (System.nanoTime() < end) {
            Event event = received.poll(1, TimeUnit.SECONDS);
            if (event != null && event.name().equals(name) && wanted.test(event.data())) {
                return event.data();
            }
        }
        throw new AssertionError("No event " + name);
    }

    /** Waits for the next event, whatever it is. */
    Event awaitAny() throws InterruptedException {
        Event event = received.poll(2, TimeUnit.MINUTES);
        if (event == null) {
            throw new AssertionError("No event");
        }
        return event;
    }

    /** Forgets what has been received. */
    void drain() {
        received.clear();
    }

    int count(String name) {
        return (int)
                received.stream().filter(event -> event.name().equals(name)).count();
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
