package dev.pgworker.dashboard;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.Socket;
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
     * @param name its name; "closed" when the stream has ended
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

    /** Asks by HTTP 1.0, whose answers are not in chunks. */
    static Events open(int port, String path) {
        try {
            Socket socket = new Socket(InetAddress.getLoopbackAddress(), port);
            socket.getOutputStream().write(("GET " + path + " HTTP/1.0\r\nHost: localhost\r\n\r\n").getBytes(UTF_8));
            return new Events(socket);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void read() {
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(socket.getInputStream(), UTF_8))) {
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

    /** Waits for an event. */
    JsonNode await(String name, Predicate<JsonNode> wanted) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
        while (System.nanoTime() < end) {
            Event event = received.poll(1, TimeUnit.SECONDS);
            if (event != null && event.name().equals(name) && wanted.test(event.data())) {
                return event.data();
            }
        }
        throw new AssertionError("No event " + name);
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
