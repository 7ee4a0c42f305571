package dev.pgworker.testsupport;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.stream.Stream;

import org.awaitility.Awaitility;
import org.jspecify.annotations.Nullable;

/** A PgBouncer before a server. */
public final class PgBouncer implements AutoCloseable {

    private final Path configuration;
    private final Process process;
    private final int port;

    private PgBouncer(Path configuration, Process process, int port) {
        this.configuration = configuration;
        this.process = process;
        this.port = port;
    }

    /** Starts one in transaction mode for the server on the given port; returns null if none is installed. */
    public static @Nullable PgBouncer start(int server, String name) throws IOException {
        return start(server, name, "transaction", 30);
    }

    /**
     * Starts one for the server on the given port; returns null if none is installed.
     *
     * @param mode {@code session}, {@code transaction} or {@code statement}
     * @param size how many sessions of the server each database has at most
     */
    public static @Nullable PgBouncer start(int server, String name, String mode, int size) throws IOException {
        Path program = Stream.of("/usr/sbin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin")
                .map(folder -> Path.of(folder, "pgbouncer"))
                .filter(Files::isExecutable)
                .findFirst()
                .orElse(null);
        if (program == null) {
            return null;
        }
        int port = freePort();
        Path file = Files.createTempFile("pgbouncer", ".ini");
        // The defaults wait 15 s before a server that was away is asked again.
        Files.writeString(file, """
                [databases]
                * = host=127.0.0.1 port=%s user=postgres password=postgres
                [pgbouncer]
                listen_addr = 127.0.0.1
                listen_port = %s
                unix_socket_dir =
                auth_type = any
                pool_mode = %s
                default_pool_size = %s
                max_client_conn = 300
                server_login_retry = 1
                ignore_startup_parameters = extra_float_digits
                """.formatted(server, port, mode, size));
        // It refuses to run as root.
        boolean root = System.getProperty("user.name").equals("root");
        if (root) {
            Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-r--r--"));
        }
        List<String> command = root
                ? List.of(program.toString(), "-u", "nobody", file.toString())
                : List.of(program.toString(), file.toString());
        Process process = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(Path.of("target", name + "-pgbouncer.log").toFile())
                .start();
        PgBouncer bouncer = new PgBouncer(file, process, port);
        Awaitility.await().until(() -> answers(port));
        return bouncer;
    }

    private static boolean answers(int port) {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            return socket.isConnected();
        } catch (IOException e) {
            return false;
        }
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    /** Returns the port of the loopback interface at which it listens. */
    public int port() {
        return port;
    }

    /** Returns the address of a database behind it, given that of the same database at the server. */
    public String behind(String url) {
        return url.replaceFirst(":\\d+/", ":" + port + "/");
    }

    @Override
    public void close() throws IOException {
        process.destroyForcibly().onExit().join();
        Files.delete(configuration);
    }
}
