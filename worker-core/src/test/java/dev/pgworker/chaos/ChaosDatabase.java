package dev.pgworker.chaos;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.stream.Stream;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;

/** A PostgreSQL that may be crashed, apart from the one that other tests share. */
final class ChaosDatabase implements AutoCloseable {

    private static final ProcessBuilder.Redirect LOG = ProcessBuilder.Redirect.appendTo(
            Path.of("target", "chaos-postgres.log").toFile());

    private final Path directory;
    private EmbeddedPostgres server;

    ChaosDatabase() throws IOException {
        directory = Files.createTempDirectory("pgworker-chaos");
        server = start(0);
    }

    /** The defaults of the embedded server would lose what was committed just before a crash. */
    private EmbeddedPostgres start(int port) throws IOException {
        EmbeddedPostgres.Builder builder = EmbeddedPostgres.builder()
                .setPGStartupWait(Duration.ofMinutes(2))
                .setDataDirectory(data())
                .setCleanDataDirectory(false)
                .setOutputRedirector(LOG)
                .setErrorRedirector(LOG)
                .setServerConfig("max_connections", "300")
                .setServerConfig("synchronous_commit", "on")
                .setServerConfig("fsync", "off");
        return (port == 0 ? builder : builder.setPort(port)).start();
    }

    private File data() {
        return directory.resolve("data").toFile();
    }

    int port() {
        return server.getPort();
    }

    /** Ends the server as {@code pg_ctl stop -m immediate} does, without a checkpoint, and starts it again. */
    void crash() throws Exception {
        int port = server.getPort();
        stopImmediately();
        server.close();
        server = start(port);
    }

    private void stopImmediately() throws Exception {
        String pid = Files.readAllLines(data().toPath().resolve("postmaster.pid"))
                .get(0)
                .trim();
        ProcessHandle postmaster = ProcessHandle.of(Long.parseLong(pid)).orElseThrow();
        new ProcessBuilder("kill", "-QUIT", pid).start().waitFor();
        postmaster.onExit().join();
    }

    @Override
    public void close() throws IOException {
        server.close();
        try (Stream<Path> files = Files.walk(directory)) {
            files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
        }
    }
}
